package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// end is the end of the log: the segment that grows. What is before size is synced, and never touched again.
type end struct {
	dir  string
	disk disk
	max  int64 // of a segment

	f        file // nil after a failure: the next write opens it anew
	first    uint64
	size     int64 // synced bytes
	excess   bool  // the file may have bytes behind size
	torn     bool  // they are what a crash left, and go only together with the note of that
	full     bool  // the last failure was a full disk
	reserved bool  // blocks behind size may be reserved
}

// reserve is the room, in bytes, that must be there before a log that met a full disk counts as working again.
const reserve = 64 << 10

// append writes and syncs buf, whose first line has sequence seq. After an error nothing of buf is in the log: what may be
// in the file is cut off now or, if that fails too, with the next write, which begins at the same place of the file
// opened anew. Neither a failed sync nor one after it on the same file is believed.
func (e *end) append(buf []byte, seq uint64) error {
	err := e.ready(int64(len(buf)), seq)
	if err == nil {
		_, err = e.f.WriteAt(buf, e.size)
	}
	if err == nil && e.excess {
		err = e.f.Truncate(e.size + int64(len(buf)))
	}
	if err == nil {
		err = e.f.Sync()
	}
	if err != nil {
		e.full = isFull(err)
		e.spoil()
		return err
	}
	e.size += int64(len(buf))
	e.excess, e.torn, e.full = false, false, false
	return nil
}

// spoil takes back what a failed append may have left.
func (e *end) spoil() {
	if e.f == nil {
		return
	}
	e.excess = true
	if !e.torn {
		_ = e.f.Truncate(e.size) // for readers only: excess stays
	}
	_ = e.f.Close()
	e.f = nil
}

// ready makes sure that there is a file with room for n bytes.
func (e *end) ready(n int64, seq uint64) error {
	if e.f == nil {
		if err := e.open(false); err != nil {
			return err
		}
	}
	if e.size > 0 && e.size+n > e.max {
		if err := e.rotate(seq); err != nil {
			return err
		}
	}
	if !e.full {
		return nil
	}
	e.reserved = true
	return e.f.Reserve(e.size, max(n, reserve))
}

// open opens the segment; it must have at least what was synced.
func (e *end) open(create bool) error {
	f, err := e.disk.Open(filepath.Join(e.dir, segmentName(e.first)), create)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size < e.size {
		err = fmt.Errorf("%w: %s has %d bytes, %d were synced", ErrDamaged, segmentName(e.first), size, e.size)
	}
	if err == nil && create {
		err = e.disk.SyncDir(e.dir)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	e.f = f
	e.excess = e.excess || size > e.size
	return nil
}

// rotate begins a segment. If it fails, the old one is still the end.
func (e *end) rotate(seq uint64) error {
	if e.excess {
		if err := errors.Join(e.f.Truncate(e.size), e.f.Sync()); err != nil {
			return err
		}
		e.excess, e.torn = false, false
	}
	next := end{dir: e.dir, disk: e.disk, max: e.max, first: seq, full: e.full}
	if err := next.open(true); err != nil {
		return err
	}
	_ = e.close()
	*e = next
	return nil
}

// close gives the file back, and blocks that were reserved. Everything in it is synced already.
func (e *end) close() error {
	if e.f == nil {
		return nil
	}
	f := e.f
	e.f = nil
	if e.reserved && !e.excess {
		_ = f.Truncate(e.size)
	}
	return f.Close()
}

// disk is the part of the file system that the log writes to.
type disk interface {
	Open(name string, create bool) (file, error)
	SyncDir(dir string) error
}

type file interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error // data, and the size
	Reserve(off, n int64) error
	Size() (int64, error)
}

// machine is the disk of this machine.
type machine struct{}

func (machine) SyncDir(dir string) error { return syncDir(dir) }

func (machine) Open(name string, create bool) (file, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil || !errors.Is(err, unix.EINTR) {
			return wrapPath("fdatasync", f.Name(), err)
		}
	}
}

// Reserve allocates blocks without changing the size. A file system that cannot has them checked by the write.
func (f osFile) Reserve(off, n int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return wrapPath("fallocate", f.Name(), err)
}

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func wrapPath(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
