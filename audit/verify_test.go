package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestVerifyFindsTheFirstBadRecord of a log of 40 changes in several segments, and reports one damage as one.
func TestVerifyFindsTheFirstBadRecord(t *testing.T) {
	swap := func(a, b int) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte { l[a], l[b] = l[b], l[a]; return l }
	}
	replace := func(i int, from, to string) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte {
			l[i] = []byte(strings.Replace(string(l[i]), from, to, 1))
			return l
		}
	}
	for name, c := range map[string]struct {
		damage func([][]byte) [][]byte // line i is record i+1
		first  uint64
		most   int
	}{
		"nothing":             {func(l [][]byte) [][]byte { return l }, 0, 0},
		"a line removed":      {func(l [][]byte) [][]byte { return slices.Delete(l, 6, 7) }, 7, 2},
		"the first removed":   {func(l [][]byte) [][]byte { return slices.Delete(l, 0, 1) }, 1, 2},
		"three removed":       {func(l [][]byte) [][]byte { return slices.Delete(l, 6, 9) }, 7, 4},
		"the last removed":    {func(l [][]byte) [][]byte { return l[:39] }, 0, 1},
		"a brace flipped":     {replace(11, "{", "["), 12, 2},
		"a version flipped":   {replace(11, `"version":12`, `"version":13`), 12, 3},
		"a commitment":        {replace(11, `"commitment":"c12"`, `"commitment":"c21"`), 12, 1},
		"no commitment":       {replace(11, `,"commitment":"c12"`, ``), 12, 1},
		"a revision flipped":  {replace(11, `"rev":12`, `"rev":3`), 12, 1},
		"an operation":        {replace(11, opOf(12), opOf(5)), 12, 1},
		"no operation":        {replace(11, opOf(12), "x"), 12, 1},
		"lines swapped":       {swap(20, 21), 21, 4},
		"a line twice":        {func(l [][]byte) [][]byte { return slices.Insert(l, 9, l[8]) }, 10, 1},
		"a line cut off":      {func(l [][]byte) [][]byte { l[39] = l[39][:20]; return l }, 0, 1},
		"a kind that is none": {replace(11, `"kind":"change"`, `"kind":"read"`), 0, 1},
		"an unknown key":      {replace(11, `"op":`, `"oq":`), 12, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var lines [][]byte
			for i := range uint64(40) {
				line, err := Marshal(Record{Rev: i + 1, Time: time.Now(), Kind: "change", Op: "write", OpID: opOf(i + 1), Memory: "m", Version: i + 1, Commit: fmt.Sprint("c", i+1)})
				must(t, err)
				lines = append(lines, number(nil, i+1, line))
			}
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, segmentName(1)), bytes.Join(c.damage(lines), nil), 0o600))
			versions := func(yield func(Fact, error) bool) {
				for n := range uint64(40) {
					if !yield(Fact{Memory: "m", Version: n + 1, Head: n == 39, Commit: fmt.Sprint("c", n+1)}, nil) {
						return
					}
				}
			}
			r, err := Verify(context.Background(), dir, versions, nil, 40)
			must(t, err)
			if len(r.Problems) == 0 && c.most == 0 {
				return
			}
			if len(r.Problems) == 0 || r.Problems[0].Seq != c.first || len(r.Problems) > c.most {
				t.Fatalf("%+v", r.Problems)
			}
		})
	}
}

func TestVerifyReplacedPendingAndLater(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
	l := open(t, dir, src, Options{})
	add := func(r Record) {
		t.Helper()
		src.rev++
		r.Time, r.Kind, r.Commit = time.Now(), "change", "c"
		in, err := intentOf(src.rev, r)
		must(t, err)
		src.intents = append(src.intents, in)
	}
	add(Record{Op: "create", Memory: "a", Version: 1})
	add(Record{Op: "create", Memory: "b", Version: 1})
	add(Record{Op: "mkdir", Memory: "d"})
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	add(Record{Op: "rename", Memory: "b", Version: 2, Replaced: &Replaced{Memory: "a", Version: 2}})
	store := facts(Fact{"a", 1, false, "c"}, Fact{"a", 2, true, "its own"}, Fact{"b", 1, false, "c"}, Fact{"b", 2, true, "c"})
	check := func(upto uint64, pending []Intent, want string) {
		t.Helper()
		r, err := Verify(ctx, dir, store, pending, upto)
		must(t, err)
		var got []string
		for _, p := range r.Problems {
			got = append(got, p.Detail)
		}
		if strings.Join(got, "; ") != want {
			t.Fatalf("%q, %q is right", got, want)
		}
	}
	check(4, src.intents, "")
	check(4, nil, "head, version 2 has no record; head, version 2 has no record")
	l = open(t, dir, src, Options{})
	listed := slices.Clone(src.intents) // and taken over before the log is read
	add(Record{Op: "write", Memory: "b", Version: 3})
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	check(4, listed, "") // version 3 came after the store was read
	check(5, nil, "version 3 is recorded and not in the store")
	twice, err := intentOf(9, Record{Kind: "change", Memory: "b", Version: 1})
	must(t, err)
	old, err := intentOf(2, Record{Kind: "change", Memory: "z"})
	must(t, err)
	old.Op[0] = 1
	check(9, []Intent{twice, old}, "version 3 is recorded and not in the store; revision 2 comes after revision 5; version 1 is recorded already by record 2")
}

func TestVerifyReportIsBounded(t *testing.T) {
	ctx := context.Background()
	r, err := Verify(ctx, t.TempDir(), func(yield func(Fact, error) bool) {
		for i := range uint64(5000) {
			if !yield(Fact{Memory: "m", Version: i + 1}, nil) {
				return
			}
		}
	}, nil, 1)
	must(t, err)
	if len(r.Problems) != maxProblems || r.More != 4000 {
		t.Fatal(len(r.Problems), r.More)
	}
	broken := errors.New("store")
	if _, err := Verify(ctx, t.TempDir(), func(yield func(Fact, error) bool) { yield(Fact{}, broken) }, nil, 1); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x.jsonl"), nil, 0o600))
	if r, err := Verify(ctx, dir, facts(), nil, 1); err != nil || len(r.Problems) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
}
