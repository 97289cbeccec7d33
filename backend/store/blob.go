package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"memoryfs/backend/kv"
)

// Content reads the bytes of a head or a version. Each blob or chunk is checked against its hash when it is loaded; the
// last one stays for the next read. Safe for concurrent use.
type Content struct {
	s      *Store
	ctx    context.Context
	sum    Sum
	size   int64
	chunks []Sum // nil: one blob

	mu   sync.Mutex
	last int // index of the loaded chunk; -1: none
	data []byte
}

// Content opens bytes by their hash. ErrCorrupt if they are not there or not what the hash says.
func (s *Store) Content(ctx context.Context, sum Sum, size int64) (*Content, error) {
	c := &Content{s: s, ctx: context.WithoutCancel(ctx), sum: sum, size: size, last: -1}
	if size == 0 {
		return c, nil
	}
	snap, err := s.kv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	b, err := s.getBlob(snap, sum)
	if err != nil {
		return nil, err
	}
	if c.chunks = b.chunks; b.chunks != nil {
		if int64(len(b.chunks)) != (size+int64(s.opts.ChunkSize)-1)/int64(s.opts.ChunkSize) && !b.sized(size) {
			return nil, fmt.Errorf("content %x: %w: chunk list", sum[:6], ErrCorrupt)
		}
		return c, nil
	}
	if int64(len(b.data)) != size || sha256.Sum256(b.data) != sum {
		return nil, fmt.Errorf("content %x: %w", sum[:6], ErrCorrupt)
	}
	c.last, c.data = 0, b.data
	return c, nil
}

// Size is the length in bytes.
func (c *Content) Size() int64 { return c.size }

// ReadAt is io.ReaderAt.
func (c *Content) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= c.size {
		return 0, io.EOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chunks == nil {
		n := copy(p, c.data[off:])
		return n, eof(n, p)
	}
	n := 0
	for n < len(p) && off < c.size {
		i := int(off / int64(c.s.opts.ChunkSize))
		if err := c.load(i); err != nil {
			return n, err
		}
		k := copy(p[n:], c.data[off-int64(i)*int64(c.s.opts.ChunkSize):])
		if k == 0 {
			return n, fmt.Errorf("content %x: %w: short chunk", c.sum[:6], ErrCorrupt)
		}
		n, off = n+k, off+int64(k)
	}
	return n, eof(n, p)
}

func eof(n int, p []byte) error {
	if n < len(p) {
		return io.EOF
	}
	return nil
}

