package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeStore is a Source in memory.
type fakeStore struct {
	mu      sync.Mutex
	rev     uint64
	intents []Intent
	tail    []byte
	refuse  error // of Taken
}

func (f *fakeStore) Intents(_ context.Context, after uint64, limit int) ([]Intent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Intent
	for _, in := range f.intents {
		if len(out) == limit {
			break
		}
		if in.Rev > after {
			out = append(out, in)
		}
	}
	return out, nil
}

func (f *fakeStore) Taken(_ context.Context, ops [][16]byte, tail []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return f.refuse
	}
	gone := map[[16]byte]bool{}
	for _, op := range ops {
		gone[op] = true
	}
	f.intents = slices.DeleteFunc(f.intents, func(in Intent) bool { return gone[in.Op] })
	f.tail = tail
	return nil
}

func (f *fakeStore) Tail(context.Context) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tail, nil
}

// commit makes a change with its intent.
func (f *fakeStore) commit(t testing.TB, memory string, version uint64) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev++
	var op [16]byte
	binary.BigEndian.PutUint64(op[8:], f.rev)
	data, err := Marshal(Record{Time: time.Now(), Kind: "change", Op: "write", Memory: memory, Version: version, Commit: "c"})
	must(t, err)
	f.intents = append(f.intents, Intent{Rev: f.rev, Op: op, Data: data})
}

// opOf is the op_id of a revision of fakeStore.
func opOf(rev uint64) string {
	var op [16]byte
	binary.BigEndian.PutUint64(op[8:], rev)
	return formatOp(op)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string, src Source, o Options) *Log {
	t.Helper()
	l, err := Open(context.Background(), dir, src, o)
	must(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func all(t *testing.T, dir string) []Record {
	t.Helper()
	var out []Record
	must(t, Scan(context.Background(), dir, 1, func(_ []byte, r Record) error { out = append(out, r); return nil }))
	return out
}

func TestIntentsAndRecordsShareOneSequence(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
	for round := range 3 { // over restarts, and over segments
		l := open(t, dir, src, Options{SegmentBytes: 400})
		for i := range 5 {
			src.commit(t, "m", uint64(round*5+i+1))
			l.Wake()
			_, err := l.Append(ctx, Record{Time: time.Now(), Kind: "mount", Op: "mount"})
			must(t, err)
		}
		must(t, l.Sync(ctx, src.rev))
		must(t, l.Close(ctx))
	}
	got := all(t, dir)
	if len(got) != 30 {
		t.Fatalf("%d records, want 30", len(got))
	}
	rev := uint64(0)
	for i, r := range got {
		if r.Seq != uint64(i+1) {
			t.Fatalf("record %d has sequence %d", i+1, r.Seq)
		}
		if r.Kind == "change" {
			if r.Rev <= rev {
				t.Fatalf("revision %d after %d", r.Rev, rev)
			}
			rev = r.Rev
		}
	}
	if segs, err := segments(dir); err != nil || len(segs) < 3 {
		t.Fatalf("segments %v %v", segs, err)
	}
	if len(src.intents) != 0 {
		t.Fatalf("%d intents are left in the store", len(src.intents))
	}
}

// TestCrashBetweenSyncAndDrop: the store still has the intents, the log has the lines: none is written twice.
func TestCrashBetweenSyncAndDrop(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{refuse: errors.New("crash")}, context.Background()
	l := open(t, dir, src, Options{})
	for i := range 10 {
		src.commit(t, "m", uint64(i+1))
	}
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	src.refuse = nil
	src.commit(t, "m", 11)
	l = open(t, dir, src, Options{})
	must(t, l.Sync(ctx, src.rev))
	if got := all(t, dir); len(got) != 11 {
		t.Fatalf("%d records, want 11", len(got))
	}
	if len(src.intents) != 0 {
		t.Fatalf("%d intents are left", len(src.intents))
	}
}

func TestTornLastLineIsCutAndNoted(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
	l := open(t, dir, src, Options{})
	src.commit(t, "m", 1)
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	name := filepath.Join(dir, segmentName(1))
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"seq":2,"ki`)
	must(t, err)
	must(t, f.Close())
	l = open(t, dir, src, Options{})
	got := all(t, dir)
	if len(got) != 2 || got[1].Kind != "recover" || !strings.Contains(got[1].Cause, "12 bytes") {
		t.Fatalf("%+v", got)
	}
	must(t, l.Close(ctx))
}

// TestDamageRefusesToStart, and names the first bad record.
func TestDamageRefusesToStart(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"shorter":      func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] },
		"line gone":    func(b []byte) []byte { i := bytes.IndexByte(b, '\n') + 1; return append(b[:0:0], b[i:]...) },
		"byte flipped": func(b []byte) []byte { b[1] = '#'; return b },
		"empty":        func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
			l := open(t, dir, src, Options{})
			for i := range 3 {
				src.commit(t, "m", uint64(i+1))
				must(t, l.Sync(ctx, src.rev))
			}
			must(t, l.Close(ctx))
			// what the store knows of is checked from the tail on; begin there
			src.tail, _ = json.Marshal(tail{Seq: 3, Rev: 0})
			file := filepath.Join(dir, segmentName(1))
			b, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, damage(b), 0o600))
			l, err = Open(ctx, dir, src, Options{})
			if err == nil {
				must(t, l.Close(ctx))
				t.Fatal("it starts")
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "record") {
				t.Fatal(err)
			}
		})
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	l := open(t, dir, &fakeStore{}, Options{})
	for range 1000 {
		l.Refuse(Record{Time: time.Now(), Kind: "refusal", Op: "open", Path: "p", Principal: "a", Errno: "EACCES"})
	}
	l.Refuse(Record{Time: time.Now(), Kind: "refusal", Op: "open", Path: "q", Principal: "a", Errno: "EACCES"})
	must(t, l.Sync(ctx, 0))
	total := 0
	got := all(t, dir)
	for _, r := range got {
		total += max(1, r.Count)
	}
	if total != 1001 || len(got) > 3 {
		t.Fatalf("%d records stand for %d refusals", len(got), total)
	}
}

