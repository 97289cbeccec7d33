package badgerkv

import (
	"sync"

	"memoryfs/backend/kv"
)

// ring keeps the last commits' keys for the watchers. Guarded by Store.mu.
type ring struct {
	batches []kv.Batch // in order; keys are never written to
	size    int        // bytes of keys and their bookkeeping
	start   kv.Rev     // every commit from here on is in batches
	cond    *sync.Cond // new batches, a closed watcher or store, an ended context
}

// How far a watcher may fall behind before it is cut off.
const (
	ringBatches = 1 << 14 // commits
	ringBytes   = 8 << 20 // bytes of keys
	keyOverhead = 32      // bytes, for the bound only
)

// publish makes a group visible to snapshots and watchers.
func (s *Store) publish(rev kv.Rev, batches []kv.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = rev
	s.ring.append(batches)
	s.ring.cond.Broadcast()
}

func (r *ring) append(batches []kv.Batch) {
	r.batches = append(r.batches, batches...)
	for _, b := range batches {
		r.size += weight(b)
	}
	if len(r.batches) <= ringBatches && r.size <= ringBytes {
		return
	}
	// Cut a quarter more than needed, so that the copying is rare.
	n, size := 0, r.size
	for n < len(r.batches) && (len(r.batches)-n > ringBatches*3/4 || size > ringBytes*3/4) {
		size -= weight(r.batches[n])
		n++
	}
	if n > 0 {
		r.cut(n, r.batches[n-1].Rev+1)
	}
}

// forget drops the batches below upto; a watcher that wanted them is cut off.
func (r *ring) forget(upto kv.Rev) {
	if upto <= r.start {
		return
	}
	n := 0
	for n < len(r.batches) && r.batches[n].Rev < upto {
		n++
	}
	r.cut(n, upto)
	r.cond.Broadcast()
}

func (r *ring) cut(n int, start kv.Rev) {
	for _, b := range r.batches[:n] {
		r.size -= weight(b)
	}
	r.batches = append([]kv.Batch(nil), r.batches[n:]...)
	r.start = start
}

func weight(b kv.Batch) int {
	n := keyOverhead
	for _, k := range b.Keys {
		n += len(k) + keyOverhead
	}
	return n
}
