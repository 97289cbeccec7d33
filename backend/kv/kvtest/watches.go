package kvtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"memoryfs/backend/kv"
)

func watchCases() []testCase {
	return []testCase{
		{"WatchHasNoGapNoReorderingNoSplit", watchOrder},
		{"WatchSeesOnlyItsPrefix", watchPrefix},
		{"WatchResumesFromARevision", watchResume},
		{"WatchBlocksUntilACommit", watchBlocks},
		{"CommitIsReadableBeforeItIsWatched", watchAfterPublish},
		{"WatchOfACompactedRevision", watchCompacted},
		{"StalledWatcherNeverStopsWritersAndIsCutOff", watchStalled},
		{"WatchEndsWithItsContextAndClose", watchEnds},
	}
}

// watch is closed at the end of the test.
func (f *fixture) watch(prefix string, from kv.Rev) kv.Watcher {
	f.Helper()
	w, err := f.Watch(f.ctx, []byte(prefix), from)
	if err != nil {
		f.Fatalf("watch %q from %d: %v", prefix, from, err)
	}
	f.Cleanup(w.Close)
	return w
}

// next must be the batch of rev with exactly these keys.
func (f *fixture) next(w kv.Watcher, rev kv.Rev, keys ...string) {
	f.Helper()
	b, err := w.Next(f.ctx)
	if err != nil {
		f.Fatalf("next: %v; want revision %d", err, rev)
	}
	var got []string
	for _, k := range b.Keys {
		got = append(got, string(k))
	}
	slices.Sort(got)
	if b.Rev != rev || !slices.Equal(got, keys) {
		f.Fatalf("batch %d %q; want %d %q", b.Rev, got, rev, keys)
	}
}

func watchOrder(t *testing.T, s kv.Store) {
	f := with(t, s)
	w := f.watch("k/", 1)
	const writers, each = 8, 25
	var mu sync.Mutex
	want := map[kv.Rev]string{}
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("k/%d/%02d", n, i)
				rev, err := f.Commit(f.ctx, nil, []kv.Op{kv.Put([]byte(id+"/a"), nil), kv.Put([]byte("else"), nil), kv.Delete([]byte(id + "/b"))})
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				mu.Lock()
				want[rev] = id
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(want) != writers*each {
		t.Fatalf("%d commits have %d revisions", writers*each, len(want))
	}
	revs := make([]kv.Rev, 0, len(want))
	for rev := range want {
		revs = append(revs, rev)
	}
	slices.Sort(revs)
	for _, rev := range revs {
		f.next(w, rev, want[rev]+"/a", want[rev]+"/b")
	}
}

func watchPrefix(t *testing.T, s kv.Store) {
	f := with(t, s)
	w, all := f.watch("a/", 0), f.watch("", 0)
	first := f.put("b/1", "")
	second := f.commit(nil, kv.Put([]byte("a/1"), nil), kv.Put([]byte("b/2"), nil))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyExists([]byte("none"))}, kv.Put([]byte("a/2"), nil))
	third := f.commit(nil, kv.Delete([]byte("a/1")))
	f.next(w, second, "a/1")
	f.next(w, third, "a/1")
	f.next(all, first, "b/1")
	f.next(all, second, "a/1", "b/2")
	f.next(all, third, "a/1")
}

func watchResume(t *testing.T, s kv.Store) {
	f := with(t, s)
	var revs []kv.Rev
	for i := range 10 {
		revs = append(revs, f.put(fmt.Sprint("k", i), ""))
	}
	for i, rev := range revs {
		f.next(f.watch("", rev), rev, fmt.Sprint("k", i))
		if i+1 < len(revs) {
			f.next(f.watch("", rev+1), revs[i+1], fmt.Sprint("k", i+1))
		}
	}
	w := f.watch("", f.rev()+1) // the future
	rev := f.put("later", "")
	f.next(w, rev, "later")
}

