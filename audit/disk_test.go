package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// model is a disk that fails, and does with pages what Linux does: a failed sync marks them clean, so that a later sync
// succeeds without having written them.
type model struct {
	mu     sync.Mutex
	files  map[string]*modelFile
	faults []error // of the next operations, nil for none
	syncs  int
}

type modelFile struct {
	m      *model
	cache  []byte
	stored []byte
	dirty  map[int64]bool // pages
}

const page = 64 // small, so that several are in a group

// fault is called with mu held.
func (m *model) fault() error {
	if len(m.faults) == 0 {
		return nil
	}
	err := m.faults[0]
	m.faults = m.faults[1:]
	return err
}

func (m *model) set(faults ...error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = faults
}

func (m *model) SyncDir(string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fault()
}

func (m *model) Open(name string, create bool) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fault(); err != nil {
		return nil, err
	}
	f := m.files[filepath.Base(name)]
	if f == nil && !create {
		return nil, os.ErrNotExist
	}
	if f == nil {
		f = &modelFile{m: m, dirty: map[int64]bool{}}
		m.files[filepath.Base(name)] = f
	}
	return f, nil
}

func (f *modelFile) WriteAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.m.fault()
	if err != nil {
		b = b[:len(b)/2]
	}
	if grow := off + int64(len(b)) - int64(len(f.cache)); grow > 0 {
		f.cache = append(f.cache, make([]byte, grow)...)
	}
	n := copy(f.cache[off:], b)
	for p := off / page; p*page < off+int64(n); p++ {
		f.dirty[p] = true
	}
	return n, err
}

func (f *modelFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.fault(); err != nil {
		return err
	}
	f.cache = append([]byte(nil), f.cache[:min(size, int64(len(f.cache)))]...)
	return nil
}

func (f *modelFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.m.fault()
	f.m.syncs++
	if err == nil {
		f.stored = append(f.stored[:min(len(f.stored), len(f.cache))], make([]byte, max(0, len(f.cache)-len(f.stored)))...)
		for p := range f.dirty {
			if p*page < int64(len(f.cache)) {
				copy(f.stored[p*page:min((p+1)*page, int64(len(f.cache)))], f.cache[p*page:])
			}
		}
	}
	clear(f.dirty)
	return err
}

func (f *modelFile) Reserve(int64, int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.fault()
}

func (f *modelFile) Size() (int64, error) { return int64(len(f.cache)), nil }
func (f *modelFile) Close() error         { return nil }

// powerCut is what is on the disk.
func (m *model) powerCut(t *testing.T, dir string) []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, f := range m.files {
		if err := os.WriteFile(filepath.Join(dir, name), f.stored, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out []Record
	if err := Scan(context.Background(), dir, 1, func(_ []byte, r Record) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFailingDisk: whatever fails, what was acknowledged is on the disk, and what was turned away is not.
func TestFailingDisk(t *testing.T) {
	dirs := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // pauses take no time
		for seed := range uint64(300) {
			failingDisk(t, filepath.Join(dirs, fmt.Sprint(seed)), seed)
		}
	})
}

func failingDisk(t *testing.T, dir string, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	m, ctx := &model{files: map[string]*modelFile{}}, context.Background()
	l, err := Open(ctx, dir, &fakeStore{}, Options{SegmentBytes: 700, disk: m})
	must(t, err)
	acked, refused := map[uint64]string{}, map[string]bool{}
	for i := range 12 {
		faults := make([]error, rng.IntN(7))
		for i := range faults {
			faults[i] = []error{nil, nil, unix.EIO, unix.ENOSPC}[rng.IntN(4)]
		}
		m.set(faults...)
		op := fmt.Sprint("op", i)
		seq, err := l.Append(ctx, Record{Kind: "read", Op: op})
		switch {
		case err == nil:
			acked[seq] = op
		case errors.Is(err, ErrUnavailable):
			refused[op] = true
		default:
			t.Fatal(err)
		}
	}
	m.set()
	_, err = l.Append(ctx, Record{Kind: "read", Op: "last"})
	must(t, errors.Join(err, l.Healthy(), l.Close(ctx)))
	for _, r := range m.powerCut(t, dir) {
		if want, ok := acked[r.Seq]; ok && want != r.Op || refused[r.Op] {
			t.Fatalf("seed %d: record %d is %q, %q was acknowledged", seed, r.Seq, r.Op, want)
		}
		delete(acked, r.Seq)
	}
	if len(acked) > 0 {
		t.Fatalf("seed %d: lost: %v", seed, acked)
	}
}

// TestTwoFailuresAreNoFault, and three are; then it heals in the background.
func TestTwoFailuresAreNoFault(t *testing.T) {
	m, ctx, dir := &model{files: map[string]*modelFile{}}, context.Background(), t.TempDir()
	l := open(t, dir, &fakeStore{}, Options{disk: m})
	m.set(unix.EIO, nil, nil, unix.EIO) // the write; then, after its truncate and the reopening, the write again
	_, err := l.Append(ctx, Record{Kind: "read", Op: "a"})
	must(t, err)
	must(t, l.Healthy())
	m.set(unix.ENOSPC)
	if _, err := l.Append(ctx, Record{Kind: "read", Op: "full"}); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("a full disk is tried again: %v", err)
	}
	waitHealthy(t, l)
	var always []error
	for range 1000 {
		always = append(always, unix.EIO)
	}
	m.set(always...)
	if _, err := l.Append(ctx, Record{Kind: "read", Op: "b"}); !errors.Is(err, ErrUnavailable) || !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	if err := l.Healthy(); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	l.Refuse(refusal("a", "while it is broken"))
	if err := l.Sync(ctx, 0); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	m.set()
	waitHealthy(t, l)
	must(t, l.Close(ctx))
	ops := map[string]int{}
	for _, r := range m.powerCut(t, t.TempDir()) {
		ops[r.Op]++
		if r.Op == "writable" && (r.Errno != "EIO" && r.Errno != "ENOSPC" || r.Kind != "recover") {
			t.Errorf("%+v", r)
		}
	}
	if ops["a"] != 1 || ops["b"] != 0 || ops["writable"] != 2 || ops["full"] != 0 || ops["open"] != 1 {
		t.Fatal(ops)
	}
}

func waitHealthy(t *testing.T, l *Log) {
	t.Helper()
	for range 200 {
		if l.Healthy() == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(l.Healthy())
}

// TestManyWritersShareSyncs: 256 that wait need few syncs.
func TestManyWritersShareSyncs(t *testing.T) {
	m, ctx := &model{files: map[string]*modelFile{}}, context.Background()
	l := open(t, t.TempDir(), &fakeStore{}, Options{disk: slow{m}})
	var wg sync.WaitGroup
	for range 256 {
		wg.Go(func() {
			for range 4 {
				if _, err := l.Append(ctx, Record{Kind: "read"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, l.Close(ctx))
	if m.syncs > 64 {
		t.Fatalf("%d syncs for 1024 records", m.syncs)
	}
	t.Logf("%d syncs for 1024 records", m.syncs)
}

// slow is a disk whose sync takes a while.
type slow struct{ *model }

type slowFile struct{ file }

func (s slow) Open(name string, create bool) (file, error) {
	f, err := s.model.Open(name, create)
	return slowFile{f}, err
}

func (f slowFile) Sync() error {
	time.Sleep(5 * time.Millisecond)
	return f.file.Sync()
}
