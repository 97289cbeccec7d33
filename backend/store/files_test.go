package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memoryfs/backend/kv"
	"memoryfs/backend/kv/badgerkv"
)

// onDisk is a fixture whose chunks are files in dir, with free bytes left.
func onDisk(t *testing.T, dir string, free *uint64) *fixture {
	t.Helper()
	engine, err := badgerkv.Open(filepath.Join(dir, "data"), badgerkv.Options{})
	must(t, err)
	s, err := Open(context.Background(), engine, Options{ChunkSize: 1024, MaxFile: 1 << 20, BlobDir: filepath.Join(dir, "blobs"),
		Room: &Room{Free: func() (uint64, error) { return *free, nil }}})
	must(t, err)
	return &fixture{t: t, s: s, kv: engine, ctx: context.Background()}
}

func chunkFiles(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "blobs/*/*"))
	must(t, err)
	return list
}

// soon waits for the collector.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not in 5 s: ", what)
}

// TestChunkFiles: the chunks of a large content are files, shared by equal contents, there after a restart, and gone
// with the last content that has them. What a crash left goes at the start; what is not ours is named and stays.
func TestChunkFiles(t *testing.T) {
	dir, free := t.TempDir(), uint64(1<<30)
	f := onDisk(t, dir, &free)
	big := strings.Repeat("a", 1024) + strings.Repeat("b", 1024) + strings.Repeat("a", 1024) + "end"
	id := f.create(at("big"), big)
	f.create(scratch("twin~"), big)
	if got := chunkFiles(t, dir); len(got) != 3 {
		t.Fatalf("want 3 files, there are %q", got)
	}
	used := f.s.files.used.Load()
	if used != 2*1024+3 {
		t.Errorf("%d bytes in use", used)
	}
	must(t, f.s.Close())
	stray := chunkFiles(t, dir)[0]
	stray = stray[:len(stray)-4] + "ffff"
	must(t, os.WriteFile(stray, []byte("left by a crash"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "blobs/notes.txt"), []byte("somebody's"), 0o600))

	f = onDisk(t, dir, &free)
	if got := f.read(id); got != big {
		t.Errorf("after a restart it has %d bytes", len(got))
	}
	if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stray chunk: %v", err)
	}
	r, err := f.s.Fsck(f.ctx)
	must(t, err)
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Key, "notes.txt") {
		t.Errorf("fsck: %+v", r.Problems)
	}
	must(t, os.Remove(filepath.Join(dir, "blobs/notes.txt")))

	other := f.create(scratch("alone~"), strings.Repeat("c", 2000))
	if len(chunkFiles(t, dir)) != 5 {
		t.Fatalf("there are %q", chunkFiles(t, dir))
	}
	_, _, err = f.s.Write(f.ctx, other, Base{Any: true}, content("short"), time.Time{}, Change{})
	must(t, err)
	soon(t, "the chunks of an overwritten scratch file are removed", func() bool { return len(chunkFiles(t, dir)) == 3 })
	f.clean()

	must(t, os.WriteFile(chunkFiles(t, dir)[0], []byte("damaged"), 0o600))
	if r, err := f.s.Fsck(f.ctx); err != nil || len(r.Problems) == 0 {
		t.Errorf("fsck does not see damage: %v", err)
	}
	c, err := f.s.Content(f.ctx, f.head(id).Sum, int64(len(big)))
	must(t, err)
	_, err = c.ReadAt(make([]byte, len(big)), 0)
	wantErr(t, err, ErrCorrupt)
	must(t, f.s.Close())
}

// TestChunkFilesLeaveTheReserve: a content that does not fit is refused whole, and what was written of it goes.
func TestChunkFilesLeaveTheReserve(t *testing.T) {
	dir, free := t.TempDir(), uint64(1500)
	f := onDisk(t, dir, &free)
	defer func() { must(t, f.s.Close()) }()
	_, _, err := f.s.CreateFile(f.ctx, NewFile{Place: at("big"), ID: f.s.NewID(), Ino: f.ino(), Mode: 0o644,
		Content: content(strings.Repeat("x", 1023) + strings.Repeat("y", 1025))}, f.change())
	must(t, err) // each chunk fits by itself: the free space is what is left, and it is not less here
	free = 100
	_, _, err = f.s.CreateFile(f.ctx, NewFile{Place: at("more"), ID: f.s.NewID(), Ino: f.ino(), Mode: 0o644,
		Content: content(strings.Repeat("z", 2048))}, f.change())
	wantErr(t, err, kv.ErrNoSpace)
	if _, err := f.snap().Child(at("more")); !errors.Is(err, ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	if got := chunkFiles(t, dir); len(got) != 2 {
		t.Errorf("there are %q", got)
	}
	f.clean()
}

// TestStoreFromBeforeChunkFiles: it opens, keeps what it has, and writes chunks as files from then on.
func TestStoreFromBeforeChunkFiles(t *testing.T) {
	dir, free := t.TempDir(), uint64(1<<30)
	engine, err := badgerkv.Open(filepath.Join(dir, "data"), badgerkv.Options{})
	must(t, err)
	s, err := Open(context.Background(), engine, Options{ChunkSize: 1024})
	must(t, err)
	f := &fixture{t: t, s: s, kv: engine, ctx: context.Background()}
	old := f.create(at("old"), strings.Repeat("o", 3000))
	must(t, s.Close())
	f = onDisk(t, dir, &free)
	f.create(at("new"), strings.Repeat("n", 3000))
	if len(f.read(old)) != 3000 || len(chunkFiles(t, dir)) != 2 {
		t.Errorf("old has %d bytes, files: %q", len(f.read(old)), chunkFiles(t, dir))
	}
	f.clean()
	must(t, f.s.Close())
	if engine, err = badgerkv.Open(filepath.Join(dir, "data"), badgerkv.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(context.Background(), engine, Options{ChunkSize: 1024}); !errors.Is(err, ErrFormat) {
		t.Errorf("without its chunk files it opens: %v", err)
	}
	must(t, engine.Close())
}

func (f *fixture) head(id ID) Head {
	f.t.Helper()
	h, err := f.snap().Head(id)
	must(f.t, err)
	return h
}
