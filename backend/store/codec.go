package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/google/uuid"
)

// String is the id as a UUID.
func (id ID) String() string { return uuid.UUID(id).String() }

// The first byte of a stored value says how the rest is laid out.
const (
	formInode   = 1
	formHead    = 1
	formDentry  = 1
	formVersion = 1
	formIntent  = 1
	formLogged  = 1
	formFence   = 2
	formBytes   = 1
	formChunks  = 2
	formFile    = 3
)

// writer appends fields; reader takes them off again and remembers the first thing that is wrong.
type writer struct{ b []byte }

func (w *writer) byte(v byte)     { w.b = append(w.b, v) }
func (w *writer) uint(v uint64)   { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) raw(v []byte)    { w.b = append(w.b, v...) }
func (w *writer) bytes(v []byte)  { w.uint(uint64(len(v))); w.raw(v) }
func (w *writer) string(v string) { w.uint(uint64(len(v))); w.b = append(w.b, v...) }

func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.byte(0)
		return
	}
	w.byte(1)
	w.b = binary.BigEndian.AppendUint64(w.b, uint64(t.Unix()))
	w.uint(uint64(t.Nanosecond()))
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

func (r *reader) id() (id ID)    { copy(id[:], r.take(16)); return }
func (r *reader) sum() (sum Sum) { copy(sum[:], r.take(32)); return }

func (r *reader) time() time.Time {
	switch r.byte() {
	case 0:
		return time.Time{}
	case 1:
		sec := r.take(8)
		nsec := r.uint()
		if r.bad || nsec > 999_999_999 {
			r.bad = true
			return time.Time{}
		}
		return time.Unix(int64(binary.BigEndian.Uint64(sec)), int64(nsec))
	}
	r.bad = true
	return time.Time{}
}

// end is ErrCorrupt unless everything was there and nothing is left.
func (r *reader) end(what string) error {
	if r.bad || len(r.b) != 0 {
		return fmt.Errorf("%s: %w", what, ErrCorrupt)
	}
	return nil
}

func encodeInode(in Inode) []byte {
	w := &writer{}
	w.byte(formInode)
	w.byte(byte(in.Type))
	gone := byte(0)
	if in.Gone {
		gone = 1
	}
	w.byte(gone)
	w.uint(uint64(in.Mode))
	w.uint(in.Ino)
	w.raw(in.Parent[:])
	w.string(in.Name)
	w.string(in.Owner)
	w.string(in.Target)
	for _, t := range []time.Time{in.Atime, in.Mtime, in.Ctime, in.Btime} {
		w.time(t)
	}
	w.uint(uint64(len(in.Xattrs)))
	names := make([]string, 0, len(in.Xattrs))
	for k := range in.Xattrs {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		w.string(k)
		w.bytes(in.Xattrs[k])
	}
	return w.b
}

func decodeInode(id ID, b []byte) (Inode, error) {
	r := &reader{b: b}
	in := Inode{ID: id}
	if r.byte() != formInode {
		r.bad = true
	}
	in.Type = Type(r.byte())
	gone := r.byte()
	in.Gone = gone == 1
	in.Mode = uint32(r.uint())
	in.Ino = r.uint()
	in.Parent = r.id()
	in.Name, in.Owner, in.Target = string(r.bytes()), string(r.bytes()), string(r.bytes())
	in.Atime, in.Mtime, in.Ctime, in.Btime = r.time(), r.time(), r.time(), r.time()
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad = true
		n = 0
	}
	if n > 0 {
		in.Xattrs = make(map[string][]byte, n)
	}
	for range n {
		k := string(r.bytes())
		in.Xattrs[k] = append([]byte{}, r.bytes()...)
	}
	if in.Type < TypeFile || in.Type > TypeSymlink || gone > 1 {
		r.bad = true
	}
	return in, r.end("inode " + id.String())
}

func encodeHead(h Head) []byte {
	w := &writer{}
	w.byte(formHead)
	w.uint(h.Version)
	w.raw(h.Sum[:])
	w.uint(uint64(h.Size))
	w.time(h.Mtime)
	return w.b
}

func decodeHead(id ID, b []byte) (Head, error) {
	r := &reader{b: b}
	if r.byte() != formHead {
		r.bad = true
	}
	h := Head{Version: r.uint(), Sum: r.sum(), Size: int64(r.uint()), Mtime: r.time()}
	if h.Size < 0 {
		r.bad = true
	}
	return h, r.end("head " + id.String())
}

func encodeDentry(d Dentry) []byte {
	w := &writer{}
	w.byte(formDentry)
	w.byte(byte(d.Type))
	w.raw(d.ID[:])
	w.uint(d.Ino)
	return w.b
}

func decodeDentry(name string, b []byte) (Dentry, error) {
	r := &reader{b: b}
	if r.byte() != formDentry {
		r.bad = true
	}
	d := Dentry{Name: name, Type: Type(r.byte()), ID: r.id(), Ino: r.uint()}
	if d.Type < TypeFile || d.Type > TypeSymlink {
		r.bad = true
	}
	return d, r.end("dentry " + fmt.Sprintf("%q", name))
}

// storedVersion is the JSON of a version: the key has the rest.
type storedVersion struct {
	Version
	Parent []byte `json:"parent"`
	Sum    []byte `json:"sha256"`
	Op     []byte `json:"op_id"`
	Salt   []byte `json:"salt"`
	Path   []byte `json:"path"` // names may hold any bytes
	From   []byte `json:"from,omitempty"`
}

func encodeVersion(v Version) ([]byte, error) {
	s := storedVersion{Version: v, Parent: v.Parent[:], Sum: v.Sum[:], Op: v.Op[:], Salt: v.Salt[:], Path: []byte(v.Path), From: []byte(v.From)}
	b, err := json.Marshal(s)
	return append([]byte{formVersion}, b...), err
}

func decodeVersion(id ID, n uint64, b []byte) (Version, error) {
	bad := fmt.Errorf("version %d of %s: %w", n, id, ErrCorrupt)
	if len(b) == 0 || b[0] != formVersion {
		return Version{}, bad
	}
	var s storedVersion
	if err := json.Unmarshal(b[1:], &s); err != nil || len(s.Parent) != 32 || len(s.Sum) != 32 || len(s.Op) != 16 ||
		len(s.Salt) != 16 || s.Number != n {
		return Version{}, bad
	}
	v := s.Version
	v.Memory, v.Parent, v.Sum, v.Op, v.Salt = id, Sum(s.Parent), Sum(s.Sum), ID(s.Op), [16]byte(s.Salt)
	v.Path, v.From = string(s.Path), string(s.From)
	return v, nil
}
