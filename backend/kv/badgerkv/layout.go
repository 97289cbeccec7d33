package badgerkv

import (
	"bytes"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// steady is the size of a store, in bytes, up to which the reserve is one copy of it.
const steady = 512 << 20

// compacting is at most how many bytes Badger's two compactors write before they drop anything, by the tables as they
// lie. One may take all of level 0 with what it overlaps in the first level that is not empty; every other compaction is
// one table and what it overlaps in the next level, which for a table of few, widely spread keys is that whole level.
// Never more than all tables together, since a table is in one compaction at a time. A store below steady is charged for
// all its tables, whatever their layout: the charge then moves only with what is committed, so that the part that is kept
// for deletes is still there after a compaction or a restart.
func compacting(tables []badger.TableInfo) int64 {
	levels := map[int][]badger.TableInfo{}
	base, last := 0, 0
	for _, t := range tables {
		levels[t.Level] = append(levels[t.Level], t)
		if t.Level > 0 && (base == 0 || t.Level < base) {
			base = t.Level
		}
		last = max(last, t.Level)
	}
	top := tableBytes(levels[0])
	if top > 0 {
		top += tableBytes(levels[base]) // level 0 spans, as good as always, every key
	}
	var largest int64
	for level := max(base, 1); level <= last; level++ {
		next := levels[level+1]
		slices.SortFunc(next, func(a, b badger.TableInfo) int { return bytes.Compare(a.Left, b.Left) })
		for _, t := range levels[level] {
			largest = max(largest, int64(t.OnDiskSize)+overlap(t, next))
		}
	}
	return min(max(steady, max(top, largest)+largest), tableBytes(tables))
}

// overlap is the bytes of the tables of a sorted level that share keys with t.
func overlap(t badger.TableInfo, level []badger.TableInfo) (n int64) {
	from, _ := slices.BinarySearchFunc(level, t.Left, func(o badger.TableInfo, left []byte) int {
		return bytes.Compare(o.Right, left)
	})
	for _, o := range level[from:] {
		if bytes.Compare(o.Left, t.Right) > 0 {
			break
		}
		n += int64(o.OnDiskSize)
	}
	return n
}

func tableBytes(tables []badger.TableInfo) (n int64) {
	for _, t := range tables {
		n += int64(t.OnDiskSize)
	}
	return n
}