func watchBlocks(t *testing.T, s kv.Store) {
	f := with(t, s)
	w := f.watch("k", 1)
	short, cancel := context.WithTimeout(f.ctx, 30*time.Millisecond)
	defer cancel()
	if b, err := w.Next(short); !is(err, context.DeadlineExceeded) {
		t.Fatalf("next of an idle store: %v, %v", b, err)
	}
	got := make(chan kv.Batch, 1)
	go func() {
		b, _ := w.Next(f.ctx) // the zero batch on failure
		got <- b
	}()
	rev := f.put("k", "")
	if b := <-got; b.Rev != rev {
		t.Fatalf("a blocked watcher got %d; want %d", b.Rev, rev)
	}
}

func watchAfterPublish(t *testing.T, s kv.Store) {
	f := with(t, s)
	w := f.watch("", 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			if _, err := f.Commit(f.ctx, nil, []kv.Op{kv.Put(fmt.Append(nil, i), nil)}); err != nil {
				t.Errorf("commit: %v", err)
			}
		}
	})
	for range 100 {
		b, err := w.Next(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		p := f.snap()
		e, err := p.Get(b.Keys...)
		if err != nil || p.Rev() < b.Rev || e[0].Rev != b.Rev {
			t.Fatalf("batch %d: a later snapshot is at %d and reads %v, %v", b.Rev, p.Rev(), e, err)
		}
		p.Close()
	}
	wg.Wait()
}

func watchCompacted(t *testing.T, s kv.Store) {
	f := with(t, s)
	first := f.put("a", "")
	second := f.put("b", "")
	behind := f.watch("", first)
	if err := f.Compact(f.ctx, second); err != nil {
		t.Fatalf("compact: %v", err)
	}
	if _, err := f.Watch(f.ctx, nil, first); !is(err, kv.ErrCompacted) {
		t.Fatalf("watch from %d after compact to %d: %v", first, second, err)
	}
	if b, err := behind.Next(f.ctx); !is(err, kv.ErrSlow) {
		t.Fatalf("a watcher behind the compaction: %v, %v", b, err)
	}
	f.next(f.watch("", second), second, "b")
	if err := f.Compact(f.ctx, second+1000); err != nil { // beyond the last one
		t.Fatalf("compact: %v", err)
	}
	w := f.watch("", second+1)
	f.next(w, f.put("c", ""), "c")
}

func watchStalled(t *testing.T, s kv.Store) {
	f := with(t, s)
	stalled := f.watch("", 1)
	f.put("first", "")
	ops := min(f.Caps().MaxCommitOps, 500)
	for i := 0; ; i++ { // large commits, so that any bound is reached soon
		if i == 500 {
			t.Fatal("a watcher that never reads was not cut off after 250,000 keys: its memory has no bound")
		}
		batch := make([]kv.Op, ops)
		for j := range batch {
			batch[j] = kv.Delete(fmt.Appendf(nil, "%0200d", j))
		}
		began := time.Now()
		f.commit(nil, batch...)
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("a commit took %v beside a stalled watcher", took)
		}
		if _, err := f.Watch(f.ctx, nil, 1); is(err, kv.ErrCompacted) {
			break
		}
	}
	if b, err := stalled.Next(f.ctx); !is(err, kv.ErrSlow) {
		t.Fatalf("a watcher that fell behind: %v, %v", b, err)
	}
	w := f.watch("", f.rev()+1)
	f.next(w, f.put("again", ""), "again")
}

func watchEnds(t *testing.T, s kv.Store) {
	f := with(t, s)
	cancelled, cancel := context.WithCancel(f.ctx)
	w := f.watch("", 1)
	got := make(chan error, 1)
	next := func(ctx context.Context) {
		_, err := w.Next(ctx)
		got <- err
	}
	go next(cancelled)
	cancel()
	if err := <-got; !is(err, context.Canceled) {
		t.Fatalf("next under a cancelled context: %v", err)
	}
	f.next(w, f.put("k", ""), "k") // the watcher outlives that call
	go next(f.ctx)
	time.Sleep(5 * time.Millisecond)
	w.Close()
	w.Close()
	if err := <-got; !is(err, kv.ErrClosed) {
		t.Fatalf("next of a closed watcher: %v", err)
	}
}
