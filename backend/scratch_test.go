package backend

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"memoryfs/backend/store"
)

func newScratch(t *testing.T, free uint64) *Scratch {
	return &Scratch{dir: t.TempDir(), room: &store.Room{Free: func() (uint64, error) { return free, nil }}}
}

// TestScratchAgainstASlice: whatever is done to it, on both sides of the size where it moves to a file, it holds the
// bytes that a plain slice would.
func TestScratchAgainstASlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 4 {
		s := newScratch(t, 1<<40)
		dir := s.dir
		var model []byte
		resize := func(n int) {
			if n <= len(model) {
				model = model[:n:n]
			} else {
				model = append(model, make([]byte, n-len(model))...)
			}
		}
		for step := range 60 {
			size := r.IntN(spillAt + spillAt/2)
			var err error
			switch op := r.IntN(6); op {
			case 0, 1:
				p := make([]byte, r.IntN(1<<20))
				for i := range p {
					p[i] = byte(r.Uint32())
				}
				off := r.IntN(spillAt)
				resize(max(len(model), off+len(p)))
				copy(model[off:], p)
				_, err = s.WriteAt(p, int64(off))
			case 2:
				resize(size)
				err = s.Truncate(int64(size))
			case 3:
				off := r.IntN(len(model) + 1)
				end := off + r.IntN(len(model)-off+1)
				clear(model[off:end])
				err = s.Zero(int64(off), int64(end))
			case 4:
				n := r.IntN(len(model)/4 + 1)
				model = append([]byte{}, model[n:]...)
				err = s.DropFront(int64(n))
			case 5:
				n := r.IntN(len(model)/8 + 1)
				model = append([]byte{}, model[n:]...)
				var c *Scratch
				if c, err = s.Copy(int64(n)); err == nil {
					s.Close()
					s = c
				}
			}
			if err != nil {
				t.Fatalf("round %d step %d: %v", round, step, err)
			}
			got := make([]byte, s.Size())
			if n, err := s.ReadAt(got, 0); n != len(got) || len(got) > 0 && err != nil {
				t.Fatalf("round %d step %d: read %d of %d: %v", round, step, n, len(got), err)
			}
			if !bytes.Equal(got, model) {
				t.Fatalf("round %d step %d: %d bytes are not the model's %d", round, step, len(got), len(model))
			}
		}
		s.Close()
		s.Close()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// TestScratchLeavesTheReserve: what does not fit beside the engine's reserve is refused, and what was there stays.
func TestScratchLeavesTheReserve(t *testing.T) {
	s := newScratch(t, spillAt+spillStep)
	defer s.Close()
	if _, err := s.WriteAt([]byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate(spillAt + spillStep + 1); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("got %v, want ErrNoSpace", err)
	}
	if err := s.Truncate(spillAt + 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate(3 * spillAt); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("got %v, want ErrNoSpace", err)
	}
	got := make([]byte, 4)
	if _, err := s.ReadAt(got, 0); err != nil || string(got) != "kept" || s.Size() != spillAt+1 {
		t.Errorf("it holds %q, %d bytes: %v", got, s.Size(), err)
	}
}
