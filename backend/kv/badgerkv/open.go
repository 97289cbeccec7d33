package badgerkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/hashicorp/go-hclog"

	"memoryfs/backend/kv"
)

// ErrLocked: another process holds the store.
var ErrLocked = errors.New("the store is held by another process")

// Options of Open. Zero values choose by the size of the volume.
type Options struct {
	InMemory bool         // nothing on disk; for tests
	Logger   hclog.Logger // nil: silent
	Reserve  uint64       // bytes kept free on the volume; see reserve
}

// Store is the engine.
type Store struct {
	db      *badger.DB
	dir     string // "" in memory
	lock    *os.File
	log     hclog.Logger
	limits  kv.Caps
	reserve uint64
	queue   chan *request
	closing chan struct{}
	done    sync.WaitGroup

	mu        sync.Mutex
	published kv.Rev
	active    map[kv.Rev]int // snapshots open at a revision
	ring      ring
	closed    bool
	once      sync.Once
}

const (
	maxGroup  = 64      // commits written with one fsync
	maxValue  = 1 << 20 // bytes
	maxCommit = 1 << 20 // bytes of keys and values
	maxOps    = 2048

	bigMemtable   = 32 << 20 // bytes; a group may hold 15 % of it
	smallMemtable = 8 << 20
	smallVolume   = 2 << 30
	lockName      = "memoryfs.lock"
)

// Open opens or makes the engine's files in dir. ErrLocked if another process has them.
func Open(dir string, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	s := &Store{dir: dir, log: o.Logger, queue: make(chan *request, 4*maxGroup), closing: make(chan struct{}), active: map[kv.Rev]int{},
		limits: kv.Caps{MaxCommitBytes: maxCommit, MaxCommitOps: maxOps, MaxValueBytes: maxValue}}
	memtable := int64(smallMemtable)
	if o.InMemory {
		s.dir = ""
	} else if err := s.prepare(&memtable, o.Reserve); err != nil {
		return nil, err
	}
	db, err := badger.OpenManaged(s.options(memtable))
	if err != nil {
		s.unlock()
		return nil, fmt.Errorf("open the key-value engine in %s: %w", dir, err)
	}
	s.db = db
	s.published = kv.Rev(db.MaxVersion())
	s.ring.start = s.published + 1
	s.ring.cond = sync.NewCond(&s.mu)
	s.done.Go(s.commitLoop)
	s.done.Go(s.housekeeping)
	return s, nil
}

// prepare takes the lock and sizes things by the volume.
func (s *Store) prepare(memtable *int64, reserve uint64) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", s.dir, err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the store: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", s.dir, ErrLocked)
		}
		return fmt.Errorf("lock %s: %w", s.dir, err)
	}
	s.lock = f
	total, _, err := volume(s.dir)
	if err != nil {
		s.unlock()
		return err
	}
	if total >= smallVolume {
		*memtable = bigMemtable
	}
	if s.reserve = reserve; reserve == 0 {
		s.reserve = defaultReserve(total)
	}
	return nil
}

func (s *Store) options(memtable int64) badger.Options {
	o := badger.DefaultOptions(s.dir).WithLogger(logger{s.log}).
		WithInMemory(s.dir == "").
		WithSyncWrites(true).
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithMemTableSize(memtable).
		WithValueThreshold(maxValue). // values stay in the tables: compressed, and no value-log rewriting
		WithValueLogFileSize(16 << 20).
		WithNumMemtables(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(4).
		WithNumCompactors(2).
		WithBlockCacheSize(32 << 20).
		WithIndexCacheSize(32 << 20).
		WithCompression(options.ZSTD).WithZSTDCompressionLevel(1).
		WithMetricsEnabled(false)
	return o
}

// Close waits for the commits that were taken, and refuses the rest.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.ring.cond.Broadcast()
		s.mu.Unlock()
		close(s.closing)
		s.done.Wait()
		err = s.db.Close()
		s.unlock()
	})
	return err
}

func (s *Store) unlock() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// Caps are the limits of one commit.
func (s *Store) Caps() kv.Caps { return s.limits }

// housekeeping lets Badger forget what no snapshot needs, and reclaims value-log space.
func (s *Store) housekeeping() {
	discard, gc := time.NewTicker(time.Second), time.NewTicker(10*time.Minute)
	defer discard.Stop()
	defer gc.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-discard.C:
			s.db.SetDiscardTs(uint64(s.oldest()))
		case <-gc.C:
			s.collect()
		}
	}
}

func (s *Store) collect() {
	if s.dir == "" {
		return
	}
	for {
		select {
		case <-s.closing:
			return
		default:
		}
		if err := s.db.RunValueLogGC(0.5); err != nil {
			if !errors.Is(err, badger.ErrNoRewrite) && !errors.Is(err, badger.ErrRejected) {
				s.log.Warn("value log was not collected", "error", err)
			}
			return
		}
	}
}

// oldest is the revision below which nobody reads any more.
func (s *Store) oldest() kv.Rev {
	s.mu.Lock()
	defer s.mu.Unlock()
	low := s.published
	for rev := range s.active {
		low = min(low, rev)
	}
	return low
}

// The stored form: user keys begin with keyByte, and every value with the revision of its commit.
const (
	keyByte = 'k'
	revSize = 8
)

func dbKey(key []byte) []byte {
	return append(append(make([]byte, 0, len(key)+1), keyByte), key...)
}

func dbValue(rev kv.Rev, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, revSize+len(value)), uint64(rev))
	return append(b, value...)
}

// logger hands Badger's lines to hclog.
type logger struct{ hclog.Logger }

func (l logger) Errorf(f string, a ...any)   { l.Error(fmt.Sprintf(f, a...)) }
func (l logger) Warningf(f string, a ...any) { l.Warn(fmt.Sprintf(f, a...)) }
func (l logger) Infof(f string, a ...any)    { l.Debug(fmt.Sprintf(f, a...)) }
func (l logger) Debugf(f string, a ...any)   { l.Trace(fmt.Sprintf(f, a...)) }
