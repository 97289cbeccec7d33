package badgerkv

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"memoryfs/backend/kv"
)

// Badger maps its memtable logs and tables as sparse files: on a full volume a page fault is a SIGBUS, and the process
// is gone. So commits stop early enough that everything that Badger still writes behind them fits:
//
//   - each memtable log is written out as a table before it is removed: at most the bytes of the logs;
//   - each compaction writes its output before it drops its input: at most the bytes of its input, and a table is input
//     of one compaction at a time, so never more than all tables together; for a large store, what the two compactors
//     can take at most by the tables as they lie (layout.go);
//   - a margin for the group at hand, new log pages, the manifest, and for what other programs write meanwhile.
//
// The sum is the reserve. Above it lies a second, small part that only commits that free space may use, so that
// a user can still delete on a full volume; what they free comes back by reclaim.go.
//
// Preallocating (fallocate) was looked at and left out: the logs could be, but the tables, which are the larger part,
// are made by Badger with O_EXCL and written through the map at once. What remains: another program that fills the whole
// reserve while a compaction runs can still kill the process. Nothing acknowledged is lost by it.
const (
	minMargin = 4 << 20   // bytes: three transactions of 1.2 MiB
	maxMargin = 256 << 20 // of a volume of 16 GiB or more

	minFreeing = 2 << 20 // bytes for commits that free space
	maxFreeing = 64 << 20

	// freeing is what a commit may put and still count as one that frees space: an unlink puts a version record,
	// a tombstone and its audit intent.
	freeing = 16 << 10 // bytes

	// settle is how long a group waits for a compaction to give back its input before it is refused.
	settle = 2 * time.Second
)

// room is what may still be written, in bytes.
type room struct {
	any   int64 // by every commit
	frees int64 // by commits that free space
}

// take charges r, if it fits.
func (m *room) take(r *request) bool {
	if r.cost > m.any && !(r.frees && r.cost <= m.frees) {
		return false
	}
	m.any -= r.cost
	m.frees -= r.cost
	return true
}

func (m *room) fits(group []*request) bool {
	left := *m
	for _, r := range group {
		if !left.take(r) {
			return false
		}
	}
	return true
}

// volume is the size of dir's volume and what a normal user may still write, in bytes.
func volume(dir string) (total, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return int64(st.Blocks) * int64(st.Bsize), int64(st.Bavail) * int64(st.Bsize), nil
}

func margin(total int64) int64    { return min(max(total/64, minMargin), maxMargin) }
func deletable(total int64) int64 { return min(max(total/64, minFreeing), maxFreeing) }

// room is what may be written now. If it is too little for the group, but a compaction is about to give space back or a
// reclaim may, it waits for that, so that a store that is nearly full does not refuse now what it takes a moment later.
// Run by the committer, who meanwhile serves the reclaim.
func (s *Store) room(group []*request) room {
	end := time.Now().Add(settle)
	for {
		m, busy := s.measure()
		if m.fits(group) {
			return m
		}
		reclaiming := s.wantReclaim()
		if !reclaiming && (!busy || time.Now().After(end)) {
			return m
		}
		select {
		case work := <-s.exclusive:
			work()
		case <-s.closing: // nobody reclaims any more
			return m
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// measure is what may be written now, and whether table files are being made or dropped.
func (s *Store) measure() (m room, busy bool) {
	if s.dir == "" {
		return room{1 << 62, 1 << 62}, false
	}
	total, free, err := volume(s.dir)
	if err != nil {
		s.log.Error("cannot tell the free space, so nothing is written", "error", err)
		return room{}, false
	}
	if bound := s.size.Load(); free > 4*(bound+margin(total)+int64(s.reserve)) {
		return room{free / 2, free / 2}, false // plenty: every byte of the store could be written again
	}
	tables, logs := s.db.Tables(), logBytes(s.dir)
	s.size.Store(logs + tableBytes(tables))
	kept := max(logs+compacting(tables)+margin(total), int64(s.reserve))
	m = room{any: free - kept - deletable(total), frees: free - kept}
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.sst")) // the pattern is valid
	return m, len(files) != len(tables)
}

// logBytes is what the memtable logs take on disk: at most that much is written when they are turned into tables.
func logBytes(dir string) int64 { return allocated(dir, "*.mem") }

// allocated is what the files take on disk; the logs are sparse.
func allocated(dir, pattern string) (n int64) {
	names, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat(name, &st) == nil { // gone meanwhile: no bytes
			n += st.Blocks * 512
		}
	}
	return n
}

// roomToOpen checks before Badger touches anything that the logs of the last process can be turned into tables.
func (s *Store) roomToOpen() error { return s.roomFor(logBytes(s.dir) + 1<<20) }

// roomToFlush checks that Badger can write its memtables out.
func (s *Store) roomToFlush() error {
	if s.dir == "" {
		return nil
	}
	return s.roomFor(logBytes(s.dir))
}

func (s *Store) roomFor(need int64) error {
	_, free, err := volume(s.dir)
	if err == nil && free < need {
		err = fmt.Errorf("%w: %d bytes are free in %s, %d are needed", kv.ErrNoSpace, free, s.dir, need)
	}
	return err
}

// Usage reports the volume, with the reserve taken off what is free.
func (s *Store) Usage() (kv.Usage, error) {
	if s.dir == "" {
		return kv.Usage{Total: 1 << 40, Free: 1 << 39}, nil
	}
	var u kv.Usage
	err := s.use(func() error {
		total, _, err := volume(s.dir)
		m, _ := s.measure()
		u = kv.Usage{Total: uint64(total), Free: uint64(max(m.any, 0)), Used: uint64(allocated(s.dir, "*"))}
		return err
	})
	return u, err
}
