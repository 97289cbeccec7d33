package badgerkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"
	"pgregory.net/rapid"

	"memoryfs/backend/kv"
	"memoryfs/backend/kv/kvtest"
)

func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := Open("", Options{InMemory: true})
		if err != nil {
			rt.Fatalf("open: %v", err)
		}
		defer s.Close()
		kvtest.Model(rt, s, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, what) }, 40)
	})
}

func TestWritesAreSynced(t *testing.T) {
	if !open(t, t.TempDir(), Options{}).db.Opts().SyncWrites {
		t.Fatal("SyncWrites is off: an acknowledged commit may be lost with the power")
	}
}

// Every value stays in the tables, so that the value log holds nothing but its header.
func TestValueLogStaysEmpty(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for _, size := range []int{0, 1 << 10, maxValue} {
		if _, err := put(s, fmt.Sprint("k", size), make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if n := allocated(dir, "*.vlog"); n > 64<<10 {
		t.Fatalf("the value log takes %d bytes", n)
	}
}

func TestErrorsThatWrapHidesAreRecovered(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error
	}{
		{y.Wrap(syscall.ENOSPC, "while writing"), kv.ErrNoSpace},
		{y.Wrapf(y.Wrap(&os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, "inner"), "outer %d", 1), kv.ErrNoSpace},
		{y.Wrapf(y.ErrChecksumMismatch, "actual: %d", 1), kv.ErrCorrupt},
		{y.Wrap(errors.New("bad magic"), errDecode.Error()), kv.ErrCorrupt},
		{badger.ErrTxnTooBig, kv.ErrTooLarge},
		{badger.ErrDBClosed, kv.ErrClosed},
		{fmt.Errorf("get: %w", kv.ErrCorrupt), kv.ErrCorrupt},
	} {
		if got := translate(c.err); !errors.Is(got, c.want) {
			t.Errorf("%v is translated to %v; want %v", c.err, got, c.want)
		}
	}
	if translate(nil) != nil {
		t.Error("nil is an error")
	}
	other := errors.New("something else")
	if got := translate(other); got != other {
		t.Errorf("an unknown error becomes %v", got)
	}
}

// A write of which nobody knows what became of it ends everything until the store is opened again.
func TestFailedWriteStopsTheStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	first, err := put(s, "a", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.Close(); err != nil { // under the store's feet: its next write fails
		t.Fatal(err)
	}
	if _, err := put(s, "b", nil); !errors.Is(err, kv.ErrAmbiguous) {
		t.Fatalf("the failed commit: %v", err)
	}
	if _, err := put(s, "c", nil); !errors.Is(err, kv.ErrUnavailable) {
		t.Fatalf("the next commit: %v", err)
	}
	if _, err := p.Get([]byte("a")); !errors.Is(err, kv.ErrUnavailable) {
		t.Fatalf("a read: %v", err)
	}
	p.Close()
	if err := s.Close(); err == nil {
		t.Fatal("close says nothing of the failure")
	}
	s.unlock() // the process would have ended
	again := open(t, dir, Options{})
	checkRev(t, again, "a", first)
}

func checkRev(t *testing.T, s *Store, key string, want kv.Rev) {
	t.Helper()
	p, err := s.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if e, err := p.Get([]byte(key)); err != nil || e[0].Rev != want {
		t.Fatalf("%s: %v, %v; want revision %d", key, e, err, want)
	}
}

// Badger would go on without the keys of a damaged table.
func TestDamagedTableIsNotPassedOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		offset func(size int64) int64
		opens  bool
	}{
		{"Index", func(size int64) int64 { return size - 200 }, false},
		{"Block", func(size int64) int64 { return size / 2 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, Options{})
			for i := range 200 {
				if _, err := put(s, fmt.Sprint("k", i), value(fmt.Sprint(i), 4<<10)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Verify(); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, dir, c.offset)
			if !c.opens {
				if err := spawn(t, "open-damaged", dir, "").Run(); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err := open(t, dir, Options{}).Verify(); !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("a damaged table: %v", err)
			}
		})
	}
}

