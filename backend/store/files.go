package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"memoryfs/backend/kv"
)

// Room gives out space on the store's volume to files beside the engine's, and leaves the engine its reserve: Badger
// dies on a full disk.
type Room struct {
	Free func() (uint64, error) // bytes that may still be used

	mu sync.Mutex // so that two do not take the same space
}

// Take gives f the space from one size to a larger one; what is new reads as zeros. kv.ErrNoSpace.
func (r *Room) Take(f *os.File, from, to int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := r.Free()
	if err != nil {
		return err
	}
	if free < uint64(to-from) {
		return fmt.Errorf("%w: %d bytes wanted", kv.ErrNoSpace, to-from)
	}
	err = unix.Fallocate(int(f.Fd()), 0, from, to-from)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.Truncate(to)
	}
	return noSpace(err)
}

func noSpace(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", kv.ErrNoSpace, err)
	}
	return err
}

// blobDir keeps the chunks of large contents as files, <first byte of the hash>/<hash>.<tag>. In an LSM engine they would
// be written again at each level, and be in memory as mapped tables. A file is durable before b/<sum> names its tag, and
// is removed after; the tag is random, so that a removal never hits a file that was put anew. What a crash leaves in
// between has no name in the store, and goes at the next start.
type blobDir struct {
	dir  string
	room *Room
	used atomic.Int64 // bytes
}

func (d *blobDir) path(sum Sum, tag uint64) string {
	name := hex.EncodeToString(sum[:])
	return filepath.Join(d.dir, name[:2], fmt.Sprintf("%s.%016x", name, tag))
}

// parseBlobFile undoes path.
func parseBlobFile(name string) (sum Sum, tag uint64, ok bool) {
	first, second, _ := strings.Cut(name, ".")
	n, err := hex.Decode(sum[:], []byte(first[:min(len(first), 2*len(sum))]))
	t, err2 := hex.DecodeString(second)
	if err != nil || err2 != nil || n != len(sum) || len(first) != 2*len(sum) || len(t) != 8 {
		return sum, 0, false
	}
	return sum, binary.BigEndian.Uint64(t), true
}

// write makes a durable file of data and returns its tag.
func (d *blobDir) write(sum Sum, data []byte) (uint64, error) {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	tag := binary.BigEndian.Uint64(b[:])
	path := d.path(sum, tag)
	if err := d.create(path, data); err != nil {
		_ = os.Remove(path) // else the next start does it
		return 0, fmt.Errorf("write a chunk: %w", noSpace(err))
	}
	d.used.Add(int64(len(data)))
	return tag, nil
}

func (d *blobDir) create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = syncDir(d.dir)
		}
		if err == nil {
			f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		}
	}
	if err != nil {
		return err
	}
	err = d.room.Take(f, 0, int64(len(data)))
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// read returns a file's bytes; the caller checks their hash.
func (d *blobDir) read(sum Sum, tag uint64) ([]byte, error) {
	data, err := os.ReadFile(d.path(sum, tag))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("chunk %x is missing: %w", sum[:6], ErrCorrupt)
	}
	return data, err
}

func (d *blobDir) remove(sum Sum, tag uint64) error {
	path := d.path(sum, tag)
	fi, err := os.Stat(path)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		d.used.Add(-fi.Size())
	}
	return err
}

// each calls fn with every file; named is false for one whose name is not ours.
func (d *blobDir) each(fn func(path string, sum Sum, tag uint64, named bool) error) error {
	return filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		sum, tag, ok := parseBlobFile(e.Name())
		return fn(path, sum, tag, ok && path == d.path(sum, tag))
	})
}

// openFiles counts the chunk files and removes those that a crash left without a name in the store.
func (s *Store) openFiles(ctx context.Context) error {
	if err := os.MkdirAll(s.files.dir, 0o700); err != nil {
		return err
	}
	return s.eachFile(ctx, func(path string, size int64, named, known bool) error {
		if named && !known {
			return os.Remove(path)
		}
		s.files.used.Add(size)
		return nil
	})
}

// eachFile calls fn with every chunk file; known is true if the store refers to it.
func (s *Store) eachFile(ctx context.Context, fn func(path string, size int64, named, known bool) error) error {
	if s.files == nil {
		return nil
	}
	return s.files.each(func(path string, sum Sum, tag uint64, named bool) error {
		snap, err := s.kv.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer snap.Close()
		known := false
		if named {
			b, err := findBlob(snap, sum)
			if err != nil && !errors.Is(err, ErrCorrupt) {
				return err
			}
			known = err == nil && b.onDisk && b.tag == tag
		}
		fi, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // collected meanwhile
		}
		if err != nil {
			return err
		}
		return fn(path, fi.Size(), named, known)
	})
}
