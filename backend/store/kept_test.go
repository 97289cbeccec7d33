package store

import (
	"strings"
	"testing"
)

// TestKept: what is kept for a principal is its own, can be replaced, and its bytes go with it.
func TestKept(t *testing.T) {
	f := newFixture(t)
	note := func(parts []Part) ([]byte, error) { return []byte{byte(len(parts))}, nil }
	id := f.s.NewID()
	big := content(strings.Repeat("0123456789", 1000)) // of several chunks
	for _, contents := range [][]Bytes{{content("one")}, {content("one"), content("two")}, {content(""), big}, {big, big}, {content("three"), content("three")}} {
		_, err := f.s.Keep(f.ctx, "mia", id, contents, note)
		must(t, err)
		f.clean()
	}
	mine, err := f.snap().Kept("mia")
	must(t, err)
	if len(mine) != 1 || len(mine[0].Parts) != 2 || mine[0].ID != id || string(mine[0].Note) != "\x02" {
		t.Fatalf("%+v", mine)
	}
	for _, other := range []string{"mi", "miaa", "m"} {
		if theirs, err := f.snap().Kept(other); err != nil || len(theirs) != 0 {
			t.Fatalf("%q sees %v (%v)", other, theirs, err)
		}
	}
	must(t, f.s.Drop(f.ctx, "mia", id))
	wantErr(t, f.s.Drop(f.ctx, "mia", id), ErrNotExist)
	must(t, f.s.collectMarked(f.ctx))
	r, err := f.s.Fsck(f.ctx)
	must(t, err)
	if r.Blobs != 0 {
		t.Fatalf("%d blobs are left", r.Blobs)
	}
}
