package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func intentOf(rev uint64, r Record) (Intent, error) {
	data, err := Marshal(r)
	in := Intent{Rev: rev, Data: data}
	for i := range 8 {
		in.Op[15-i] = byte(rev >> (8 * i))
	}
	return in, err
}

// written is a log with three changes that the store knows, and two refusals beyond its note.
func written(t *testing.T) (dir string, src *fakeStore) {
	t.Helper()
	dir, src = t.TempDir(), &fakeStore{}
	l := open(t, dir, src, Options{})
	for i := range 3 {
		src.commit(t, "m", uint64(i+1))
	}
	must(t, l.Sync(context.Background(), src.rev))
	for i := range 2 {
		_, err := l.Append(context.Background(), Record{Kind: "read", Op: fmt.Sprint("read", i)})
		must(t, err)
	}
	must(t, l.Close(context.Background()))
	return dir, src
}

// TestWhatACrashLeaves beyond the store's note is cut and noted; anything else is damage that is named.
func TestWhatACrashLeaves(t *testing.T) {
	next, err := Marshal(Record{Kind: "read", Op: "next"})
	must(t, err)
	whole := string(number(nil, 6, next))
	for name, c := range map[string]struct {
		add string
		bad uint64 // the record that is named; 0: it is cut
		cut int
	}{
		"half a line":               {`{"seq":6,"ki`, 0, 12},
		"half a line after one":     {whole + `{"seq":7`, 0, 8},
		"longer than the note":      {strings.Repeat("x", 5000), 0, 5000},
		"blocks not written":        {strings.Repeat("\x00", 4096), 0, 4096},
		"blocks between lines":      {strings.Repeat("\x00", 100) + "}\n" + whole, 0, 102 + len(whole)},
		"a line without its quotes": {"{seq:6}\n", 6, 0},
		"a line too many":           {strings.Replace(whole, `"seq":6`, `"seq":7`, 1), 6, 0},
		"a line again":              {strings.Replace(whole, `"seq":6`, `"seq":5`, 1), 6, 0},
		"an empty line":             {"\n", 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir, src := written(t)
			file := filepath.Join(dir, segmentName(1))
			before, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, append(before[:len(before):len(before)], c.add...), 0o600))
			l, err := Open(context.Background(), dir, src, Options{})
			if c.bad > 0 {
				var d *Damage
				if !errors.As(err, &d) || d.Seq != c.bad || !errors.Is(err, ErrDamaged) {
					t.Fatalf("%v %v", l, err)
				}
				return
			}
			must(t, err)
			must(t, l.Close(context.Background()))
			got := all(t, dir)
			last := got[len(got)-1]
			if last.Kind != "recover" || last.Op != "cut" || !strings.HasPrefix(last.Cause, fmt.Sprint(c.cut, " bytes")) {
				t.Fatalf("%+v", last)
			}
			after, err := os.ReadFile(file)
			must(t, err)
			if !strings.HasPrefix(string(after), string(before)) || strings.ContainsRune(string(after), 0) {
				t.Fatal("whole lines were touched, or the cut bytes are still there")
			}
		})
	}
}

// TestTornLineThatTheStoreKnows is no crash artefact: its record was taken over.
func TestTornLineThatTheStoreKnows(t *testing.T) {
	for _, torn := range []string{"cut", "blank"} {
		t.Run(torn, func(t *testing.T) {
			dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
			l := open(t, dir, src, Options{})
			src.commit(t, "m", 1)
			src.commit(t, "m", 2)
			must(t, l.Sync(ctx, 2))
			must(t, l.Close(ctx))
			file := filepath.Join(dir, segmentName(1))
			b, err := os.ReadFile(file)
			must(t, err)
			if b = b[:len(b)-2]; torn == "blank" {
				b = append(b, 0, '\n')
			}
			must(t, os.WriteFile(file, b, 0o600))
			_, err = Open(ctx, dir, src, Options{})
			if d := (*Damage)(nil); !errors.As(err, &d) || d.Seq != 2 {
				t.Fatal(err)
			}
		})
	}
}

func TestSegmentsAreCheckedAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(dir string, segs []uint64) error
		bad    int // index of the segment whose first record is named
	}{
		"first is gone":  {func(dir string, s []uint64) error { return os.Remove(filepath.Join(dir, segmentName(s[0]))) }, 0},
		"middle is gone": {func(dir string, s []uint64) error { return os.Remove(filepath.Join(dir, segmentName(s[1]))) }, 1},
		"last is gone": {func(dir string, s []uint64) error {
			return os.Remove(filepath.Join(dir, segmentName(s[len(s)-1])))
		}, -1},
		"all are gone": {func(dir string, s []uint64) error {
			for _, n := range s {
				if err := os.Remove(filepath.Join(dir, segmentName(n))); err != nil {
					return err
				}
			}
			return nil
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
			l := open(t, dir, src, Options{SegmentBytes: 500})
			for i := range 20 {
				src.commit(t, "m", uint64(i+1))
				must(t, l.Sync(ctx, src.rev))
			}
			must(t, l.Close(ctx))
			segs, err := segments(dir)
			must(t, err)
			if len(segs) < 4 {
				t.Fatal(segs)
			}
			must(t, c.damage(dir, segs))
			_, err = Open(ctx, dir, src, Options{})
			var d *Damage
			if c.bad < 0 {
				c.bad = len(segs) - 1
			}
			if !errors.As(err, &d) || d.Seq != segs[c.bad] {
				t.Fatalf("record %d is the first that is missing: %v", segs[c.bad], err)
			}
		})
	}
}