// load brings chunk i. c.mu is held.
func (c *Content) load(i int) error {
	if c.last == i {
		return nil
	}
	if i >= len(c.chunks) {
		return fmt.Errorf("content %x: %w: chunk %d", c.sum[:6], ErrCorrupt, i)
	}
	snap, err := c.s.kv.Snapshot(c.ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	b, err := c.s.getBlob(snap, c.chunks[i])
	if err != nil {
		return err
	}
	if b.chunks != nil || sha256.Sum256(b.data) != c.chunks[i] {
		return fmt.Errorf("chunk %x: %w", c.chunks[i][:6], ErrCorrupt)
	}
	c.last, c.data = i, b.data
	return nil
}

// blob is the value of b/<sum>: bytes, a list of chunks, or where the file of a chunk is.
type blob struct {
	data   []byte
	chunks []Sum
	size   int64
	onDisk bool
	tag    uint64 // of the file
}

func (b blob) sized(size int64) bool { return b.size == size }

// getBlob is findBlob with the bytes of a file.
func (s *Store) getBlob(snap kv.Snapshot, sum Sum) (blob, error) {
	b, err := findBlob(snap, sum)
	if err == nil && b.onDisk {
		if s.files == nil {
			return b, fmt.Errorf("chunk %x is a file: %w", sum[:6], ErrCorrupt)
		}
		b.data, err = s.files.read(sum, b.tag)
	}
	return b, err
}

func findBlob(snap kv.Snapshot, sum Sum) (blob, error) {
	e, err := snap.Get(keyBlob(sum))
	if err != nil {
		return blob{}, err
	}
	if e[0].Rev == 0 {
		return blob{}, fmt.Errorf("content %x is missing: %w", sum[:6], ErrCorrupt)
	}
	return decodeBlob(sum, e[0].Value)
}

func encodeBytes(data []byte) []byte { return append([]byte{formBytes}, data...) }

func encodeFile(size int, tag uint64) []byte {
	w := &writer{}
	w.byte(formFile)
	w.uint(uint64(size))
	w.b = binary.BigEndian.AppendUint64(w.b, tag)
	return w.b
}

func encodeChunks(size int64, chunks []Sum) []byte {
	w := &writer{}
	w.byte(formChunks)
	w.uint(uint64(size))
	for _, c := range chunks {
		w.raw(c[:])
	}
	return w.b
}

func decodeBlob(sum Sum, v []byte) (blob, error) {
	r := &reader{b: v}
	switch r.byte() {
	case formBytes:
		return blob{data: r.b}, nil
	case formFile:
		b := blob{size: int64(r.uint()), onDisk: true}
		if tag := r.take(8); tag != nil {
			b.tag = binary.BigEndian.Uint64(tag)
		}
		return b, r.end(fmt.Sprintf("chunk file %x", sum[:6]))
	case formChunks:
		b := blob{size: int64(r.uint())}
		for len(r.b) > 0 && !r.bad {
			b.chunks = append(b.chunks, r.sum())
		}
		return b, r.end(fmt.Sprintf("chunk list %x", sum[:6]))
	}
	return blob{}, fmt.Errorf("content %x: %w: form", sum[:6], ErrCorrupt)
}

// stored is content that is ready to be referred to: ops and guards belong into the commit that does.
type stored struct {
	sum    Sum
	size   int64
	ops    []kv.Op
	guards []kv.Guard
}

// put prepares content for a commit. Up to ChunkSize it is part of that commit; larger content puts its chunks now, each
// marked as garbage until the commit refers to it, so that a crash in between leaves nothing for ever.
func (s *Store) put(ctx context.Context, c Bytes) (stored, error) {
	if c == nil {
		c = noBytes{}
	}
	size := c.Size()
	if size > s.opts.MaxFile {
		return stored{}, fmt.Errorf("%d bytes: %w of %d", size, ErrTooLarge, s.opts.MaxFile)
	}
	if size > int64(s.opts.ChunkSize) {
		return s.putChunks(ctx, c, size)
	}
	data := make([]byte, size)
	if err := readAll(c, data, 0); err != nil {
		return stored{}, err
	}
	st := stored{sum: sha256.Sum256(data), size: size}
	if size == 0 {
		return st, nil // no blob: emptiness needs none
	}
	there, err := s.has(ctx, st.sum)
	if err != nil {
		return st, err
	}
	if there {
		st.guards = append(st.guards, kv.KeyExists(keyBlob(st.sum)))
	} else {
		st.ops = append(st.ops, kv.Put(keyBlob(st.sum), encodeBytes(data)))
	}
	return st, nil
}

type noBytes struct{}

func (noBytes) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
func (noBytes) Size() int64                       { return 0 }

func readAll(c Bytes, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := c.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read the new content: %w", err)
}

func (s *Store) has(ctx context.Context, sum Sum) (bool, error) {
	snap, err := s.kv.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Close()
	e, err := snap.Get(keyBlob(sum))
	return err == nil && e[0].Rev != 0, err
}

func (s *Store) putChunks(ctx context.Context, c Bytes, size int64) (stored, error) {
	whole := sha256.New()
	var chunks []Sum
	buf := make([]byte, s.opts.ChunkSize)
	for off := int64(0); off < size; off += int64(len(buf)) {
		p := buf[:min(int64(len(buf)), size-off)]
		if err := readAll(c, p, off); err != nil {
			return stored{}, err
		}
		whole.Write(p)
		sum := Sum(sha256.Sum256(p))
		chunks = append(chunks, sum)
		if err := s.putChunk(ctx, sum, p); err != nil {
			s.later(chunks...) // gives their space back
			return stored{}, err
		}
	}
	st := stored{sum: Sum(whole.Sum(nil)), size: size}
	there, err := s.has(ctx, st.sum)
	if err != nil {
		return st, err
	}
	if there {
		st.guards = append(st.guards, kv.KeyExists(keyBlob(st.sum)))
		return st, nil
	}
	st.ops = append(st.ops, kv.Put(keyBlob(st.sum), encodeChunks(size, chunks)))
	seen := map[Sum]bool{}
	for _, sum := range chunks {
		if seen[sum] {
			continue
		}
		seen[sum] = true
		st.guards = append(st.guards, kv.KeyExists(keyBlob(sum)))
		st.ops = append(st.ops, kv.Put(keyChunkRef(sum, st.sum), []byte{}), kv.Delete(keyGarbage(sum)))
	}
	return st, nil
}

func (s *Store) putChunk(ctx context.Context, sum Sum, p []byte) error {
	there, err := s.has(ctx, sum)
	if err != nil || there {
		return err
	}
	if s.files == nil {
		return unlessConflict(s.nameChunk(ctx, sum, encodeBytes(p)))
	}
	tag, err := s.files.write(sum, p)
	if err != nil {
		return err
	}
	err = s.nameChunk(ctx, sum, encodeFile(len(p), tag))
	if err != nil && !errors.Is(err, kv.ErrAmbiguous) { // of an ambiguous one the next start finds out
		_ = s.files.remove(sum, tag) // or the next start does it
	}
	return unlessConflict(err)
}

// nameChunk puts b/<sum>, marked as garbage until something refers to it. kv.ErrConflict if somebody else was first.
func (s *Store) nameChunk(ctx context.Context, sum Sum, value []byte) error {
	_, err := s.kv.Commit(ctx, []kv.Guard{kv.KeyRev(keyBlob(sum), 0)}, []kv.Op{kv.Put(keyBlob(sum), value), kv.Put(keyGarbage(sum), []byte{})})
	return err
}

func unlessConflict(err error) error {
	if errors.Is(err, kv.ErrConflict) {
		return nil
	}
	return err
}
