package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"memoryfs/backend/kv"
)

// checker walks everything once per kind of key, in one snapshot.
type checker struct {
	ctx     context.Context
	snap    *Snapshot
	s       *Store
	report  FsckReport
	inodes  map[ID]Inode
	linked  map[ID]int
	inos    map[uint64]ID
	heads   map[ID]Head
	last    map[ID]Version
	blobs   map[Sum]bool // true: referred to
	checked map[Sum]int64
}

// Fsck checks tree, heads, versions, blobs and references. It changes nothing. It holds all inodes and heads in memory:
// about 400 bytes a file.
func (s *Store) Fsck(ctx context.Context) (FsckReport, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return FsckReport{}, err
	}
	defer snap.Close()
	c := &checker{ctx: ctx, snap: snap, s: s, inodes: map[ID]Inode{}, linked: map[ID]int{}, inos: map[uint64]ID{}, heads: map[ID]Head{},
		last: map[ID]Version{}, blobs: map[Sum]bool{}, checked: map[Sum]int64{}}
	for _, step := range []struct {
		prefix string
		check  func(kv.Entry)
	}{{"n/", c.inode}, {"d/", c.dentry}, {"e/", c.dentry}, {"b/", c.blob}, {"h/", c.head}, {"v/", c.version}, {"c/", c.kept},
		{"w/", c.logged}, {"s/", c.seen}, {"r/", c.ref}} {
		if err := c.each(step.prefix, step.check); err != nil {
			return c.report, err
		}
	}
	if err := c.strayFiles(); err != nil {
		return c.report, err
	}
	c.links()
	c.chains()
	c.unreferred()
	return c.report, c.known()
}

func (c *checker) bad(key []byte, format string, a ...any) {
	c.report.Problems = append(c.report.Problems, Problem{Key: fmt.Sprintf("%q", key), Detail: fmt.Sprintf(format, a...)})
}

func (c *checker) each(prefix string, fn func(kv.Entry)) error {
	var after []byte
	for {
		page, err := c.snap.kv.List([]byte(prefix), after, pageSize)
		if err != nil {
			return err
		}
		for _, e := range page {
			after = e.Key
			fn(e)
		}
		if len(page) < pageSize || c.ctx.Err() != nil {
			return c.ctx.Err()
		}
	}
}

func (c *checker) inode(e kv.Entry) {
	id, ok := parseID(e.Key, "n/")
	in, err := decodeInode(id, e.Value)
	if !ok || err != nil {
		c.bad(e.Key, "inode cannot be read: %v", err)
		return
	}
	c.inodes[id] = in
	c.report.Inodes++
	switch {
	case in.Gone:
	case in.Owner != "":
		c.report.Ephemerals++
	case in.Type == TypeDir:
		c.report.Dirs++
	case in.Type == TypeSymlink:
		c.report.Symlinks++
	default:
		c.report.Files++
	}
	if in.Gone {
		return
	}
	if other, taken := c.inos[in.Ino]; taken || in.Ino == 0 {
		c.bad(e.Key, "inode number %d is also that of %s", in.Ino, other)
	}
	c.inos[in.Ino] = id
}

func (c *checker) dentry(e kv.Entry) {
	at, ok := parsePlace(e.Key)
	d, err := decodeDentry(at.Name, e.Value)
	if !ok || err != nil {
		c.bad(e.Key, "dentry cannot be read: %v", err)
		return
	}
	in, ok := c.inodes[d.ID]
	if !ok {
		c.bad(e.Key, "names an inode that is not there")
		return
	}
	c.linked[d.ID]++
	if in.Gone || in.Parent != at.Parent || in.Name != at.Name || in.Owner != at.Owner || in.Type != d.Type || in.Ino != d.Ino {
		c.bad(e.Key, "dentry and inode do not agree")
	}
	if p, ok := c.inodes[at.Parent]; at.Owner == "" && (!ok || p.Type != TypeDir || p.Gone) {
		c.bad(e.Key, "lies in a directory that is not there")
	}
}

func (c *checker) blob(e kv.Entry) {
	sum, ok := parseSum(e.Key, "b/")
	b, err := decodeBlob(sum, e.Value)
	if !ok || err != nil {
		c.bad(e.Key, "blob cannot be read: %v", err)
		return
	}
	c.report.Blobs++
	c.blobs[sum] = false
	if b.onDisk {
		if b, err = c.s.getBlob(c.snap.kv, sum); err != nil || int64(len(b.data)) != b.size {
			c.bad(e.Key, "the chunk's file has %d of %d bytes: %v", len(b.data), b.size, err)
			return
		}
	}
	if b.chunks == nil {
		c.report.Bytes += int64(len(b.data))
		c.checked[sum] = int64(len(b.data))
		if sha256.Sum256(b.data) != sum {
			c.bad(e.Key, "bytes do not match their hash")
		}
		return
	}
	content := &Content{s: c.s, ctx: c.ctx, sum: sum, size: b.size, chunks: b.chunks, last: -1}
	whole := sha256.New()
	c.checked[sum] = b.size
	if _, err := io.Copy(whole, io.NewSectionReader(content, 0, b.size)); err != nil || !bytes.Equal(whole.Sum(nil), sum[:]) {
		c.bad(e.Key, "chunks do not match the hash of the whole: %v", err)
	}
}

