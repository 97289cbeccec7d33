package badgerkv

import (
	"fmt"

	"golang.org/x/sys/unix"

	"memoryfs/backend/kv"
)

// Badger maps its memtable logs and tables as sparse files: on a full volume a page fault is a SIGBUS, and the process
// is gone. So commits stop early enough that what Badger does behind them still fits: flushing the memtables (3 at
// most) and the largest compaction (level 0 with the level below it), which writes its output before it drops its input.
const maxReserve = 512 << 20

// defaultReserve is half of a small volume: there, one compaction may rewrite all there is.
func defaultReserve(total uint64) uint64 { return min(total/2, maxReserve) }

// freeing is what a commit may put and still count as one that frees space: an unlink puts a version record, a
// tombstone and its audit intent.
const freeing = 16 << 10

func volume(dir string) (total, free uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize), nil
}

// room is what may still be written before the reserve, in bytes; below it, what deleting commits may write.
func (s *Store) room() (normal, deleting int64) {
	if s.dir == "" {
		return 1 << 62, 1 << 62
	}
	_, free, err := volume(s.dir)
	if err != nil {
		s.log.Error("cannot tell the free space, so nothing is written", "error", err)
		return 0, 0
	}
	return int64(free) - int64(s.reserve), int64(free) - int64(s.reserve/2)
}

// Usage reports the volume, the reserve taken off what is free.
func (s *Store) Usage() (kv.Usage, error) {
	if s.dir == "" {
		return kv.Usage{Total: 1 << 40, Free: 1 << 39}, nil
	}
	total, free, err := volume(s.dir)
	lsm, vlog := s.db.Size()
	return kv.Usage{Total: total, Free: free - min(free, s.reserve), Used: uint64(lsm + vlog)}, err
}
