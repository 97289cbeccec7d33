package backend

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"memoryfs/backend/kv"
	"memoryfs/backend/store"
)

// Scratch is a content that is being written: in memory up to spillAt bytes, beyond that in a file of the store directory
// that has no name, so that it is gone when the daemon is. It is a store.Bytes. Reading is safe for concurrent use,
// changing is not. A change that does not find room is ErrNoSpace and changes nothing.
type Scratch struct {
	dir  string
	room *store.Room
	mem  []byte
	file *os.File // not nil: the bytes are there, not in mem
	size int64
	have int64 // bytes that the file has been given on disk; zero beyond size
}

const (
	spillAt    = 8 << 20
	spillStep  = 4 << 20 // a file grows by this much at least
	scratchBuf = 1 << 20 // for copies
)

// NewScratch makes an empty one. Close it.
func (m *Memory) NewScratch() *Scratch { return &Scratch{dir: m.dir, room: m.room} }

// Size is the length in bytes.
func (s *Scratch) Size() int64 { return s.size }

// ReadAt is io.ReaderAt.
func (s *Scratch) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), s.size-off)]
	n := 0
	if s.file == nil {
		n = copy(want, s.mem[off:])
	} else {
		var err error
		if n, err = s.file.ReadAt(want, off); err != nil {
			return n, fmt.Errorf("scratch file: %w: %w", ErrInternal, err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt is io.WriterAt; what lies between the old end and off becomes zero.
func (s *Scratch) WriteAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); end > s.size {
		if err := s.Truncate(end); err != nil {
			return 0, err
		}
	}
	if s.file == nil {
		return copy(s.mem[off:], p), nil
	}
	n, err := s.file.WriteAt(p, off)
	return n, scratchError(err)
}

// Truncate makes it shorter, or longer with zeros.
func (s *Scratch) Truncate(size int64) error {
	switch {
	case s.file != nil:
		if err := s.resizeFile(size); err != nil {
			return err
		}
	case size > spillAt:
		return s.spill(size)
	case size < s.size:
		clear(s.mem[size:]) // a later growth must read as zeros
		s.mem = s.mem[:size]
	default:
		s.mem = slices.Grow(s.mem, int(size-s.size))[:size]
		clear(s.mem[s.size:])
	}
	s.size = size
	return nil
}

func (s *Scratch) resizeFile(size int64) error {
	if size < s.size {
		s.have = size
		return scratchError(s.file.Truncate(size))
	}
	if size <= s.have {
		return nil
	}
	have := max(size, s.have+spillStep)
	if err := s.room.Take(s.file, s.have, have); err != nil {
		have = size // near the end of the disk no more than needed
		if err := s.room.Take(s.file, s.have, have); err != nil {
			return scratchError(err)
		}
	}
	s.have = have
	return nil
}

// spill moves the bytes to a file of the given size.
func (s *Scratch) spill(size int64) error {
	f, err := s.namelessFile()
	if err != nil {
		return err
	}
	n := &Scratch{dir: s.dir, room: s.room, file: f}
	if err = n.resizeFile(size); err == nil {
		_, err = f.WriteAt(s.mem, 0)
	}
	if err != nil {
		f.Close()
		return scratchError(err)
	}
	n.size = size
	*s = *n
	return nil
}

// Zero clears the bytes from off to end, which must not be past the size.
func (s *Scratch) Zero(off, end int64) error {
	if s.file == nil {
		clear(s.mem[off:end])
		return nil
	}
	zeros := make([]byte, min(scratchBuf, end-off))
	for off < end {
		n, err := s.file.WriteAt(zeros[:min(int64(len(zeros)), end-off)], off)
		if err != nil {
			return scratchError(err)
		}
		off += int64(n)
	}
	return nil
}

// DropFront takes the first n bytes away. It needs no room.
func (s *Scratch) DropFront(n int64) error {
	if s.file == nil {
		s.mem, s.size = s.mem[n:], s.size-n
		return nil
	}
	buf := make([]byte, scratchBuf)
	for to := int64(0); to+n < s.size; to += int64(len(buf)) {
		p := buf[:min(int64(len(buf)), s.size-n-to)]
		if _, err := s.file.ReadAt(p, to+n); err != nil {
			return scratchError(err)
		}
		if _, err := s.file.WriteAt(p, to); err != nil {
			return scratchError(err)
		}
	}
	return s.Truncate(s.size - n)
}

// Append adds the bytes of c from an offset on.
func (s *Scratch) Append(c store.Bytes, from int64) error {
	buf := make([]byte, min(scratchBuf, max(0, c.Size()-from)))
	for at := s.size; from < c.Size(); {
		p := buf[:min(int64(len(buf)), c.Size()-from)]
		if n, err := c.ReadAt(p, from); n < len(p) {
			return fmt.Errorf("%d of %d bytes: %w: %w", n, len(p), ErrInternal, err)
		}
		if _, err := s.WriteAt(p, at); err != nil {
			return err
		}
		from, at = from+int64(len(p)), at+int64(len(p))
	}
	return nil
}

// Copy makes one with the bytes from an offset on.
func (s *Scratch) Copy(from int64) (*Scratch, error) {
	n := &Scratch{dir: s.dir, room: s.room}
	if err := n.Append(s, from); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close lets the bytes go. It may be called on nil, and twice.
func (s *Scratch) Close() {
	if s == nil {
		return
	}
	if s.file != nil {
		s.file.Close() // has no name: nothing can be lost
	}
	*s = Scratch{dir: s.dir, room: s.room}
}

func (s *Scratch) namelessFile() (*os.File, error) {
	f, err := os.OpenFile(s.dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		if f, err = os.CreateTemp(s.dir, "scratch-*"); err == nil {
			err = os.Remove(f.Name())
		}
	}
	return f, scratchError(err)
}

func scratchError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrNoSpace), errors.Is(err, ErrInternal):
		return err
	case errors.Is(err, kv.ErrNoSpace), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("scratch file: %w", ErrNoSpace)
	default:
		return fmt.Errorf("scratch file: %w: %w", ErrInternal, err)
	}
}
