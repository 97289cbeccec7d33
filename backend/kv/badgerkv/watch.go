package badgerkv

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"memoryfs/backend/kv"
)

// ring keeps the last commits' keys for the watchers. Guarded by Store.mu.
type ring struct {
	batches []kv.Batch // in order
	start   kv.Rev     // every commit from here on is in batches
	cond    *sync.Cond
}

// ringSize bounds how far a watcher may fall behind before it is cut off, in commits.
const ringSize = 1 << 14

// publish makes a group visible to snapshots and watchers.
func (s *Store) publish(rev kv.Rev, batches []kv.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = rev
	s.ring.batches = append(s.ring.batches, batches...)
	if over := len(s.ring.batches) - ringSize; over > ringSize/4 { // move rarely
		s.ring.trim(over)
	}
	s.ring.cond.Broadcast()
}

// skip leaves out the revisions of a group that failed: they are never used again.
func (s *Store) skip(rev kv.Rev) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = rev
	s.ring.batches = nil // what the failed group did is not known: watchers start anew
	s.ring.start = rev + 1
	s.ring.cond.Broadcast()
}

func (r *ring) trim(n int) {
	r.start = r.batches[n-1].Rev + 1
	r.batches = append([]kv.Batch(nil), r.batches[n:]...)
}

type watcher struct {
	s      *Store
	prefix []byte
	next   kv.Rev
	closed bool
}

// Watch starts at from. ErrCompacted if the ring does not reach back that far.
func (s *Store) Watch(_ context.Context, prefix []byte, from kv.Rev) (kv.Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("watch: %w: %w", kv.ErrUnavailable, kv.ErrClosed)
	}
	if from < s.ring.start {
		return nil, fmt.Errorf("watch from %d: %w (oldest is %d)", from, kv.ErrCompacted, s.ring.start)
	}
	return &watcher{s: s, prefix: bytes.Clone(prefix), next: from}, nil
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
		case w.closed, w.s.closed:
			return kv.Batch{}, kv.ErrClosed
		case ctx.Err() != nil:
			return kv.Batch{}, ctx.Err()
		case w.next < w.s.ring.start:
			return kv.Batch{}, kv.ErrSlow
		}
		if b, ok := w.find(); ok {
			return b, nil
		}
		w.s.ring.cond.Wait()
	}
}

// find returns the next batch that touches the prefix.
func (w *watcher) find() (kv.Batch, bool) {
	all := w.s.ring.batches
	lo, hi := 0, len(all)
	for lo < hi {
		if mid := (lo + hi) / 2; all[mid].Rev < w.next {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for _, b := range all[lo:] {
		w.next = b.Rev + 1
		var touched [][]byte
		for _, k := range b.Keys {
			if bytes.HasPrefix(k, w.prefix) {
				touched = append(touched, k)
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

// Compact forgets the batches before upto, and reclaims value-log space.
func (s *Store) Compact(ctx context.Context, upto kv.Rev) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	n := 0
	for n < len(s.ring.batches) && s.ring.batches[n].Rev < upto {
		n++
	}
	if n > 0 {
		s.ring.trim(n)
	}
	s.mu.Unlock()
	s.collect()
	return nil
}
