package kvtest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"memoryfs/backend/kv"
)

func is(err, want error) bool { return errors.Is(err, want) }

func commitCases() []testCase {
	return []testCase{
		{"CommitIsVisibleAndAtomic", commitIsVisibleAndAtomic},
		{"CommitIsLinearizable", commitIsLinearizable},
		{"RevisionsGrowAndAreNeverReused", revisionsGrow},
		{"EveryKeyCarriesTheRevisionOfItsCommit", keysCarryRevision},
		{"KeyTwiceInACommitIsInvalid", keyTwice},
		{"EmptyValueIsNotAbsent", emptyIsNotAbsent},
		{"DeleteOfAnAbsentKeyIsNoError", deleteAbsent},
		{"ConcurrentIncrementsLoseNothing", concurrentIncrements},
		{"CallerMayReuseItsBuffers", reuseBuffers},
	}
}

func commitIsVisibleAndAtomic(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.put("old", "1")
	rev := f.commit(nil, kv.Put([]byte("a"), []byte("1")), kv.Put([]byte("b"), []byte("2")), kv.Delete([]byte("old")))
	if got := f.rev(); got != rev {
		t.Fatalf("snapshot at %d after commit %d", got, rev)
	}
	f.want("a", "1")
	f.want("b", "2")
	f.absent("old")
}

// Two keys that are always written together are never seen apart, and never older than the last answered commit.
func commitIsLinearizable(t *testing.T, s kv.Store) {
	f := with(t, s)
	var answered atomic.Uint64
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				v := fmt.Appendf(nil, "%d.%d", w, i)
				rev, err := f.Commit(f.ctx, nil, []kv.Op{kv.Put([]byte("x"), v), kv.Put([]byte("y"), v)})
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				for old := answered.Load(); old < uint64(rev) && !answered.CompareAndSwap(old, uint64(rev)); old = answered.Load() {
				}
			}
		})
	}
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				floor := answered.Load()
				p, err := f.Snapshot(f.ctx)
				if err != nil {
					t.Errorf("snapshot: %v", err)
					return
				}
				x, err1 := p.Get([]byte("x"))
				y, err2 := p.Get([]byte("y"))
				if err1 != nil || err2 != nil || x[0].Rev != y[0].Rev || string(x[0].Value) != string(y[0].Value) {
					t.Errorf("torn read: %v %v %v %v", x, y, err1, err2)
				} else if uint64(p.Rev()) < floor || x[0].Rev > p.Rev() || floor > 0 && uint64(x[0].Rev) < min(floor, 1) {
					t.Errorf("stale read: snapshot %d, key at %d, %d was answered before", p.Rev(), x[0].Rev, floor)
				}
				p.Close()
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func revisionsGrow(t *testing.T, s kv.Store) {
	f := with(t, s)
	last := f.rev()
	if last != 0 {
		t.Fatalf("an empty store is at revision %d", last)
	}
	for i := range 50 {
		rev := f.commit(nil, kv.Put([]byte("k"), nil), kv.Delete([]byte(strconv.Itoa(i))))
		if rev <= last {
			t.Fatalf("revision %d after %d", rev, last)
		}
		last = rev
		// A refused commit may not give a revision that a later one has too.
		f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyRev([]byte("k"), 0)}, kv.Put([]byte("k"), nil))
	}
}

func keysCarryRevision(t *testing.T, s kv.Store) {
	f := with(t, s)
	first := f.commit(nil, kv.Put([]byte("a"), nil), kv.Put([]byte("b"), nil))
	second := f.put("b", "x")
	f.commit(nil, kv.Delete([]byte("c")), kv.Put([]byte("d"), nil))
	if a, b := f.get("a"), f.get("b"); a.Rev != first || b.Rev != second {
		t.Fatalf("a at %d, b at %d; want %d, %d", a.Rev, b.Rev, first, second)
	}
	// The same bytes again are a new revision: no ABA.
	f.commit(nil, kv.Delete([]byte("b")))
	if third := f.put("b", "x"); f.get("b").Rev != third || third <= second {
		t.Fatalf("b was written again at %d, reads %d, first was %d", third, f.get("b").Rev, second)
	}
}

func keyTwice(t *testing.T, s kv.Store) {
	f := with(t, s)
	k := []byte("k")
	f.refuse(kv.ErrInvalid, nil, kv.Put(k, []byte("1")), kv.Put(k, []byte("2")))
	f.refuse(kv.ErrInvalid, nil, kv.Put(k, []byte("1")), kv.Delete(k))
	f.absent("k")
}

func emptyIsNotAbsent(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.commit(nil, kv.Put([]byte("nil"), nil), kv.Put([]byte("empty"), []byte{}))
	f.want("nil", "")
	f.want("empty", "")
	f.absent("other")
	f.commit([]kv.Guard{kv.KeyExists([]byte("nil"))}, kv.Delete([]byte("nil")))
	f.absent("nil")
}

func deleteAbsent(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.commit(nil, kv.Delete([]byte("never")))
	f.absent("never")
	if got := f.list(f.snap(), "", 10); len(got) != 0 {
		t.Fatalf("the store lists %q", got)
	}
}

func concurrentIncrements(t *testing.T, s kv.Store) {
	f := with(t, s)
	const workers, each = 16, 20
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				p, err := f.Snapshot(f.ctx)
				if err != nil {
					t.Errorf("snapshot: %v", err)
					return
				}
				e, err := p.Get([]byte("n"))
				p.Close()
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				n, _ := strconv.Atoi(string(e[0].Value)) // "": 0
				_, err = f.Commit(f.ctx, []kv.Guard{kv.KeyRev([]byte("n"), e[0].Rev)},
					[]kv.Op{kv.Put([]byte("n"), []byte(strconv.Itoa(n+1)))})
				switch {
				case err == nil:
					done++
				case !errors.Is(err, kv.ErrConflict):
					t.Errorf("commit: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.want("n", strconv.Itoa(workers*each))
}

func reuseBuffers(t *testing.T, s kv.Store) {
	f := with(t, s)
	w, err := f.Watch(f.ctx, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	key, value := []byte("key"), []byte("value")
	f.commit([]kv.Guard{kv.KeyRev(key, 0)}, kv.Put(key, value))
	copy(key, "XXX")
	copy(value, "XXXXX")
	e := f.want("key", "value")
	copy(e.Key, "YYY")
	copy(e.Value, "YYYYY")
	f.want("key", "value")
	b, err := w.Next(f.ctx)
	if err != nil || len(b.Keys) != 1 || string(b.Keys[0]) != "key" {
		t.Fatalf("watch: %q, %v", b.Keys, err)
	}
}