// TestAnOlderStoreIsRefused: the log has a change that the store never heard of, or another one in its place.
func TestAnOlderStoreIsRefused(t *testing.T) {
	dir, src := written(t)
	must(t, func() error {
		_, err := Open(context.Background(), dir, &fakeStore{}, Options{})
		if d := (*Damage)(nil); !errors.As(err, &d) || d.Seq != 3 {
			return fmt.Errorf("record 3 is of an unknown change: %w", err)
		}
		return nil
	}())
	src.tail = []byte(`{"seq":3,"rev":3,"op":"` + opOf(9) + `"}`)
	_, err := Open(context.Background(), dir, src, Options{})
	if d := (*Damage)(nil); !errors.As(err, &d) || d.Seq != 3 {
		t.Fatal(err)
	}
	src.tail = []byte(`{`)
	if _, err := Open(context.Background(), dir, src, Options{}); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
}

// TestCrashInTheMiddleOfADrop: the store drops in several commits, and keeps the note with the last.
func TestCrashInTheMiddleOfADrop(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{refuse: errors.New("crash")}, context.Background()
	l := open(t, dir, src, Options{})
	for i := range 10 {
		src.commit(t, "m", uint64(i+1))
	}
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	src.refuse, src.intents = nil, src.intents[6:]
	l = open(t, dir, src, Options{})
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	if got := all(t, dir); len(got) != 10 || len(src.intents) != 0 || !strings.Contains(string(src.tail), `"seq":10,"rev":10`) {
		t.Fatalf("%d records, %d intents, note %s", len(got), len(src.intents), src.tail)
	}
}

// TestStoreThatCannotDrop for a while: nothing is written twice, and the intents go when it can again.
func TestStoreThatCannotDrop(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{refuse: errors.New("busy")}, context.Background()
	l := open(t, dir, src, Options{})
	for i := range 5 {
		src.commit(t, "m", uint64(i+1))
		must(t, l.Sync(ctx, src.rev))
	}
	src.mu.Lock()
	src.refuse = nil
	src.mu.Unlock()
	for range 100 {
		src.mu.Lock()
		left := len(src.intents)
		src.mu.Unlock()
		if left == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	must(t, l.Close(ctx))
	if got := all(t, dir); len(got) != 5 || len(src.intents) != 0 {
		t.Fatalf("%d records, %d intents are left", len(got), len(src.intents))
	}
}

// TestUnreadableIntent keeps its place, is noted, and Verify finds it.
func TestUnreadableIntent(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
	l := open(t, dir, src, Options{})
	src.commit(t, "m", 1)
	src.intents[0].Data = []byte("{\xff\n")
	must(t, l.Sync(ctx, 1))
	must(t, l.Close(ctx))
	got := all(t, dir)
	if len(got) != 1 || got[0].Op != "unreadable" || got[0].OpID != opOf(1) || !strings.HasSuffix(got[0].Cause, `{\xff\x0a`) {
		t.Fatalf("%+v", got)
	}
	r, err := Verify(ctx, dir, facts(), nil, 1)
	must(t, err)
	if len(r.Problems) != 1 || r.Problems[0].Seq != 1 {
		t.Fatalf("%+v", r)
	}
	must(t, open(t, dir, src, Options{}).Close(ctx))
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "log")
	must(t, os.MkdirAll(dir, 0o755))
	l := open(t, dir, &fakeStore{}, Options{})
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, segmentName(1)): 0o600} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	must(t, l.Close(context.Background()))
	if _, err := l.Append(context.Background(), Record{Kind: "read"}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := l.Sync(context.Background(), 0); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	must(t, l.Close(context.Background()))
}

// noSync is this machine's disk, whose syncs fail.
type noSync struct{ machine }

type noSyncFile struct{ file }

func (noSyncFile) Sync() error { return unix.EIO }

func (d noSync) Open(name string, create bool) (file, error) {
	f, err := d.machine.Open(name, create)
	return noSyncFile{f}, err
}

// TestTornLineGoesOnlyWithItsNote: while the note cannot be synced, another crash leaves the torn line or the note.
func TestTornLineGoesOnlyWithItsNote(t *testing.T) {
	dir, src := written(t)
	file := filepath.Join(dir, segmentName(1))
	before, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(before[:len(before):len(before)], "torn"...), 0o600))
	l, err := Open(context.Background(), dir, src, Options{disk: noSync{}})
	must(t, err)
	if err := l.Healthy(); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	if err := l.Close(context.Background()); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	must(t, err)
	if len(b) <= len(before) || !strings.HasPrefix(string(b), string(before)) {
		t.Fatal("the torn line is gone, and nothing says so")
	}
	must(t, open(t, dir, src, Options{}).Close(context.Background()))
	if got := all(t, dir); len(got) < 6 || got[5].Op != "cut" {
		t.Fatalf("%+v", got)
	}
}
