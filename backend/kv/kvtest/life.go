package kvtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"memoryfs/backend/kv"
)

func lifeCases() []testCase {
	return []testCase{
		{"EverythingAnswersAfterClose", afterClose},
		{"CloseUnderLoadLosesNoAnswer", closeUnderLoad},
		{"CancelledCommitHasNoEffect", cancelledCommit},
		{"CancelledCommitNeverLies", cancelRace},
		{"UsageIsPlausible", usage},
	}
}

func afterClose(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.put("a", "1")
	p, w := f.snap(), f.watch("", 2)
	got := make(chan error, 1)
	go func() {
		_, err := w.Next(f.ctx)
		got <- err
	}()
	if err := f.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatalf("close again: %v", err)
	}
	if err := <-got; !is(err, kv.ErrClosed) {
		t.Errorf("next that waited: %v", err)
	}
	if _, err := f.Commit(f.ctx, nil, []kv.Op{kv.Put([]byte("b"), nil)}); !is(err, kv.ErrUnavailable) {
		t.Errorf("commit: %v", err)
	}
	if _, err := f.Snapshot(f.ctx); !is(err, kv.ErrClosed) {
		t.Errorf("snapshot: %v", err)
	}
	if _, err := f.Watch(f.ctx, nil, 1); !is(err, kv.ErrClosed) {
		t.Errorf("watch: %v", err)
	}
	if _, err := p.Get([]byte("a")); !is(err, kv.ErrClosed) {
		t.Errorf("get: %v", err)
	}
	if _, err := p.List(nil, nil, 1); !is(err, kv.ErrClosed) {
		t.Errorf("list: %v", err)
	}
	if err := f.Compact(f.ctx, 1); !is(err, kv.ErrClosed) {
		t.Errorf("compact: %v", err)
	}
	p.Close()
	w.Close()
}

// Every commit is answered, and readers that are at work are neither torn nor crashed.
func closeUnderLoad(t *testing.T, s kv.Store) {
	f := with(t, s)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, err := f.Commit(f.ctx, nil, []kv.Op{kv.Put(fmt.Appendf(nil, "%d/%d", n, i), nil)})
				if err != nil {
					if !is(err, kv.ErrUnavailable) {
						t.Errorf("commit: %v", err)
					}
					return
				}
			}
		})
		wg.Go(func() {
			for {
				p, err := f.Snapshot(f.ctx)
				if err != nil {
					if !is(err, kv.ErrClosed) {
						t.Errorf("snapshot: %v", err)
					}
					return
				}
				if _, err := p.List(nil, nil, 100); err != nil && !is(err, kv.ErrClosed) {
					t.Errorf("list: %v", err)
				}
				p.Close()
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	if err := f.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wg.Wait()
}

func cancelledCommit(t *testing.T, s kv.Store) {
	f := with(t, s)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.Commit(ctx, nil, []kv.Op{kv.Put([]byte("a"), nil)})
	if !is(err, kv.ErrUnavailable) || !is(err, context.Canceled) {
		t.Fatalf("commit: %v", err)
	}
	f.absent("a")
	if _, err := f.Snapshot(ctx); !is(err, context.Canceled) {
		t.Fatalf("snapshot: %v", err)
	}
}

// Success means that it happened, ErrUnavailable that it did not; only ErrAmbiguous leaves it open.
func cancelRace(t *testing.T, s kv.Store) {
	f := with(t, s)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 40 {
				ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*n)*20*time.Microsecond)
				key := fmt.Sprintf("%d/%d", n, i)
				_, err := f.Commit(ctx, nil, []kv.Op{kv.Put([]byte(key), nil)})
				cancel()
				p, serr := f.Snapshot(f.ctx)
				if serr != nil {
					t.Errorf("snapshot: %v", serr)
					return
				}
				e, gerr := p.Get([]byte(key))
				p.Close()
				switch {
				case gerr != nil:
					t.Errorf("get: %v", gerr)
				case err == nil && e[0].Rev == 0:
					t.Errorf("%s: answered, but absent", key)
				case errors.Is(err, kv.ErrUnavailable) && e[0].Rev != 0:
					t.Errorf("%s: %v, but present", key, err)
				case err != nil && !is(err, kv.ErrUnavailable) && !is(err, kv.ErrAmbiguous):
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	wg.Wait()
}

func usage(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.put("a", "1")
	u, err := f.Usage()
	if err != nil || u.Total == 0 || u.Free > u.Total || u.Used > u.Total {
		t.Fatalf("usage: %+v, %v", u, err)
	}
	c := f.Caps()
	if c.MaxValueBytes < 512<<10 || c.MaxCommitBytes < c.MaxValueBytes || c.MaxCommitOps < 64 {
		t.Fatalf("caps: %+v", c)
	}
}