func (c *checker) head(e kv.Entry) {
	id, ok := parseID(e.Key, "h/")
	h, err := decodeHead(id, e.Value)
	if !ok || err != nil {
		c.bad(e.Key, "head cannot be read: %v", err)
		return
	}
	c.heads[id] = h
	c.content(e.Key, h.Sum, h.Size)
	if in, ok := c.inodes[id]; !ok || in.Gone || in.Type != TypeFile {
		c.bad(e.Key, "head without its file")
	}
}

// content checks that what a head or version refers to is there.
func (c *checker) content(key []byte, sum Sum, size int64) {
	if size == 0 {
		return
	}
	if got, ok := c.checked[sum]; !ok {
		c.bad(key, "its content %x is not there", sum[:6])
	} else if got != size {
		c.bad(key, "its content has %d bytes, not %d", got, size)
	}
}

func (c *checker) version(e kv.Entry) {
	id, n, ok := parseVersion(e.Key)
	v, err := decodeVersion(id, n, e.Value)
	if !ok || err != nil {
		c.bad(e.Key, "version cannot be read: %v", err)
		return
	}
	c.report.Versions++
	if v.Kind != KindDelete && v.Kind != KindRedact {
		c.content(e.Key, v.Sum, v.Size)
	}
	before := c.last[id]
	if v.Number != before.Number+1 || v.Parent != before.Sum {
		c.bad(e.Key, "version %d does not follow version %d", v.Number, before.Number)
	}
	c.last[id] = v
}

func (c *checker) kept(e kv.Entry) {
	owner, id, ok := parseKept(e.Key)
	k, err := decodeKept(owner, id, e.Value)
	if !ok || err != nil {
		c.bad(e.Key, "what is kept cannot be read: %v", err)
		return
	}
	for _, part := range k.Parts {
		c.content(e.Key, part.Sum, part.Size)
	}
}

func (c *checker) ref(e kv.Entry) {
	sum, ok := parseSum(e.Key, "r/")
	if _, there := c.blobs[sum]; !ok || !there {
		c.bad(e.Key, "reference to content that is not there")
		return
	}
	c.blobs[sum] = true
}

// links: everything but the root, and what is gone, hangs in the tree exactly once, and up to the root.
func (c *checker) links() {
	for id, in := range c.inodes {
		switch n := c.linked[id]; {
		case id == RootID:
		case in.Gone && n > 0, !in.Gone && n != 1:
			c.bad(keyInode(id), "inode has %d names", n)
		case in.Gone, in.Owner != "":
		case in.Type != TypeFile && c.heads[id] != (Head{}):
			c.bad(keyInode(id), "has a head but is no file")
		default:
			if _, err := c.snap.Path(id); err != nil {
				c.bad(keyInode(id), "does not hang under the root: %v", err)
			}
		}
		if _, ok := c.heads[id]; in.Type == TypeFile && !in.Gone && !ok {
			c.bad(keyInode(id), "file without a head")
		}
	}
	if _, ok := c.inodes[RootID]; !ok {
		c.bad(keyInode(RootID), "there is no root")
	}
}

// chains: a memory's head is its last version, and one that is gone ends with a delete.
func (c *checker) chains() {
	for id, in := range c.inodes {
		if in.Type != TypeFile || in.Owner != "" {
			continue
		}
		v, h := c.last[id], c.heads[id]
		switch {
		case in.Gone && v.Kind != KindDelete:
			c.bad(keyInode(id), "is gone without a delete version")
		case !in.Gone && (v.Number != h.Version || v.Sum != h.Sum || v.Size != h.Size):
			c.bad(keyHead(id), "head is version %d, the last version is %d", h.Version, v.Number)
		}
	}
	for id := range c.last {
		if _, ok := c.inodes[id]; !ok {
			c.bad(prefixVersion(id), "versions of a memory that is not there")
		}
	}
}

// unreferred: a blob without a reference is waiting for the collector, or it is lost space.
func (c *checker) unreferred() {
	for sum, used := range c.blobs {
		if used {
			continue
		}
		if e, err := c.snap.get(keyGarbage(sum)); err != nil || e.Rev == 0 {
			c.bad(keyBlob(sum), "nothing refers to it")
		}
	}
}

func (c *checker) logged(e kv.Entry) {
	if _, err := decodeLogged(e); err != nil {
		c.bad(e.Key, "%v", err)
	}
}

func (c *checker) seen(e kv.Entry) {
	if _, err := decodeSeen(e); err != nil {
		c.bad(e.Key, "%v", err)
	}
}

// strayFiles finds files that are no chunk. One that has our name and is not known may be on its way into the store.
func (c *checker) strayFiles() error {
	return c.s.eachFile(c.ctx, func(path string, _ int64, named, _ bool) error {
		if !named {
			c.report.Problems = append(c.report.Problems, Problem{Key: path, Detail: "is no chunk of this store"})
		}
		return nil
	})
}

// known finds keys that no constructor makes.
func (c *checker) known() error {
	prefixes := []string{"m", "i", "n/", "u/", "d/", "e/", "h/", "v/", "t/", "c/", "w/", "s/", "o/", "b/", "r/", "g/", "a/i/", "a/tail", "mv"}
	after := []byte{}
	for {
		page, err := c.snap.kv.List(nil, after, 1)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		key := page[0].Key
		known := ""
		for _, p := range prefixes {
			if bytes.HasPrefix(key, []byte(p)) && len(p) > len(known) {
				known = p
			}
		}
		if known == "" {
			c.bad(key, "unknown key")
			after = key
			continue
		}
		after = append([]byte(known), bytes.Repeat([]byte{0xff}, 600)...) // past all keys of that kind
	}
}