func facts(list ...Fact) func(func(Fact, error) bool) {
	return func(yield func(Fact, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func TestVerify(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
	l := open(t, dir, src, Options{})
	for i := range 3 {
		src.commit(t, "m", uint64(i+1))
	}
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	src.commit(t, "m", 4) // pending
	v := func(n uint64) Fact { return Fact{Memory: "m", Version: n, Head: n == 4, Commit: "c"} }
	for name, c := range map[string]struct {
		facts []Fact
		want  string
	}{
		"in order":        {[]Fact{v(1), v(2), v(3), v(4)}, ""},
		"version missing": {[]Fact{v(1), v(3), v(4)}, "version 2 is recorded and not in the store"},
		"record missing":  {[]Fact{v(1), v(2), v(3), v(4), v(5)}, "version 5 has no record"},
		"other content":   {[]Fact{v(1), {Memory: "m", Version: 2, Commit: "d"}, v(3), v(4)}, "version 2 is not the content"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Verify(ctx, dir, facts(c.facts...), src.intents, 100)
			must(t, err)
			if c.want == "" && len(r.Problems) == 0 && r.Records == 3 && r.Pending == 1 {
				return
			}
			if len(r.Problems) != 1 || c.want == "" || !strings.Contains(r.Problems[0].Detail, c.want) {
				t.Fatalf("%+v", r)
			}
		})
	}
	b, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	must(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	must(t, os.WriteFile(filepath.Join(dir, segmentName(1)), append(bytes.Clone(lines[0]), lines[2]...), 0o600))
	r, err := Verify(ctx, dir, facts(v(1), v(2), v(3), v(4)), src.intents, 100)
	must(t, err)
	if len(r.Problems) == 0 || r.Problems[0].Seq != 2 {
		t.Fatalf("a removed line is not found: %+v", r)
	}
}

// TestSyncWaitsForAllIntents, also when they are more than one round takes.
func TestSyncWaitsForAllIntents(t *testing.T) {
	m, src, ctx := &model{files: map[string]*modelFile{}}, &fakeStore{}, context.Background()
	l := open(t, t.TempDir(), src, Options{disk: slow{m}})
	for i := range 3*takeAtOnce + 1 {
		src.commit(t, "m", uint64(i+1))
	}
	must(t, l.Sync(ctx, src.rev))
	if n := len(m.powerCut(t, t.TempDir())); n != 3*takeAtOnce+1 {
		t.Fatalf("%d records are synced", n)
	}
	must(t, l.Close(ctx))
	if len(src.intents) != 0 {
		t.Fatalf("%d intents are left", len(src.intents))
	}
}

// TestIntentsOutOfOrder are not taken over, and Sync says why.
func TestIntentsOutOfOrder(t *testing.T) {
	dir, src, ctx := t.TempDir(), &fakeStore{}, context.Background()
	l := open(t, dir, src, Options{})
	src.mu.Lock()
	for _, rev := range []uint64{1, 3, 2} {
		in, err := intentOf(rev, Record{Kind: "change", Memory: "m", Version: rev})
		must(t, err)
		src.intents = append(src.intents, in)
	}
	src.mu.Unlock()
	if err := l.Sync(ctx, 3); err == nil || !strings.Contains(err.Error(), "revision 2 comes after revision 3") {
		t.Fatal(err)
	}
	must(t, l.Healthy())
	_, err := l.Append(ctx, Record{Kind: "read"})
	must(t, err)
	for i, r := range all(t, dir) {
		if r.Kind == "change" && r.Rev == 2 || r.Seq != uint64(i+1) {
			t.Fatalf("%+v", r)
		}
	}
}

func TestAppendRefusesWhatIsNone(t *testing.T) {
	l := open(t, t.TempDir(), &fakeStore{}, Options{})
	for _, r := range []Record{{Kind: "change"}, {Kind: "read", Reason: strings.Repeat("x", maxLine)}} {
		if _, err := l.Append(context.Background(), r); !errors.Is(err, ErrRecord) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, l.Close(context.Background()))
}
