package store

import (
	"bytes"
	"encoding/binary"
)

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

var slash = []byte{'/'}

func keyMeta() []byte { return []byte("m") }
func keyIno() []byte  { return []byte("i") }
func keyMove() []byte { return []byte("mv") }
func keyTail() []byte { return []byte("a/tail") }

func keyInode(id ID) []byte { return cat([]byte("n/"), id[:]) }
func keyTouch(id ID) []byte { return cat([]byte("u/"), id[:]) }
func keyHead(id ID) []byte  { return cat([]byte("h/"), id[:]) }

func prefixDentry(parent ID) []byte { return cat([]byte("d/"), parent[:], slash) }

func prefixEphemeral(owner string, parent ID) []byte {
	return cat([]byte("e/"), []byte(owner), []byte{0}, parent[:], slash)
}

func prefixPlace(parent ID, owner string) []byte {
	if owner == "" {
		return prefixDentry(parent)
	}
	return prefixEphemeral(owner, parent)
}

func keyPlace(p Place) []byte { return cat(prefixPlace(p.Parent, p.Owner), []byte(p.Name)) }

func prefixVersion(id ID) []byte { return cat([]byte("v/"), id[:], slash) }

func keyVersion(id ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(prefixVersion(id), n)
}

func prefixDeleted(p Place) []byte {
	return cat([]byte("t/"), p.Parent[:], slash, []byte(p.Name), []byte{0})
}

func prefixDeletedIn(parent ID) []byte { return cat([]byte("t/"), parent[:], slash) }

func keyFormerDir(id ID) []byte { return cat([]byte("o/"), id[:]) }

func keyDeleted(p Place, id ID) []byte { return cat(prefixDeleted(p), id[:]) }

func keyBlob(s Sum) []byte    { return cat([]byte("b/"), s[:]) }
func keyGarbage(s Sum) []byte { return cat([]byte("g/"), s[:]) }

func prefixRef(s Sum) []byte { return cat([]byte("r/"), s[:], slash) }

func keyRef(s Sum, id ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(cat(prefixRef(s), id[:], slash), n)
}

func keyChunkRef(chunk, list Sum) []byte { return cat(prefixRef(chunk), list[:]) }

func prefixIntent() []byte   { return []byte("a/i/") }
func keyIntent(op ID) []byte { return cat(prefixIntent(), op[:]) }

// parsePlace undoes keyPlace.
func parsePlace(key []byte) (Place, bool) {
	var p Place
	switch {
	case bytes.HasPrefix(key, []byte("d/")):
		key = key[2:]
	case bytes.HasPrefix(key, []byte("e/")):
		owner, rest, ok := bytes.Cut(key[2:], []byte{0})
		if !ok || len(owner) == 0 {
			return p, false
		}
		p.Owner, key = string(owner), rest
	default:
		return p, false
	}
	if len(key) < 18 || key[16] != '/' {
		return p, false
	}
	p.Parent, p.Name = ID(key[:16]), string(key[17:])
	return p, true
}

// parseID undoes keyInode, keyTouch, keyHead and the id of keyVersion and keyIntent, given the prefix.
func parseID(key []byte, prefix string) (ID, bool) {
	rest, ok := bytes.CutPrefix(key, []byte(prefix))
	if !ok || len(rest) < 16 {
		return ID{}, false
	}
	return ID(rest[:16]), true
}

func parseVersion(key []byte) (ID, uint64, bool) {
	id, ok := parseID(key, "v/")
	if !ok || len(key) != 2+16+1+8 {
		return id, 0, false
	}
	return id, binary.BigEndian.Uint64(key[19:]), true
}

func parseSum(key []byte, prefix string) (Sum, bool) {
	rest, ok := bytes.CutPrefix(key, []byte(prefix))
	if !ok || len(rest) < 32 {
		return Sum{}, false
	}
	return Sum(rest[:32]), true
}
