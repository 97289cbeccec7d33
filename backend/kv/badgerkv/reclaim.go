package badgerkv

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"memoryfs/backend/kv"
)

const (
	discardEvery = time.Second      // how often Badger is told which old versions nobody reads
	collectEvery = 10 * time.Minute // value-log collection
)

// worthwhile is how much must have been written over, or one key deleted, for a reclaim to be tried.
const worthwhile = 1 << 20 // bytes

// reclaimer is the state of the work that gives back the space of deleted keys.
type reclaimer struct {
	kick chan struct{} // buffered: one wish is as good as many
	mu   sync.Mutex    // one reclaim at a time; held over Flatten and over a wait for the committer

	state   sync.Mutex
	running bool      // wished for or at work; guarded by state
	rest    time.Time // no reclaim before; guarded by state
}

// housekeeping lets Badger forget what no snapshot needs, collects the value log, and reclaims when the committer asks.
func (s *Store) housekeeping() {
	discard, gc := time.NewTicker(discardEvery), time.NewTicker(collectEvery)
	defer discard.Stop()
	defer gc.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-discard.C:
			s.discard()
		case <-gc.C:
			s.collect()
		case <-s.reclaimer.kick:
			if err := s.reclaim(context.Background()); err != nil {
				s.log.Warn("space was not reclaimed", "error", err)
			}
		}
	}
}

// wantReclaim asks for a reclaim if one may help, and says whether one is on its way. It takes as long as it rests: a store
// on a full volume spends at most half its time on it.
func (s *Store) wantReclaim() bool {
	r := &s.reclaimer
	r.state.Lock()
	defer r.state.Unlock()
	if !r.running && s.stale.Load() >= worthwhile && time.Now().After(r.rest) && s.roomToReclaim() == nil {
		r.running = true
		r.kick <- struct{}{} // has room: it is empty unless running
	}
	return r.running
}

func (s *Store) reclaimed(began time.Time) {
	r := &s.reclaimer
	r.state.Lock()
	defer r.state.Unlock()
	r.running = false
	r.rest = time.Now().Add(time.Since(began))
}

// Compact forgets the watch batches before upto and collects the value log. A store below 512 MiB also writes deleted keys
// out of its tables; in a larger one that is left to Badger until the volume is full. It does not stop for ctx once
// that has begun: seconds.
func (s *Store) Compact(ctx context.Context, upto kv.Rev) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.use(func() error {
		s.mu.Lock()
		s.ring.forget(min(upto, s.published+1))
		s.mu.Unlock()
		s.discard()
		s.collect()
		if s.stale.Load() < worthwhile || s.size.Load() > steady {
			return nil
		}
		return s.reclaim(ctx)
	})
}

// discard tells Badger below which revision nobody reads any more.
func (s *Store) discard() { s.db.SetDiscardTs(uint64(s.oldest())) }

func (s *Store) oldest() kv.Rev {
	s.mu.Lock()
	defer s.mu.Unlock()
	low := s.published
	for rev := range s.active {
		low = min(low, rev)
	}
	return low
}

// collect rewrites value-log files that are half garbage. Ours stay empty (sizes.go); a store that was filled by other
// settings may have some.
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
		err := s.db.RunValueLogGC(0.5)
		if errors.Is(err, badger.ErrNoRewrite) || errors.Is(err, badger.ErrRejected) {
			return
		}
		if err != nil {
			s.log.Warn("value log was not collected", "error", err)
			return
		}
	}
}

// reclaim writes out the memtables and compacts everything into the last level, where deleted keys and old versions end.
// Badger would get there too, but only with the megabytes of writes that a full volume has no room for. Commits wait
// while the memtables are written out; the compaction runs beside them.
func (s *Store) reclaim(ctx context.Context) error {
	s.reclaimer.mu.Lock()
	defer s.reclaimer.mu.Unlock()
	start := time.Now()
	defer s.reclaimed(start)
	s.stale.Store(0)
	if s.rev() == 0 || s.dir == "" {
		return nil
	}
	if err := s.roomToReclaim(); err != nil {
		return err
	}
	s.discard()
	if err := s.alone(ctx, s.writeOut); err != nil {
		return err
	}
	if err := s.db.Flatten(1); err != nil {
		return translate(err)
	}
	s.log.Info("space of deleted keys was reclaimed", "took", time.Since(start))
	return nil
}

// roomToReclaim: one more copy of everything.
func (s *Store) roomToReclaim() error {
	if s.dir == "" {
		return nil
	}
	return s.roomFor(logBytes(s.dir) + tableBytes(s.db.Tables()))
}

// alone runs work on the committer's goroutine.
func (s *Store) alone(ctx context.Context, work func() error) error {
	result := make(chan error, 1)
	select {
	case s.exclusive <- func() { result <- work() }:
		return <-result
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return kv.ErrClosed
	}
}

// writeOut turns the memtables into tables. Badger has no call for that but DropPrefix, which does so before it drops;
// so it drops a key that is put for the purpose. Run by the committer.
func (s *Store) writeOut() error {
	if s.failed.Load() {
		return unsent(errFailed)
	}
	rev := uint64(s.rev())
	txn := s.db.NewTransactionAt(rev, true)
	defer txn.Discard()
	err := txn.Set(scratchKey(), nil)
	if err == nil {
		err = txn.CommitAt(rev, nil)
	}
	if err == nil {
		err = s.db.DropPrefix(scratchKey())
	}
	if err != nil {
		s.failed.Store(true) // the memtable may be gone, see trap 6
		s.log.Error("memtables were not written out, the store must be opened again", "error", err)
		return unsent(translate(err))
	}
	return nil
}
