package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is also the entry of the child processes, which are killed, or write a log that the test reads.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_CHILD"); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func spawn(t *testing.T, dir string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "AUDIT_CHILD="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, out
}

// fileStore is a Source in a file, which a rename replaces: each commit is atomic, and outlives the process.
type fileStore struct {
	fakeStore
	name string
}

type fileState struct {
	Rev     uint64
	Intents []Intent
	Tail    json.RawMessage
}

func openFileStore(name string) (*fileStore, error) {
	f := &fileStore{name: name}
	b, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	var s fileState
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	f.rev, f.intents = s.Rev, s.Intents
	if string(s.Tail) != "null" {
		f.tail = s.Tail
	}
	return f, nil
}

// save is called with mu held.
func (f *fileStore) save() error {
	b, err := json.Marshal(fileState{f.rev, f.intents, f.tail})
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.name+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(f.name+".new", f.name)
}

func (f *fileStore) Taken(ctx context.Context, ops [][16]byte, tail []byte) error {
	if err := f.fakeStore.Taken(ctx, ops, tail); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.save()
}

// change commits the next version of the one memory, with its intent. Before it is saved nobody sees the intent.
func (f *fileStore) change() (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.rev + 1
	in, err := intentOf(n, Record{Time: time.Now(), Kind: "change", Op: "write", Memory: "m", Version: n, Commit: "c"})
	if err != nil {
		return 0, err
	}
	f.rev, f.intents = n, append(f.intents, in)
	return n, f.save()
}

// child commits, appends and refuses until it is killed, and prints what it was answered for.
func child(dir string) error {
	src, err := openFileStore(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	l, err := Open(ctx, filepath.Join(dir, "log"), src, Options{SegmentBytes: 8 << 10})
	if err != nil {
		return err
	}
	fmt.Println("open")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				seq, err := l.Append(ctx, Record{Kind: "mount", Op: "mount", Reason: "a line of some length, to be cut in two"})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println("seq", seq)
			}
		})
	}
	for {
		rev, err := src.change()
		if err != nil {
			return err
		}
		fmt.Println("rev", rev)
		l.Wake()
		l.Refuse(Record{Kind: "refusal", Op: "write", Path: strconv.FormatUint(rev, 10), Principal: "a"})
	}
}

// TestKillNine kills a writer at any moment, many times: no change is without its one record, nothing acknowledged is
// gone, sequences have no gap.
func TestKillNine(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	log, acked, seen := filepath.Join(dir, "log"), map[uint64]bool{}, uint64(0)
	for range 20 {
		cmd, out := spawn(t, dir)
		in := bufio.NewScanner(out)
		if !in.Scan() || in.Text() != "open" {
			t.Fatalf("the child did not open the log: %q %v", in.Text(), cmd.Wait())
		}
		kill := time.AfterFunc(time.Duration(5+rand.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for in.Scan() {
			var n uint64
			if k, _ := fmt.Sscanf(in.Text(), "seq %d", &n); k == 1 {
				acked[n] = true
			}
			if k, _ := fmt.Sscanf(in.Text(), "rev %d", &n); k == 1 {
				seen = max(seen, n)
			}
		}
		kill.Stop()
		_ = cmd.Wait()
	}
	src, err := openFileStore(filepath.Join(dir, "store"))
	must(t, err)
	if src.rev < seen || seen == 0 {
		t.Fatalf("the store lost revision %d: it has %d", seen, src.rev)
	}
	l := open(t, log, src, Options{})
	must(t, l.Sync(ctx, src.rev))
	must(t, l.Close(ctx))
	versions := func(yield func(Fact, error) bool) {
		for n := range src.rev {
			if !yield(Fact{Memory: "m", Version: n + 1, Head: n+1 == src.rev, Commit: "c"}, nil) {
				return
			}
		}
	}
	r, err := Verify(ctx, log, versions, nil, src.rev)
	must(t, err)
	if len(r.Problems) > 0 {
		t.Fatalf("%+v", r)
	}
	kinds := map[string]int{}
	for _, r := range all(t, log) {
		kinds[r.Kind]++
		if acked[r.Seq] && r.Kind != "mount" {
			t.Fatalf("record %d was acknowledged as a mount, and is %+v", r.Seq, r)
		}
		delete(acked, r.Seq)
	}
	if len(acked) > 0 {
		t.Fatalf("%d acknowledged records are gone", len(acked))
	}
	t.Logf("%d records %v", r.Records, kinds)
}