func damage(t *testing.T, dir string, offset func(int64) int64) {
	t.Helper()
	tables, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	if len(tables) == 0 {
		t.Fatal("there is no table")
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	b[offset(int64(len(b)))] ^= 0x40
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A reclaim blocks writes inside Badger; ours wait for it, and nobody sees it.
func TestReclaimBesideReadersAndWriters(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	ctx := context.Background()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%d/%d", w, i%50)
				rev, err := put(s, key, value(key, 2<<10))
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				p, err := s.Snapshot(ctx)
				if err != nil {
					t.Errorf("snapshot: %v", err)
					return
				}
				if e, err := p.Get([]byte(key)); err != nil || e[0].Rev != rev {
					t.Errorf("get after %d: %v, %v", rev, e, err)
				}
				if es, err := p.List(fmt.Appendf(nil, "%d/", w), nil, 100); err != nil || len(es) != min(i+1, 50) {
					t.Errorf("list: %d, %v", len(es), err)
				}
				p.Close()
			}
		})
	}
	for range 10 {
		time.Sleep(10 * time.Millisecond)
		if err := s.reclaim(ctx); err != nil {
			t.Errorf("reclaim: %v", err)
		}
	}
	close(stop)
	wg.Wait()
}

// Old versions and deleted keys do not keep their space.
func TestCompactGivesSpaceBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	ctx := context.Background()
	for round := range 8 {
		for i := range 4 {
			if _, err := put(s, fmt.Sprint(i), value(fmt.Sprint(round, i), maxValue)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 4 {
		if _, err := s.Commit(ctx, nil, []kv.Op{kv.Delete(fmt.Append(nil, i))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if n := tableBytes(s.db.Tables()); n > 1<<20 {
		t.Fatalf("an empty store has %d bytes of tables", n)
	}
}

// Badger bounds a transaction by bytes and by count; a group that is full of small operations fits all the same.
func TestFullGroupsFitATransaction(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	ctx := context.Background()
	release, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		s.alone(ctx, func() error { close(held); <-release; return nil }) // the committer waits, so that all queue up
	})
	<-held
	for w := range maxGroup {
		wg.Go(func() {
			ops := make([]kv.Op, maxOps)
			for i := range ops {
				ops[i] = kv.Delete(fmt.Appendf(nil, "%d.%d", w, i))
			}
			if _, err := s.Commit(ctx, nil, ops); err != nil {
				t.Errorf("commit: %v", err)
			}
		})
	}
	for len(s.queue) < maxGroup {
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
}

func TestReserveOfTheOptionsIsKept(t *testing.T) {
	dir := t.TempDir()
	_, free, err := volume(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{Reserve: uint64(2 * free)})
	if _, err := put(s, "k", nil); !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("commit: %v", err)
	}
	if u, err := s.Usage(); err != nil || u.Free != 0 {
		t.Fatalf("usage: %+v, %v", u, err)
	}
}

func TestCompactingIsBoundedByTheLayout(t *testing.T) {
	const table = 64 << 20
	at := func(level int, left, right string) badger.TableInfo {
		return badger.TableInfo{Level: level, Left: []byte(left), Right: []byte(right), OnDiskSize: table}
	}
	var wide []badger.TableInfo
	for c := 'a'; c <= 'z'; c++ {
		wide = append(wide, at(6, string(c)+"0", string(c)+"9"))
	}
	for _, c := range []struct {
		name   string
		tables []badger.TableInfo
		want   int64
	}{
		{"Empty", nil, 0},
		{"SmallIsOneCopyOfAll", wide[:3], 3 * table},
		{"LargeIsSteady", append([]badger.TableInfo{at(5, "a0", "a9"), at(5, "c0", "c9")}, wide...), steady},
		{"OneSparseTableOverAll", append([]badger.TableInfo{at(5, "a", "zz"), at(4, "m0", "m9")}, wide...), 28 * table},
		{"LevelZero", append([]badger.TableInfo{at(0, "a", "z"), at(0, "a", "z")}, wide...), 28 * table},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := compacting(c.tables); got != c.want {
				t.Fatalf("%d MiB; want %d", got>>20, c.want>>20)
			}
		})
	}
}
