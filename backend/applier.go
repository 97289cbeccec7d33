package backend

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"memoryfs/backend/kv"
	"memoryfs/backend/store"
)

// applyTimeout bounds how long a commit waits for other mounts' caches. It only runs out when a subscriber's kernel is
// stuck, or when two mounts change the same directory at the same instant (each then holds a lock the other's
// invalidation needs); the invalidation still happens, the acknowledgement does not wait for it.
const applyTimeout = 250 * time.Millisecond

// applier carries every commit from the store's one watch to the subscribers, in revision order.
type applier struct {
	store *store.Store
	log   hclog.Logger

	mu       sync.Mutex
	cond     *sync.Cond
	applied  kv.Rev
	closed   bool
	next     int
	subs     map[int]*subscriber
	onReload map[int]func()
}

// subscriber is one mount. lagging is set while it has not finished a batch in time: nobody waits for it then, so one
// stuck kernel does not slow the others.
type subscriber struct {
	fn      func(store.Batch) <-chan struct{}
	lagging <-chan struct{} // only the applier's goroutine touches it
}

func (s *subscriber) behind() bool {
	if s.lagging == nil {
		return false
	}
	select {
	case <-s.lagging:
		s.lagging = nil
		return false
	default:
		return true
	}
}

func newApplier(s *store.Store, from kv.Rev, log hclog.Logger) *applier {
	a := &applier{store: s, log: log, applied: from, subs: map[int]*subscriber{}, onReload: map[int]func(){}}
	a.cond = sync.NewCond(&a.mu)
	return a
}

func (a *applier) subscribe(fn func(store.Batch) <-chan struct{}) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := a.next
	a.next++
	a.subs[id] = &subscriber{fn: fn}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.subs, id)
	}
}

func (a *applier) onPolicy(fn func()) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := a.next
	a.next++
	a.onReload[id] = fn
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.onReload, id)
	}
}

func (a *applier) policyChanged() {
	a.mu.Lock()
	fns := make([]func(), 0, len(a.onReload))
	for _, fn := range a.onReload {
		fns = append(fns, fn)
	}
	a.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

// run watches until ctx ends. A watcher that was cut off starts again after what was applied; if that is compacted, the
// gap is handed on as an empty batch, which means "anything may have changed".
func (a *applier) run(ctx context.Context) {
	for ctx.Err() == nil {
		a.mu.Lock()
		from := a.applied + 1
		a.mu.Unlock()
		err := a.watch(ctx, from)
		if ctx.Err() != nil {
			return
		}
		a.log.Warn("watch of the store ended, starting again", "error", err)
		if errors.Is(err, kv.ErrCompacted) {
			if rev, err := a.store.Rev(ctx); err == nil {
				a.apply(store.Batch{Rev: rev})
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (a *applier) watch(ctx context.Context, from kv.Rev) error {
	w, err := a.store.Watch(ctx, from)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		b, err := w.Next(ctx)
		if err != nil {
			return err
		}
		a.apply(b)
	}
}

// apply hands b to every subscriber and waits for those that keep up, at most applyTimeout in all.
func (a *applier) apply(b store.Batch) {
	a.mu.Lock()
	subs := make([]*subscriber, 0, len(a.subs))
	for _, s := range a.subs {
		subs = append(subs, s)
	}
	a.mu.Unlock()
	waits := make([]<-chan struct{}, len(subs))
	for i, s := range subs {
		waits[i] = s.fn(b)
	}
	timeout := time.NewTimer(applyTimeout)
	defer timeout.Stop()
	expired := false
	for i, s := range subs {
		if waits[i] == nil || s.behind() {
			continue
		}
		if expired {
			s.lagging = waits[i]
			continue
		}
		select {
		case <-waits[i]:
		case <-timeout.C:
			a.log.Warn("a mount did not invalidate in time", "revision", b.Rev)
			s.lagging, expired = waits[i], true
		}
	}
	a.mark(b.Rev)
}

func (a *applier) mark(rev kv.Rev) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied = max(a.applied, rev)
	a.cond.Broadcast()
}

// wait returns when rev has been applied, or after applyTimeout.
func (a *applier) wait(rev kv.Rev) {
	if rev == 0 {
		return
	}
	timer := time.AfterFunc(applyTimeout, a.cond.Broadcast)
	defer timer.Stop()
	deadline := time.Now().Add(applyTimeout)
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.applied < rev && !a.closed && time.Now().Before(deadline) {
		a.cond.Wait()
	}
}

func (a *applier) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.cond.Broadcast()
}
