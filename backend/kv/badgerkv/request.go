package badgerkv

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"memoryfs/backend/kv"
)

// request is a Commit on its way: the caller's keys and values, copied into their stored form by the caller's goroutine.
type request struct {
	guards []kv.Guard // keys in stored form
	writes []write
	cost   int64 // bytes a transaction, the log and a table are charged for it
	frees  bool  // may use the part of the reserve that is kept for deletes
	state  atomic.Int32
	reply  chan answer // buffered: the committer never waits
}

// write is one key in stored form; value nil: delete.
type write struct{ key, value []byte }

type answer struct {
	rev kv.Rev
	err error
}

// The states of a request. Whoever moves it out of queued decides its fate.
const (
	queued int32 = iota
	taken
	cancelled
)

// grace is how long a caller whose context ended still waits for the true answer of a commit that was taken.
const grace = time.Second

// Commit queues for the committer. A ctx that ends before the commit is taken is ErrUnavailable, surely without effect;
// afterwards Commit waits up to a second more for the true answer, then it is ErrAmbiguous.
// The caller may use guards and ops again as soon as Commit has returned.
func (s *Store) Commit(ctx context.Context, guards []kv.Guard, ops []kv.Op) (kv.Rev, error) {
	r, err := newRequest(guards, ops)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, unsent(ctx.Err())
	}
	s.gate.RLock()
	if s.closed.Load() {
		s.gate.RUnlock()
		return 0, unsent(kv.ErrClosed)
	}
	select {
	case s.queue <- r:
		s.gate.RUnlock()
	case <-ctx.Done():
		s.gate.RUnlock()
		return 0, unsent(ctx.Err())
	}
	select {
	case a := <-r.reply:
		return a.rev, a.err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(queued, cancelled) {
		return 0, unsent(ctx.Err())
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case a := <-r.reply:
		return a.rev, a.err
	case <-t.C:
		return 0, fmt.Errorf("%w: %w", kv.ErrAmbiguous, ctx.Err())
	}
}

// newRequest checks a commit against the limits and copies it. ErrInvalid, ErrTooLarge.
func newRequest(guards []kv.Guard, ops []kv.Op) (*request, error) {
	switch {
	case len(ops) == 0:
		return nil, fmt.Errorf("%w: no operations", kv.ErrInvalid)
	case len(ops) > maxOps:
		return nil, fmt.Errorf("%w: %d operations, at most %d", kv.ErrTooLarge, len(ops), maxOps)
	case len(guards) > maxGuards:
		return nil, fmt.Errorf("%w: %d guards, at most %d", kv.ErrTooLarge, len(guards), maxGuards)
	}
	r := &request{reply: make(chan answer, 1), guards: make([]kv.Guard, 0, len(guards)), writes: make([]write, 0, len(ops))}
	if err := r.takeOps(ops); err != nil {
		return nil, err
	}
	for _, g := range guards {
		if g.Kind < kv.GuardRev || g.Kind > kv.GuardEmpty || len(g.Key) == 0 && g.Kind != kv.GuardEmpty {
			return nil, fmt.Errorf("%w: guard of kind %d on a key of %d bytes", kv.ErrInvalid, g.Kind, len(g.Key))
		}
		r.guards = append(r.guards, kv.Guard{Kind: g.Kind, Key: dbKey(g.Key), Rev: g.Rev})
	}
	return r, nil
}

func (r *request) takeOps(ops []kv.Op) error {
	var size, puts, deletes int
	seen := make(map[string]struct{}, len(ops))
	for _, op := range ops {
		switch {
		case op.Kind != kv.OpPut && op.Kind != kv.OpDelete, len(op.Key) == 0:
			return fmt.Errorf("%w: operation of kind %d on a key of %d bytes", kv.ErrInvalid, op.Kind, len(op.Key))
		case len(op.Key) > maxKey:
			return fmt.Errorf("%w: key of %d bytes, at most %d", kv.ErrTooLarge, len(op.Key), maxKey)
		case op.Kind == kv.OpPut && len(op.Value) > maxValue:
			return fmt.Errorf("%w: value of %d bytes, at most %d", kv.ErrTooLarge, len(op.Value), maxValue)
		}
		w := write{key: dbKey(op.Key)}
		if _, twice := seen[string(w.key)]; twice {
			return fmt.Errorf("%w: a key appears twice: %q", kv.ErrInvalid, op.Key)
		}
		seen[string(w.key)] = struct{}{}
		size += len(op.Key)
		if op.Kind == kv.OpDelete {
			deletes++
		} else {
			w.value = dbValue(op.Value)
			size += len(op.Value)
			puts += len(op.Key) + len(op.Value)
		}
		r.cost += int64(len(w.key) + len(w.value) + entryCost)
		r.writes = append(r.writes, w)
		if size > maxCommit {
			return fmt.Errorf("%w: more than %d bytes", kv.ErrTooLarge, maxCommit)
		}
	}
	r.frees = deletes > 0 && puts <= freeing
	return nil
}
