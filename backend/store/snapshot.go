package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"memoryfs/backend/kv"
)

// Snapshot is the tree at one revision. Must be closed. Safe for concurrent use.
type Snapshot struct {
	kv kv.Snapshot
	s  *Store
}

// Snapshot opens the tree as it is now.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	p, err := s.kv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &Snapshot{p, s}, nil
}

// Close releases it.
func (p *Snapshot) Close() { p.kv.Close() }

// Rev is the revision it shows.
func (p *Snapshot) Rev() kv.Rev { return p.kv.Rev() }

// Rev is the revision of now.
func (s *Store) Rev(ctx context.Context) (kv.Rev, error) {
	p, err := s.kv.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	return p.Rev(), nil
}

func (p *Snapshot) get(key []byte) (kv.Entry, error) {
	e, err := p.kv.Get(key)
	if err != nil {
		return kv.Entry{}, err
	}
	return e[0], nil
}

// Inode loads an inode, gone ones too. ErrNotExist.
func (p *Snapshot) Inode(id ID) (Inode, error) {
	e, err := p.kv.Get(keyInode(id), keyTouch(id))
	if err != nil {
		return Inode{}, err
	}
	if e[0].Rev == 0 {
		return Inode{}, fmt.Errorf("inode %s: %w", id, ErrNotExist)
	}
	in, err := decodeInode(id, e[0].Value)
	if err == nil && in.Type == TypeDir && len(e[1].Value) == 8 {
		if t := time.Unix(0, int64(binary.BigEndian.Uint64(e[1].Value))); t.After(in.Ctime) {
			in.Ctime = t
			if t.After(in.Mtime) {
				in.Mtime = t
			}
		}
	}
	return in, err
}

// Child finds a name: one get. ErrNotExist.
func (p *Snapshot) Child(at Place) (Dentry, error) {
	d, _, err := p.child(at)
	return d, err
}

func (p *Snapshot) child(at Place) (Dentry, kv.Rev, error) {
	e, err := p.get(keyPlace(at))
	if err != nil {
		return Dentry{}, 0, err
	}
	if e.Rev == 0 {
		return Dentry{}, 0, fmt.Errorf("%q: %w", at.Name, ErrNotExist)
	}
	d, err := decodeDentry(at.Name, e.Value)
	return d, e.Rev, err
}

// Children lists up to limit names of one owner's space, after the name after, in byte order.
func (p *Snapshot) Children(parent ID, owner, after string, limit int) ([]Dentry, error) {
	prefix := prefixPlace(parent, owner)
	var from []byte
	if after != "" {
		from = cat(prefix, []byte(after))
	}
	list, err := p.kv.List(prefix, from, limit)
	if err != nil {
		return nil, err
	}
	out := make([]Dentry, len(list))
	for i, e := range list {
		if out[i], err = decodeDentry(string(e.Key[len(prefix):]), e.Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Head is a file's head. ErrNotExist for what is deleted.
func (p *Snapshot) Head(id ID) (Head, error) {
	h, _, err := p.head(id)
	return h, err
}

func (p *Snapshot) head(id ID) (Head, kv.Rev, error) {
	e, err := p.get(keyHead(id))
	if err != nil {
		return Head{}, 0, err
	}
	if e.Rev == 0 {
		return Head{}, 0, fmt.Errorf("head of %s: %w", id, ErrNotExist)
	}
	h, err := decodeHead(id, e.Value)
	return h, e.Rev, err
}

// Version loads one version. ErrNotExist.
func (p *Snapshot) Version(id ID, n uint64) (Version, error) {
	e, err := p.get(keyVersion(id, n))
	if err != nil {
		return Version{}, err
	}
	if e.Rev == 0 {
		return Version{}, fmt.Errorf("version %d of %s: %w", n, id, ErrNotExist)
	}
	return decodeVersion(id, n, e.Value)
}

// lastVersion is the number of a memory's newest version, delete versions included; 0 if it has none.
func (p *Snapshot) lastVersion(id ID) (uint64, error) {
	if h, err := p.Head(id); err == nil {
		return h.Version, nil
	} else if !errors.Is(err, ErrNotExist) {
		return 0, err
	}
	last := uint64(0)
	for {
		page, err := p.kv.List(prefixVersion(id), keyVersion(id, last), pageSize)
		if err != nil {
			return 0, err
		}
		for _, e := range page {
			_, last, _ = parseVersion(e.Key)
		}
		if len(page) < pageSize {
			return last, nil
		}
	}
}

const pageSize = 512

// Versions lists up to limit versions, newest first, with numbers below before (0: from the newest).
func (p *Snapshot) Versions(id ID, before uint64, limit int) ([]Version, error) {
	if before == 0 {
		last, err := p.lastVersion(id)
		if err != nil {
			return nil, err
		}
		before = last + 1
	}
	var out []Version
	for n := before - 1; n >= 1 && len(out) < limit; n-- {
		v, err := p.Version(id, n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

const maxDepth = 1 << 12 // of a path; deeper means a cycle

// Path is where an inode hangs: "a/b", "" for the root. ErrNotExist for what is unlinked.
func (p *Snapshot) Path(id ID) (string, error) {
	var segs []string
	for depth := 0; id != RootID; depth++ {
		in, err := p.Inode(id)
		if err != nil {
			return "", err
		}
		if in.Gone || depth > maxDepth {
			return "", fmt.Errorf("path of %s: %w", id, ErrNotExist)
		}
		segs = append(segs, in.Name)
		id = in.Parent
	}
	for i, j := 0, len(segs)-1; i < j; i, j = i+1, j-1 {
		segs[i], segs[j] = segs[j], segs[i]
	}
	return strings.Join(segs, "/"), nil
}

// Deleted lists the memories that were last seen under a name, newest first.
func (p *Snapshot) Deleted(at Place) ([]ID, error) {
	prefix := prefixDeleted(at)
	list, err := p.kv.List(prefix, nil, pageSize)
	if err != nil {
		return nil, err
	}
	out := make([]ID, 0, len(list))
	for i := len(list) - 1; i >= 0; i-- { // ids are in order of their making
		if rest := list[i].Key[len(prefix):]; len(rest) == 16 {
			out = append(out, ID(rest))
		}
	}
	return out, nil
}
