package badgerkv

import (
	"encoding/binary"

	"memoryfs/backend/kv"
)

// The stored form: user keys begin with keyByte, ours with ownByte, and every value with the revision of its commit.
// Part of the on-disk format; do not change.
const (
	ownByte = '!'
	keyByte = 'k'
	revSize = 8 // bytes, big-endian
)

// counterKey holds the last revision as its value's prefix.
func counterKey() []byte { return []byte{ownByte, 'r'} }

// scratchKey exists only while reclaim runs.
func scratchKey() []byte { return []byte{ownByte, 's'} }

func dbKey(key []byte) []byte {
	return append(append(make([]byte, 0, len(key)+1), keyByte), key...)
}

// dbValue leaves the revision blank; setRev fills it in once it is known.
func dbValue(value []byte) []byte {
	return append(make([]byte, revSize, revSize+len(value)), value...)
}

func setRev(stored []byte, rev kv.Rev) { binary.BigEndian.PutUint64(stored, uint64(rev)) }

// revOf is the revision of a stored value; ErrCorrupt if it is shorter than that.
func revOf(stored []byte) (kv.Rev, error) {
	if len(stored) < revSize {
		return 0, kv.ErrCorrupt
	}
	return kv.Rev(binary.BigEndian.Uint64(stored)), nil
}
