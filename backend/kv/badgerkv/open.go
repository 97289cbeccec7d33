package badgerkv

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"memoryfs/backend/kv"
)

// Options of Open. The zero value is right for a store on disk.
type Options struct {
	InMemory bool         // nothing on disk, dir is not used; for tests
	Logger   hclog.Logger // nil: silent
	// Reserve is how many bytes of the volume commits leave free; 0, and whatever is less than Badger may need behind
	// them, is chosen by the size of the store. See space.go.
	Reserve uint64
}

// Store is the engine. Safe for concurrent use.
type Store struct {
	db      *badger.DB
	dir     string   // "" in memory
	lock    *os.File // nil in memory
	log     hclog.Logger
	reserve uint64 // bytes; at least this much is left free

	queue     chan *request // closed by Close, under gate
	exclusive chan func()   // work for the committer's goroutine
	closing   chan struct{}
	done      sync.WaitGroup
	once      sync.Once
	reclaimer reclaimer

	gate   sync.RWMutex // held for reading over every use of db outside of the committer
	closed atomic.Bool  // set under gate
	failed atomic.Bool  // a write failed: db is not to be trusted any more
	size   atomic.Int64 // bytes; at least what tables and logs take
	stale  atomic.Int64 // bytes; what a reclaim may give back, roughly

	mu        sync.Mutex
	published kv.Rev         // guarded by mu
	active    map[kv.Rev]int // snapshots open at a revision; guarded by mu
	ring      ring           // guarded by mu
}

const lockName = "memoryfs.lock"

// Open opens or makes the engine's files in dir. ErrLocked if another process has them, kv.ErrNoSpace if there is no
// room to take over what the last process left in its logs, kv.ErrCorrupt if a table is damaged.
func Open(dir string, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	s := &Store{dir: dir, log: o.Logger, reserve: o.Reserve, active: map[kv.Rev]int{},
		queue: make(chan *request, 4*maxGroup), exclusive: make(chan func()), closing: make(chan struct{}),
		reclaimer: reclaimer{kick: make(chan struct{}, 1)}}
	s.ring.cond = sync.NewCond(&s.mu)
	memtable := int64(memtableSize)
	if o.InMemory {
		s.dir = ""
	} else {
		if err := s.lockDir(); err != nil {
			return nil, err
		}
		if err := s.roomToOpen(); err != nil {
			s.unlock()
			return nil, err
		}
		memtable = memtableFor(dir)
	}
	if err := s.openBadger(memtable); err != nil {
		s.unlock()
		return nil, fmt.Errorf("open the key-value engine in %s: %w", dir, err)
	}
	s.done.Go(s.commitLoop)
	s.done.Go(s.housekeeping)
	return s, nil
}

func (s *Store) openBadger(memtable int64) error {
	l := &logger{Logger: s.log}
	if err := removeUnborn(s.dir); err != nil {
		return err
	}
	db, err := badger.OpenManaged(badgerOptions(s.dir, memtable, l))
	if err != nil {
		return translateOpen(err)
	}
	txn := db.NewTransactionAt(math.MaxUint64, false)
	rev, err := storedRev(txn, counterKey())
	txn.Discard()
	if err == nil && l.damaged.Load() {
		err = fmt.Errorf("%w: a table does not match its checksum", kv.ErrCorrupt)
	}
	if err != nil {
		return errors.Join(translate(err), db.Close())
	}
	s.db = db
	s.published = max(rev, kv.Rev(db.MaxVersion()))
	s.ring.start = s.published + 1
	s.size.Store(logBytes(s.dir) + tableBytes(db.Tables()))
	return nil
}

// lockDir makes dir and takes its lock, which ends with the process.
func (s *Store) lockDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", s.dir, translate(err))
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the store: %w", translate(err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", s.dir, ErrLocked)
		}
		return fmt.Errorf("lock %s: %w", s.dir, err)
	}
	s.lock = f
	return nil
}

func (s *Store) unlock() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// Caps are the limits of one commit.
func (s *Store) Caps() kv.Caps { return caps() }

// rev is the last published revision.
func (s *Store) rev() kv.Rev {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published
}
