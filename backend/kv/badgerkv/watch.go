package badgerkv

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"memoryfs/backend/kv"
)

// watcher is a place in the ring: it holds no memory of its own, and a stalled one costs nothing.
type watcher struct {
	s      *Store
	prefix []byte
	next   kv.Rev // guarded by Store.mu
	closed bool   // guarded by Store.mu
}

// Watch starts at from; 0 is the same as 1. ErrCompacted if the ring does not reach back that far: it holds the last
// commits of this process only (16,384 of them, or 8 MiB of keys).
func (s *Store) Watch(ctx context.Context, prefix []byte, from kv.Rev) (kv.Watcher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from = max(from, 1)
	var w *watcher
	err := s.use(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if from < s.ring.start {
			return fmt.Errorf("%w: from %d, the oldest is %d", kv.ErrCompacted, from, s.ring.start)
		}
		w = &watcher{s: s, prefix: bytes.Clone(prefix), next: from}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return w, nil
}

func (w *watcher) Next(ctx context.Context) (kv.Batch, error) {
	stop := context.AfterFunc(ctx, func() {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.ring.cond.Broadcast()
	})
	defer stop()
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for {
		switch {
		case w.closed, w.s.closed.Load():
			return kv.Batch{}, kv.ErrClosed
		case ctx.Err() != nil:
			return kv.Batch{}, ctx.Err()
		case w.next < w.s.ring.start:
			return kv.Batch{}, fmt.Errorf("%w: at %d, the oldest is %d", kv.ErrSlow, w.next, w.s.ring.start)
		}
		if b, ok := w.find(); ok {
			return b, nil
		}
		w.s.ring.cond.Wait()
	}
}

// find returns the next batch that touches the prefix. The keys are the caller's own.
func (w *watcher) find() (kv.Batch, bool) {
	all := w.s.ring.batches
	from := sort.Search(len(all), func(i int) bool { return all[i].Rev >= w.next })
	for _, b := range all[from:] {
		w.next = b.Rev + 1
		var touched [][]byte
		for _, k := range b.Keys {
			if bytes.HasPrefix(k, w.prefix) {
				touched = append(touched, bytes.Clone(k))
			}
		}
		if len(touched) > 0 {
			return kv.Batch{Rev: b.Rev, Keys: touched}, true
		}
	}
	return kv.Batch{}, false
}

func (w *watcher) Close() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.closed = true
	w.s.ring.cond.Broadcast()
}
