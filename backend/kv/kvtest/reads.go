package kvtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"memoryfs/backend/kv"
)

func readCases() []testCase {
	return []testCase{
		{"SnapshotSeesNothingLater", snapshotIsolation},
		{"SnapshotIsStableAcrossListPages", stablePages},
		{"SnapshotIsSafeForConcurrentUse", concurrentReads},
		{"ListIsInKeyOrderWithinThePrefix", listOrder},
		{"GetAnswersInOrder", getOrder},
		{"ClosedSnapshot", closedSnapshot},
	}
}

func snapshotIsolation(t *testing.T, s kv.Store) {
	f := with(t, s)
	rev := f.commit(nil, kv.Put([]byte("a"), []byte("1")), kv.Put([]byte("gone"), []byte("1")))
	p := f.snap()
	f.commit(nil, kv.Put([]byte("a"), []byte("2")), kv.Put([]byte("new"), nil), kv.Delete([]byte("gone")))
	if err := f.Compact(f.ctx, f.rev()); err != nil {
		t.Fatalf("compact: %v", err)
	}
	if e := f.getIn(p, "a"); string(e.Value) != "1" || e.Rev != rev || p.Rev() != rev {
		t.Fatalf("the snapshot at %d reads %q at %d", p.Rev(), e.Value, e.Rev)
	}
	if got := f.list(p, "", 10); !slices.Equal(got, []string{"a", "gone"}) {
		t.Fatalf("the snapshot lists %q", got)
	}
	f.want("a", "2")
}

func stablePages(t *testing.T, s kv.Store) {
	f := with(t, s)
	var want []string
	var ops []kv.Op
	for i := range 100 {
		want = append(want, fmt.Sprintf("k/%03d", i))
		ops = append(ops, kv.Put([]byte(want[i]), nil))
	}
	f.commit(nil, ops...)
	p := f.snap()
	first, err := p.List([]byte("k/"), nil, 30)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // all change between two pages: odd ones go, new ones come between
		if i%2 == 1 {
			f.commit(nil, kv.Delete([]byte(want[i])), kv.Put([]byte(want[i]+"x"), nil))
		}
	}
	got := make([]string, 0, 100)
	for _, e := range first {
		got = append(got, string(e.Key))
	}
	after := first[len(first)-1].Key
	for {
		page, err := p.List([]byte("k/"), after, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			got, after = append(got, string(e.Key)), e.Key
		}
		if len(page) < 7 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("pages of one snapshot give %d keys: %q", len(got), got)
	}
}

func concurrentReads(t *testing.T, s kv.Store) {
	f := with(t, s)
	for i := range 20 {
		f.put(fmt.Sprint("k", i), fmt.Sprint(i))
	}
	p := f.snap()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if e, err := p.Get(fmt.Appendf(nil, "k%d", (w+i)%20)); err != nil || e[0].Rev == 0 {
					t.Errorf("get: %v, %v", e, err)
				}
				if es, err := p.List([]byte("k"), nil, 100); err != nil || len(es) != 20 {
					t.Errorf("list: %d, %v", len(es), err)
				}
			}
		})
	}
	wg.Wait()
}

func listOrder(t *testing.T, s kv.Store) {
	f := with(t, s)
	keys := []string{"\x00", "a", "p", "p\x00", "p\x00\x00", "pa", "p\xff", "p\xff\xff", "q", "\xff\xff"}
	for _, i := range []int{3, 0, 9, 5, 1, 8, 2, 7, 4, 6} {
		f.put(keys[i], keys[i])
	}
	p := f.snap()
	for page := 1; page < 12; page++ {
		if got := f.list(p, "", page); !slices.Equal(got, keys) {
			t.Fatalf("pages of %d: all is %q", page, got)
		}
		if got := f.list(p, "p", page); !slices.Equal(got, keys[2:8]) {
			t.Fatalf("pages of %d: under p is %q", page, got)
		}
		if got := f.list(p, "\xff", page); !slices.Equal(got, keys[9:]) {
			t.Fatalf("pages of %d: under ff is %q", page, got)
		}
	}
	for _, c := range []struct {
		after string
		want  string
	}{{"a", "p"}, {"p", "p\x00"}, {"pb", "p\xff"}, {"p\xff\xff", ""}, {"z", ""}} {
		es, err := p.List([]byte("p"), []byte(c.after), 1)
		if err != nil || len(es) == 0 && c.want != "" || len(es) > 0 && (string(es[0].Key) != c.want || string(es[0].Value) != c.want) {
			t.Fatalf("under p after %q: %v, %v; want %q", c.after, es, err, c.want)
		}
	}
	if _, err := p.List(nil, nil, 0); !is(err, kv.ErrInvalid) {
		t.Fatalf("a limit of 0: %v", err)
	}
}

func getOrder(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.put("b", "B")
	f.put("a", "A")
	p := f.snap()
	es, err := p.Get([]byte("b"), []byte("none"), []byte("a"), []byte("b"))
	if err != nil || len(es) != 4 || string(es[0].Value) != "B" || es[1].Rev != 0 || string(es[2].Value) != "A" || string(es[3].Value) != "B" {
		t.Fatalf("get: %v, %v", es, err)
	}
	if es, err := p.Get(); err != nil || len(es) != 0 {
		t.Fatalf("get of nothing: %v, %v", es, err)
	}
}

func closedSnapshot(t *testing.T, s kv.Store) {
	f := with(t, s)
	f.put("a", "1")
	p := f.snap()
	e := f.getIn(p, "a")
	p.Close()
	p.Close()
	if string(e.Value) != "1" {
		t.Fatalf("the entry of a closed snapshot is %q", e.Value)
	}
	if _, err := p.Get([]byte("a")); !is(err, kv.ErrClosed) {
		t.Fatalf("get: %v", err)
	}
	if _, err := p.List(nil, nil, 1); !is(err, kv.ErrClosed) {
		t.Fatalf("list: %v", err)
	}
}
