package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadWhileAnotherProcessWrites: Scan, Last and Follow never see half a line or a gap.
func TestReadWhileAnotherProcessWrites(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	cmd, out := spawn(t, dir)
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	in := bufio.NewScanner(out)
	if !in.Scan() {
		t.Fatal("no child")
	}
	go func() {
		for in.Scan() {
		}
	}()
	if l, err := Open(context.Background(), log, &fakeStore{}, Options{}); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("a second process opens it: %v %v", l, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	reads, last, done := 0, uint64(0), make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for ctx.Err() == nil {
			next := uint64(0)
			err := Scan(ctx, log, last/2, func(_ []byte, r Record) error {
				if next > 0 && r.Seq != next {
					return fmt.Errorf("%d after %d", r.Seq, next-1)
				}
				next = r.Seq + 1
				return nil
			})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			lines, _, err := Last(ctx, log, 5, Filter{Kind: "mount"})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			if n := len(lines); n > 0 {
				last = lines[n-1].Record.Seq
			}
			reads++
		}
	}()
	next := uint64(1)
	err := Follow(ctx, log, 1, Filter{}, func(l Line) error {
		if l.Record.Seq != next {
			return fmt.Errorf("%d, %d was to come", l.Record.Seq, next)
		}
		next++
		return nil
	})
	cancel()
	<-done
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) || next < 20 || reads < 2 {
		t.Fatalf("%v after %d records, %d reads", err, next-1, reads)
	}
}

// many writes n records of different lengths in several segments.
func many(t *testing.T, n int) string {
	t.Helper()
	dir, ctx := t.TempDir(), context.Background()
	var f *os.File
	for i := range n {
		if i%1000 == 0 {
			if f != nil {
				must(t, f.Close())
			}
			var err error
			f, err = os.Create(filepath.Join(dir, segmentName(uint64(i+1))))
			must(t, err)
		}
		line, err := Marshal(Record{Time: time.Unix(int64(i), 0), Kind: "refusal", Op: "read", Path: fmt.Sprintf("p%d/q", i%7),
			Principal: fmt.Sprint("a", i%3), Reason: strings.Repeat("x", i*37%911)})
		must(t, err)
		_, err = f.Write(number(nil, uint64(i+1), line))
		must(t, err)
	}
	must(t, f.Close())
	must(t, Scan(ctx, dir, 1, func([]byte, Record) error { return nil }))
	return dir
}

func TestScanFromAnySequence(t *testing.T) {
	dir, ctx := many(t, 2500), context.Background()
	for _, from := range []uint64{0, 1, 777, 1000, 1001, 1999, 2000, 2001, 2500, 2501, 9999} {
		next := max(from, 1)
		must(t, Scan(ctx, dir, from, func(line []byte, r Record) error {
			if r.Seq != next || !strings.HasPrefix(string(line), fmt.Sprintf(`{"seq":%d,`, next)) {
				return fmt.Errorf("from %d: %d, %d was to come", from, r.Seq, next)
			}
			next++
			return nil
		}))
		if from <= 2500 && next != 2501 {
			t.Fatalf("from %d: ends before %d", from, next)
		}
	}
	f, err := os.Open(filepath.Join(dir, segmentName(1001)))
	must(t, err)
	defer f.Close()
	for _, from := range []uint64{1001, 1500, 1900, 2000} {
		if _, seq := seek(f, 1001, from); seq > from || seq+400 < from {
			t.Errorf("to read from %d, reading begins at %d", from, seq)
		}
	}
	stop := errors.New("stop")
	if err = Scan(ctx, dir, 1, func([]byte, Record) error { return stop }); err != stop {
		t.Fatal(err)
	}
}

func TestLastAndFilter(t *testing.T) {
	dir, ctx := many(t, 2500), context.Background()
	for name, c := range map[string]struct {
		f     Filter
		n     int
		first uint64
		count int
	}{
		"last three":      {Filter{}, 3, 2498, 3},
		"over a segment":  {Filter{}, 600, 1901, 600},
		"more than all":   {Filter{}, 9999, 1, 2500},
		"of a principal":  {Filter{Principal: "a1"}, 2, 2495, 2},
		"below a path":    {Filter{Path: "p3"}, 1, 2496, 1},
		"not a prefix":    {Filter{Path: "p"}, 5, 0, 0},
		"since":           {Filter{Since: time.Unix(2490, 0)}, 100, 2491, 10},
		"of no kind":      {Filter{Kind: "change"}, 5, 0, 0},
		"of no session":   {Filter{Session: "s"}, 5, 0, 0},
		"none, to follow": {Filter{}, 0, 0, 0},
	} {
		lines, next, err := Last(ctx, dir, c.n, c.f)
		must(t, err)
		if len(lines) != c.count || next != 2501 || c.count > 0 && lines[0].Record.Seq != c.first {
			t.Errorf("%s: %d lines, next %d", name, len(lines), next)
		}
	}
	if lines, next, err := Last(ctx, t.TempDir(), 5, Filter{}); err != nil || lines != nil || next != 1 {
		t.Errorf("an empty log: %v %d %v", lines, next, err)
	}
	// a line that is being written is not read; one that cannot be read is named
	f, err := os.OpenFile(filepath.Join(dir, segmentName(2001)), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString(`{"seq":2501,"k`)
	must(t, err)
	if lines, next, err := Last(ctx, dir, 1, Filter{}); err != nil || next != 2501 || lines[0].Record.Seq != 2500 {
		t.Errorf("%v %d %v", lines, next, err)
	}
	_, err = f.WriteString("\n")
	must(t, err)
	if _, _, err := Last(ctx, dir, 1, Filter{}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}
