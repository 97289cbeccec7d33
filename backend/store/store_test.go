package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"memoryfs/backend/kv"
	"memoryfs/backend/kv/badgerkv"
)

type content []byte

func (c content) Size() int64                             { return int64(len(c)) }
func (c content) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(c).ReadAt(p, off) }

// fixture is a store in memory whose records are collected.
type fixture struct {
	t   *testing.T
	s   *Store
	kv  *badgerkv.Store
	ctx context.Context
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	engine, err := badgerkv.Open("", badgerkv.Options{InMemory: true})
	must(t, err)
	s, err := Open(context.Background(), engine, Options{ChunkSize: 1024, MaxFile: 1 << 20})
	must(t, err)
	f := &fixture{t: t, s: s, kv: engine, ctx: context.Background()}
	t.Cleanup(func() {
		f.clean()
		must(t, s.Close())
	})
	return f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// clean: fsck finds nothing, and every version has exactly one intent.
func (f *fixture) clean() {
	f.t.Helper()
	r, err := f.s.Fsck(f.ctx)
	must(f.t, err)
	for _, p := range r.Problems {
		f.t.Errorf("fsck: %+v", p)
	}
	versions := map[string]int{}
	_, err = f.s.EachVersion(f.ctx, func(v Version, _ bool) error {
		versions[strings.ReplaceAll(fmt.Sprint(v.Memory, v.Number), " ", "")]++
		return nil
	})
	must(f.t, err)
	intents, err := f.s.Intents(f.ctx, 0, 1<<20)
	must(f.t, err)
	last := kv.Rev(0)
	for _, in := range intents {
		if in.Rev <= last {
			f.t.Errorf("intents are not in the order of revisions")
		}
		last = in.Rev
		for _, name := range strings.Fields(string(in.Data))[1:] {
			versions[name]--
		}
	}
	for v, n := range versions {
		if n != 0 {
			f.t.Errorf("version %s: %+d records", v, -n)
		}
	}
}

// change records the versions it makes, as "id+number" words.
func (f *fixture) change() Change {
	return Change{Op: f.s.NewID(), Prov: Provenance{Principal: "p"}, Record: func(c Changed) ([]byte, error) {
		words := []string{"-"}
		for _, v := range []*Version{c.Version, c.Replaced} {
			if v != nil {
				words = append(words, strings.ReplaceAll(fmt.Sprint(v.Memory, v.Number), " ", ""))
			}
		}
		return []byte(strings.Join(words, " ")), nil
	}}
}

func (f *fixture) ino() uint64 {
	n, err := f.s.NewIno(f.ctx)
	must(f.t, err)
	return n
}

func (f *fixture) create(p Place, text string) ID {
	f.t.Helper()
	id := f.s.NewID()
	_, _, err := f.s.CreateFile(f.ctx, NewFile{Place: p, ID: id, Ino: f.ino(), Mode: 0o644, Content: content(text)}, f.change())
	must(f.t, err)
	return id
}

func (f *fixture) mkdir(parent ID, name string) ID {
	f.t.Helper()
	in, _, err := f.s.Mkdir(f.ctx, Place{Parent: parent, Name: name}, f.ino(), 0o755, f.change())
	must(f.t, err)
	return in.ID
}

func (f *fixture) rename(from, to Place, base Base) (Renamed, error) {
	r, _, err := f.s.Rename(f.ctx, RenameRequest{From: from, To: to, Base: base, IDNew: f.s.NewID(), InoNew: f.ino()}, f.change())
	return r, err
}

func (f *fixture) snap() *Snapshot {
	f.t.Helper()
	s, err := f.s.Snapshot(f.ctx)
	must(f.t, err)
	f.t.Cleanup(s.Close)
	return s
}

func (f *fixture) read(id ID) string {
	f.t.Helper()
	h, err := f.snap().Head(id)
	must(f.t, err)
	c, err := f.s.Content(f.ctx, h.Sum, h.Size)
	must(f.t, err)
	b := make([]byte, h.Size)
	must(f.t, readAll(c, b, 0))
	return string(b)
}

func at(name string) Place { return Place{Parent: RootID, Name: name} }

func scratch(name string) Place { return Place{Parent: RootID, Name: name, Owner: "p"} }

func TestWriteIsCompareAndSwap(t *testing.T) {
	f := newFixture(t)
	id := f.create(at("f"), "one")
	h1, err := f.snap().Head(id)
	must(t, err)
	h2, rev, err := f.s.Write(f.ctx, id, Base{Sum: h1.Sum}, content("two"), time.Time{}, f.change())
	must(t, err)
	if h2.Version != 2 || rev == 0 {
		t.Fatalf("%+v %d", h2, rev)
	}
	_, _, err = f.s.Write(f.ctx, id, Base{Sum: h1.Sum}, content("three"), time.Time{}, f.change())
	wantErr(t, err, ErrStale)
	same, rev, err := f.s.Write(f.ctx, id, Base{Sum: h1.Sum}, content("two"), time.Time{}, f.change())
	must(t, err)
	if same.Version != 2 || rev != 0 {
		t.Fatal("equal bytes made a version, or a conflict")
	}
	_, _, err = f.s.Write(f.ctx, id, Base{Any: true}, content(make([]byte, 1<<20+1)), time.Time{}, f.change())
	wantErr(t, err, ErrTooLarge)
	if f.read(id) != "two" {
		t.Fatal("a refused write changed the file")
	}
}

// TestOneWriterWins: of 64 that start from one content, exactly one.
func TestOneWriterWins(t *testing.T) {
	f := newFixture(t)
	id := f.create(at("f"), "base")
	h, err := f.snap().Head(id)
	must(t, err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 64 {
		wg.Go(func() {
			_, _, err := f.s.Write(f.ctx, id, Base{Sum: h.Sum}, content(fmt.Sprint("writer ", i)), time.Time{}, f.change())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, ErrStale) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d writers won", won)
	}
}

func TestOneCreatorWins(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 32 {
		wg.Go(func() {
			_, _, err := f.s.CreateFile(f.ctx, NewFile{Place: at("x"), ID: f.s.NewID(), Ino: uint64(1000 + i), Content: content("c")}, f.change())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d creators won", won)
	}
}

func TestAppendsLoseNothing(t *testing.T) {
	f := newFixture(t)
	id := f.create(at("log"), "")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 20 {
				if _, _, err := f.s.Append(f.ctx, id, content(fmt.Sprintf("%d-%d\n", i, k)), f.change()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	text := f.read(id) // 160 lines: more than one chunk
	for i := range 8 {
		for k := range 20 {
			if strings.Count(text, fmt.Sprintf("%d-%d\n", i, k)) != 1 {
				t.Fatalf("line %d-%d", i, k)
			}
		}
	}
}

func TestRenameCases(t *testing.T) {
	f := newFixture(t)
	base := Base{Any: true}
	a := f.create(at("a"), "A")
	t.Run("memory to a free name", func(t *testing.T) {
		r, err := f.rename(at("a"), at("b"), base)
		must(t, err)
		if r.Moved != a || r.Head.Version != 2 {
			t.Fatalf("%+v", r)
		}
		v, err := f.snap().Version(a, 2)
		must(t, err)
		if v.Kind != KindRename || v.Path != "b" || v.From != "a" {
			t.Fatalf("%+v", v)
		}
	})
	t.Run("memory onto a memory", func(t *testing.T) {
		c := f.create(at("c"), "C")
		old, err := f.snap().Inode(a)
		must(t, err)
		r, err := f.rename(at("b"), at("c"), base)
		must(t, err)
		in, err := f.snap().Inode(c)
		must(t, err)
		if r.Moved != c || in.Ino != old.Ino || f.read(c) != "A" {
			t.Fatalf("%+v %+v", r, in)
		}
		gone, err := f.snap().Inode(a)
		must(t, err)
		if v, err := f.snap().Version(a, 3); err != nil || v.Kind != KindDelete || v.From != "c" || !gone.Gone {
			t.Fatalf("%+v %v", v, err)
		}
		if ids, err := f.snap().Deleted(at("b")); err != nil || len(ids) != 1 || ids[0].ID != a {
			t.Fatalf("%v %v", ids, err)
		}
		_, err = f.rename(at("c"), at("c"), base)
		must(t, err)
	})
	t.Run("stale target", func(t *testing.T) {
		f.create(at("d"), "D")
		_, err := f.rename(at("d"), at("c"), Base{Sum: Sum{1}})
		wantErr(t, err, ErrStale)
	})
	t.Run("ephemeral", func(t *testing.T) {
		e := f.create(scratch("e.tmp"), "E")
		ino, err := f.snap().Inode(e)
		must(t, err)
		r, err := f.rename(scratch("e.tmp"), at("e"), base)
		must(t, err)
		in, err := f.snap().Inode(r.Moved)
		must(t, err)
		if in.Ino != ino.Ino || in.Owner != "" || r.Head.Version != 1 || f.read(r.Moved) != "E" {
			t.Fatalf("%+v %+v", r, in)
		}
		f.create(scratch("e.tmp"), "E2")
		again, err := f.rename(scratch("e.tmp"), at("e"), base)
		must(t, err)
		if again.Moved != r.Moved || again.Head.Version != 2 || f.read(r.Moved) != "E2" {
			t.Fatalf("%+v", again)
		}
	})
	t.Run("backup", func(t *testing.T) {
		g := f.create(at("g"), "G")
		was, err := f.snap().Inode(g)
		must(t, err)
		for range 2 { // the second replaces the first
			r, _, err := f.s.Rename(f.ctx, RenameRequest{From: at("g"), To: scratch("g~"), Base: base, IDNew: f.s.NewID(), InoNew: f.ino()}, Change{})
			must(t, err)
			if !r.Backup || f.read(r.Moved) != "G" || f.read(g) != "G" {
				t.Fatalf("%+v", r)
			}
			copied, err := f.snap().Inode(r.Moved)
			must(t, err)
			now, err := f.snap().Inode(g)
			must(t, err)
			if copied.Ino != was.Ino || now.Ino == was.Ino {
				t.Fatal("inode numbers")
			}
			was = now
		}
	})
	t.Run("directories", func(t *testing.T) {
		d, e := f.mkdir(RootID, "dir"), f.mkdir(RootID, "empty")
		f.mkdir(d, "sub")
		_, err := f.rename(at("dir"), Place{Parent: d, Name: "x"}, base)
		wantErr(t, err, ErrLoop)
		_, err = f.rename(at("e"), at("dir"), base)
		wantErr(t, err, ErrIsDir)
		_, err = f.rename(at("dir"), at("e"), base)
		wantErr(t, err, ErrNotDir)
		_, err = f.rename(at("empty"), at("dir"), base)
		wantErr(t, err, ErrNotEmpty)
		r, err := f.rename(at("dir"), at("empty"), base)
		must(t, err)
		if r.Moved != d || r.Replaced != e {
			t.Fatalf("%+v", r)
		}
	})
}

// TestConcurrentMovesMakeNoCycle: a under b and b under a at once.
func TestConcurrentMovesMakeNoCycle(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		a, b := f.mkdir(RootID, fmt.Sprint("a", i)), f.mkdir(RootID, fmt.Sprint("b", i))
		var wg sync.WaitGroup
		for _, m := range []RenameRequest{{From: at(fmt.Sprint("a", i)), To: Place{Parent: b, Name: "x"}}, {From: at(fmt.Sprint("b", i)), To: Place{Parent: a, Name: "x"}}} {
			wg.Go(func() { _, _, _ = f.s.Rename(f.ctx, m, f.change()) })
		}
		wg.Wait()
	}
	f.clean()
}

// TestDirectoryRenameIsOneInode, whatever lies below, and keeps the history.
func TestDirectoryRenameIsOneInode(t *testing.T) {
	f := newFixture(t)
	d := f.mkdir(RootID, "d")
	var last ID
	for i := range 200 {
		last = f.create(Place{Parent: d, Name: fmt.Sprint(i)}, "x")
	}
	before, err := f.s.Rev(f.ctx)
	must(t, err)
	w, err := f.s.Watch(f.ctx, before+1)
	must(t, err)
	defer w.Close()
	_, err = f.rename(at("d"), at("e"), Base{Any: true})
	must(t, err)
	b, err := w.Next(f.ctx)
	for err == nil && len(b.Entries) == 0 {
		b, err = w.Next(f.ctx)
	}
	must(t, err)
	if len(b.Entries) != 2 || len(b.Inodes) > 2 {
		t.Fatalf("%d names and %d inodes changed", len(b.Entries), len(b.Inodes))
	}
	if p, err := f.snap().Path(last); err != nil || p != "e/199" {
		t.Fatalf("%s %v", p, err)
	}
}

func TestUnlinkKeepsHistoryAndRefusesStale(t *testing.T) {
	f := newFixture(t)
	id := f.create(at("f"), "one")
	_, _, err := f.s.Unlink(f.ctx, at("f"), Base{Sum: Sum{9}}, f.change())
	wantErr(t, err, ErrStale)
	_, _, err = f.s.Unlink(f.ctx, at("f"), Base{Any: true}, f.change())
	must(t, err)
	vs, err := f.snap().Versions(id, 0, 10)
	must(t, err)
	if len(vs) != 2 || vs[0].Kind != KindDelete {
		t.Fatalf("%+v", vs)
	}
	_, err = f.s.Rmdir(f.ctx, at("none"), f.change())
	wantErr(t, err, ErrNotExist)
}

// TestReviveGoesOnWithTheHistory of a deleted memory, wherever its new name is, and of nothing else.
func TestReviveGoesOnWithTheHistory(t *testing.T) {
	f := newFixture(t)
	id := f.create(at("a"), "one")
	again := NewFile{Place: at("b"), ID: id, Revive: true, Ino: f.ino(), Mode: 0o644, Content: content("two")}
	_, _, err := f.s.CreateFile(f.ctx, again, f.change())
	wantErr(t, err, ErrExist) // it lives
	_, _, err = f.s.Unlink(f.ctx, at("a"), Base{Any: true}, f.change())
	must(t, err)
	head, _, err := f.s.CreateFile(f.ctx, again, f.change())
	must(t, err)
	if head.Version != 3 || f.read(id) != "two" {
		t.Errorf("version %d, it reads %q", head.Version, f.read(id))
	}
	if gone, err := f.snap().Deleted(at("a")); err != nil || len(gone) != 0 {
		t.Errorf("still listed as deleted: %v, %v", gone, err)
	}
	again.Place, again.ID = at("c"), f.s.NewID()
	_, _, err = f.s.CreateFile(f.ctx, again, f.change())
	wantErr(t, err, ErrNotExist)
}

// TestChunkedContentAndGarbage: an overwritten ephemeral leaves no blob.
func TestChunkedContentAndGarbage(t *testing.T) {
	f := newFixture(t)
	big := strings.Repeat("0123456789", 1000)
	id := f.create(scratch("big.tmp"), big)
	if f.read(id) != big {
		t.Fatal("chunked content differs")
	}
	_, _, err := f.s.Write(f.ctx, id, Base{}, content("small"), time.Time{}, Change{})
	must(t, err)
	_, _, err = f.s.Unlink(f.ctx, scratch("big.tmp"), Base{Any: true}, Change{})
	must(t, err)
	must(t, f.s.collectMarked(f.ctx))
	r, err := f.s.Fsck(f.ctx)
	must(t, err)
	if r.Blobs != 0 {
		t.Fatalf("%d blobs are left", r.Blobs)
	}
}

func TestSweepTakesOldEphemeralsOnly(t *testing.T) {
	f := newFixture(t)
	f.create(scratch("old.tmp"), "x")
	keep := f.create(at("memory"), "x")
	if n, err := f.s.SweepEphemerals(f.ctx, time.Now().Add(-time.Hour)); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	if n, err := f.s.SweepEphemerals(f.ctx, time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if f.read(keep) != "x" {
		t.Fatal("a memory was swept")
	}
}

// TestDamageIsFound: flipped bytes are an error for the reader, and a finding of fsck.
func TestDamageIsFound(t *testing.T) {
	f := newFixture(t)
	id := f.create(at("f"), "precious")
	h, err := f.snap().Head(id)
	must(t, err)
	good := encodeBytes([]byte("precious"))
	_, err = f.kv.Commit(f.ctx, nil, []kv.Op{kv.Put(keyBlob(h.Sum), encodeBytes([]byte("precioux")))})
	must(t, err)
	_, err = f.s.Content(f.ctx, h.Sum, h.Size)
	wantErr(t, err, ErrCorrupt)
	r, err := f.s.Fsck(f.ctx)
	must(t, err)
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Detail, "hash") {
		t.Fatalf("%+v", r.Problems)
	}
	_, err = f.kv.Commit(f.ctx, nil, []kv.Op{kv.Put(keyBlob(h.Sum), good), kv.Delete(keyRef(h.Sum, id, 1)), kv.Put([]byte("zz"), nil)})
	must(t, err)
	r, err = f.s.Fsck(f.ctx)
	must(t, err)
	if len(r.Problems) != 2 { // the reference, the unknown key
		t.Fatalf("%+v", r.Problems)
	}
	_, err = f.kv.Commit(f.ctx, nil, []kv.Op{kv.Put(keyRef(h.Sum, id, 1), nil), kv.Delete([]byte("zz"))})
	must(t, err)
}

func TestUnknownFormatIsRefused(t *testing.T) {
	engine, err := badgerkv.Open("", badgerkv.Options{InMemory: true})
	must(t, err)
	defer engine.Close()
	w := &writer{}
	w.uint(formatVersion + 1)
	w.raw(make([]byte, 16))
	w.uint(0)
	_, err = engine.Commit(context.Background(), nil, []kv.Op{kv.Put(keyMeta(), w.b)})
	must(t, err)
	_, err = Open(context.Background(), engine, Options{})
	wantErr(t, err, ErrFormat)
}

func FuzzDecoders(f *testing.F) {
	f.Add(encodeInode(Inode{Type: TypeFile, Name: "n", Xattrs: map[string][]byte{"user.a": []byte("b")}, Mtime: time.Unix(1, 2)}))
	f.Add(encodeHead(Head{Version: 3, Size: 4}))
	f.Add(encodeDentry(Dentry{Type: TypeDir, Ino: 7}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if in, err := decodeInode(ID{}, b); err == nil {
			if _, err := decodeInode(ID{}, encodeInode(in)); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = decodeHead(ID{}, b)
		_, _ = decodeDentry("x", b)
		_, _ = decodeVersion(ID{}, 1, b)
		_, _ = decodeBlob(Sum{}, b)
	})
}
