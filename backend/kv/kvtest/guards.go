package kvtest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"memoryfs/backend/kv"
)

func guardCases() []testCase {
	return []testCase{
		{"GuardRev", guardRev},
		{"GuardExists", guardExists},
		{"GuardEmpty", guardEmpty},
		{"AllGuardsMustHold", allGuards},
		{"GuardsSeeTheStateBeforeTheirCommit", guardsSeeBefore},
		{"PrefixEmptyStopsPhantomInserts", phantomInserts},
		{"NothingIsProtectedBeyondTheGuards", nothingBeyond},
	}
}

func guardRev(t *testing.T, s kv.Store) {
	f := with(t, s)
	k := []byte("k")
	first := f.commit([]kv.Guard{kv.KeyRev(k, 0)}, kv.Put(k, []byte("1")))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyRev(k, 0)}, kv.Put(k, []byte("x")))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyRev(k, first+1)}, kv.Put(k, []byte("x")))
	second := f.commit([]kv.Guard{kv.KeyRev(k, first)}, kv.Put(k, []byte("2")))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyRev(k, first)}, kv.Put(k, []byte("x")))
	f.commit([]kv.Guard{kv.KeyRev(k, second)}, kv.Delete(k))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyRev(k, second)}, kv.Put(k, []byte("x")))
	f.commit([]kv.Guard{kv.KeyRev(k, 0)}, kv.Put(k, []byte("3")))
	f.want("k", "3")
}

func guardExists(t *testing.T, s kv.Store) {
	f := with(t, s)
	k := []byte("dir")
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyExists(k)}, kv.Put([]byte("dir/a"), nil))
	f.put("dir", "")
	f.put("dir", "again")
	f.commit([]kv.Guard{kv.KeyExists(k)}, kv.Put([]byte("dir/a"), nil))
	f.commit(nil, kv.Delete(k))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyExists(k)}, kv.Put([]byte("dir/b"), nil))
}

func guardEmpty(t *testing.T, s kv.Store) {
	f := with(t, s)
	under := []kv.Guard{kv.PrefixEmpty([]byte("d/"))}
	f.put("d", "")  // a shorter key
	f.put("d0", "") // the key right behind the prefix
	f.put("c\xff", "")
	f.commit(under, kv.Put([]byte("ok"), nil))
	f.put("d/x", "")
	f.refuse(kv.ErrConflict, under, kv.Put([]byte("ok"), nil))
	f.commit(nil, kv.Delete([]byte("d/x")))
	f.put("d/", "") // the prefix itself counts
	f.refuse(kv.ErrConflict, under, kv.Put([]byte("ok"), nil))
	f.commit(nil, kv.Delete([]byte("d/")))
	f.commit(under, kv.Put([]byte("d/new"), nil))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.PrefixEmpty(nil)}, kv.Put([]byte("z"), nil))
}

func allGuards(t *testing.T, s kv.Store) {
	f := with(t, s)
	rev := f.put("a", "1")
	good := []kv.Guard{kv.KeyRev([]byte("a"), rev), kv.KeyExists([]byte("a")), kv.PrefixEmpty([]byte("b"))}
	for i := range good {
		guards := append([]kv.Guard(nil), good...)
		guards[i] = kv.KeyExists([]byte("missing"))
		f.refuse(kv.ErrConflict, guards, kv.Put([]byte("a"), []byte("x")), kv.Put([]byte("new"), nil))
	}
	f.want("a", "1")
	f.absent("new")
	f.commit(good, kv.Put([]byte("a"), []byte("2")))
	f.want("a", "2")
}

func guardsSeeBefore(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.commit([]kv.Guard{kv.PrefixEmpty([]byte("p/")), kv.KeyRev([]byte("p/1"), 0)}, kv.Put([]byte("p/1"), nil))
	f.refuse(kv.ErrConflict, []kv.Guard{kv.KeyExists([]byte("q"))}, kv.Put([]byte("q"), nil))
	f.commit([]kv.Guard{kv.KeyExists([]byte("p/1"))}, kv.Delete([]byte("p/1")))
}

// rmdir against create: a directory that was removed as empty has no child, whoever came first.
func phantomInserts(t *testing.T, s kv.Store) {
	f := with(t, s)
	for round := range 30 {
		dir := fmt.Appendf(nil, "dir/%d", round)
		under := fmt.Appendf(nil, "child/%d/", round)
		f.commit(nil, kv.Put(dir, nil))
		var removed, created atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				child := fmt.Appendf(nil, "%s%d", under, i)
				if _, err := f.Commit(f.ctx, []kv.Guard{kv.KeyExists(dir), kv.KeyRev(child, 0)}, []kv.Op{kv.Put(child, nil)}); err == nil {
					created.Add(1)
				} else if !is(err, kv.ErrConflict) {
					t.Errorf("create: %v", err)
				}
			})
		}
		wg.Go(func() {
			if _, err := f.Commit(f.ctx, []kv.Guard{kv.KeyExists(dir), kv.PrefixEmpty(under)}, []kv.Op{kv.Delete(dir)}); err == nil {
				removed.Add(1)
			} else if !is(err, kv.ErrConflict) {
				t.Errorf("remove: %v", err)
			}
		})
		wg.Wait()
		if left := len(f.list(f.snap(), string(under), 10)); left != int(created.Load()) || removed.Load() == 1 && left > 0 {
			t.Fatalf("round %d: removed %d, created %d, %d children are left", round, removed.Load(), created.Load(), left)
		}
	}
}

// Write skew is allowed: guards are all the protection there is.
func nothingBeyond(t *testing.T, s kv.Store) {
	f := with(t, s)
	p := f.snap()
	f.put("a", "1")
	f.getIn(p, "a")
	f.commit(nil, kv.Put([]byte("a"), []byte("2"))) // "a" was read at an older revision, which nobody guards
	f.want("a", "2")
}
