package audit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

func refusal(principal, path string) Record {
	return Record{Time: time.Unix(0, 0), Kind: "refusal", Op: "open", Path: path, Principal: principal, Errno: "EACCES", Reason: "secret plan"}
}

func total(rs []Record) (n int) {
	for _, r := range rs {
		n += max(1, r.Count)
	}
	return n
}

func TestRefusalsOfAMinuteAreOneRecord(t *testing.T) {
	f, now := newRefusals(), time.Unix(1000, 0)
	if !f.note(refusal("a", "p"), now) {
		t.Fatal("the first is not written at once")
	}
	if got := f.due(false, now); len(got) != 1 || got[0].Count != 0 {
		t.Fatalf("%+v", got)
	}
	for i := range 59 {
		now = now.Add(time.Second)
		if f.note(refusal("a", "p"), now) {
			t.Fatal("one more is written at once")
		}
		if got := f.due(false, now); len(got) != 0 {
			t.Fatalf("after %d seconds: %+v", i+1, got)
		}
	}
	now = now.Add(time.Second)
	if got := f.due(false, now); len(got) != 1 || got[0].Count != 59 {
		t.Fatalf("%+v", got)
	}
	now = now.Add(countFor)
	if got := f.due(false, now); len(got) != 0 || len(f.kinds) != 0 || len(f.of) != 0 {
		t.Fatalf("a kind that ended is still counted: %+v %d", got, len(f.kinds))
	}
}

// TestRefusalsAreBounded, of one principal and of many, and none is forgotten.
func TestRefusalsAreBounded(t *testing.T) {
	f, now := newRefusals(), time.Unix(1000, 0)
	for i := range 100_000 {
		f.note(refusal("loud", fmt.Sprint(i)), now)
	}
	f.note(refusal("quiet", "p"), now)
	got := f.due(true, now)
	if len(got) != maxKindsFor+2 || total(got) != 100_001 {
		t.Fatalf("%d records stand for %d", len(got), total(got))
	}
	quiet := 0
	for _, r := range got {
		if r.Path == "" && (r.Principal != "loud" || r.Reason != "" || r.Session != "") {
			t.Errorf("%+v", r)
		}
		if r.Principal == "quiet" && r.Path == "p" {
			quiet++
		}
	}
	if quiet != 1 {
		t.Error("the other principal's refusal went under")
	}
	for i := range 100_000 {
		f.note(refusal(fmt.Sprint("p", i), "p"), now)
	}
	if got := f.due(true, now); total(got) != 100_000 || len(f.kinds) > 2*maxKinds+8 {
		t.Fatalf("%d kinds, %d records for %d", len(f.kinds), len(got), total(got))
	}
}

func TestRefusalsThatCannotBeWrittenAreKept(t *testing.T) {
	f, now := newRefusals(), time.Unix(1000, 0)
	for i := range 500 {
		for range 3 {
			f.note(refusal("a", fmt.Sprint(i)), now)
		}
		f.giveBack(f.due(i%2 == 0, now), now)
		now = now.Add(time.Second)
	}
	if got := f.due(true, now); total(got) != 1500 {
		t.Fatalf("%d of 1500", total(got))
	}
	if got := f.due(true, now); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
}

// TestRefuseIsWrittenInTheBackground: nobody syncs.
func TestRefuseIsWrittenInTheBackground(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, &fakeStore{}, Options{})
	l.Refuse(refusal("a", "p"))
	for range 100 {
		if len(all(t, dir)) == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the first refusal is not written")
}

func TestManyRefuseAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, &fakeStore{}, Options{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 500 {
				l.Refuse(refusal(fmt.Sprint("p", i), fmt.Sprint(n%5)))
			}
		})
	}
	wg.Wait()
	must(t, l.Close(context.Background()))
	if got := all(t, dir); total(got) != 8000 || len(got) > 2*16*5 {
		t.Fatalf("%d records for %d refusals", len(got), total(got))
	}
}
