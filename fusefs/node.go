package fusefs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

const rootIno = 1

// node is one inode number of the kernel's. Which memory it stands for can change: a file that is renamed onto a memory
// takes the memory's id over, and the node that stood for it before is gone (unlinked, as POSIX has it).
type node struct {
	fs.Inode
	m   *Mount
	ino uint64
	typ uint32 // S_IFREG, S_IFDIR or S_IFLNK

	cached atomic.Pointer[store.Sum] // content that the kernel's page cache may hold
	used   atomic.Int64              // unix seconds of the last lookup, for sweepNodes
	forgot atomic.Bool               // the kernel let go of it since

	mu      sync.Mutex
	id      store.ID
	pending *backend.Pending // until the first commit
	gone    bool             // unlinked or replaced: only open handles are left
	goneBy  *backend.Session // whose unlink or rename it was; nil: somebody else's
	last    backend.Node     // as it was last seen, for fstat when it is gone
	drafts  map[*backend.Session]*draft
	handles map[*handle]struct{}
	saving  chan struct{} // closed when the commit that runs now is done; nil: none runs
}

func (m *Mount) newNode(id store.ID, ino uint64, typ uint32) *node {
	n := &node{m: m, id: id, ino: ino, typ: typ, drafts: map[*backend.Session]*draft{}, handles: map[*handle]struct{}{}}
	n.used.Store(time.Now().Unix())
	return n
}

func typeBits(t store.Type) uint32 {
	switch t {
	case store.TypeDir:
		return fuse.S_IFDIR
	case store.TypeSymlink:
		return fuse.S_IFLNK
	default:
		return fuse.S_IFREG
	}
}

// inode returns the kernel's inode for what a View has shown: the node that has this inode number already, else a new
// one.
func (m *Mount) inode(ctx context.Context, b backend.Node) (*fs.Inode, *node) {
	m.mu.Lock()
	n := m.byIno[b.Inode.Ino]
	if n == nil {
		n = m.newNode(b.Inode.ID, b.Inode.Ino, typeBits(b.Inode.Type))
		m.byIno[n.ino] = n
	}
	n.used.Store(time.Now().Unix())
	n.forgot.Store(false)
	m.nodes[b.Inode.ID] = n
	m.mu.Unlock()
	n.mu.Lock()
	n.id, n.pending, n.last = b.Inode.ID, b.Pending, b
	n.mu.Unlock()
	if n == m.root {
		return &n.Inode, n
	}
	return m.root.NewInode(ctx, n, fs.StableAttr{Mode: n.typ, Ino: n.ino}), n
}

// nodeByID finds the live node of a memory, nil if the kernel does not know it.
func (m *Mount) nodeByID(id store.ID) *node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes[id]
}

// sweepNodes drops nodes that the kernel forgot. Not at once in OnForget: a lookup that found the node just before the
// FORGET revives it.
func (m *Mount) sweepNodes() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-tick.C:
		}
		old := time.Now().Add(-time.Minute).Unix()
		m.mu.Lock()
		for ino, n := range m.byIno {
			if n != m.root && n.used.Load() < old && n.forgot.Load() {
				delete(m.byIno, ino)
			}
		}
		for id, n := range m.nodes {
			if m.byIno[n.ino] != n {
				delete(m.nodes, id)
			}
		}
		m.mu.Unlock()
	}
}

// OnForget notes that the kernel let go of the node.
func (n *node) OnForget() { n.forgot.Store(true) }

// ident is the node's memory and pending file of now.
func (n *node) ident() (store.ID, *backend.Pending) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id, n.pending
}

// changed says that the content the kernel has cached is not the head any more.
func (n *node) changed() { n.cached.Store(nil) }

// vanish marks the node unlinked, by the session that did it. The memory's id may belong to another node from now on.
func (n *node) vanish(by *backend.Session) {
	n.mu.Lock()
	id := n.id
	n.gone, n.goneBy = true, by
	n.mu.Unlock()
	n.m.mu.Lock()
	defer n.m.mu.Unlock()
	if n.m.nodes[id] == n {
		delete(n.m.nodes, id)
	}
	if n.m.byIno[n.ino] == n {
		delete(n.m.byIno, n.ino)
	}
}

// state is what getattr and the handles need to know of a node, for one caller.
type state struct {
	backend.Node
	gone  bool
	dirty bool // some session has a draft: what is shown is true for this session only
}

// state looks at the node with the caller's eyes: its own draft's size, or the head's.
func (n *node) state(ctx context.Context, v *backend.View, c backend.Caller) (state, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stateLocked(ctx, v, c)
}

func (n *node) stateLocked(ctx context.Context, v *backend.View, c backend.Caller) (state, error) {
	s := state{Node: n.last, gone: n.gone}
	if n.isPending() {
		s.Node.Inode, s.Node.Pending = n.pending.Inode(), n.pending
	} else if !n.gone {
		b, err := v.Attr(ctx, c, n.id)
		switch {
		case err == nil && b.Inode.Ino == n.ino:
			n.last, s.Node = b, b
		case err == nil, errors.Is(err, backend.ErrNotExist) && len(n.handles) > 0:
			s.gone = true // replaced or removed, by another mount
		default:
			return s, err
		}
	}
	n.showDraft(&s, c.Session)
	return s, nil
}

func (n *node) isPending() bool {
	if n.pending == nil {
		return false
	}
	_, live := n.pending.Place()
	return live
}

// showDraft puts the session's draft over the head. A file that is not in the tree (not yet, or no more) has no other
// content than its draft, so whoever holds it sees that.
func (n *node) showDraft(s *state, session *backend.Session) {
	d := n.drafts[session]
	if (s.gone || n.isPending()) && d == nil {
		for _, d = range n.drafts {
			break
		}
	}
	s.dirty = n.anyDirty()
	if d != nil && d.shows() {
		s.Head.Size, s.Head.Mtime = d.size(), d.mtime
	}
}

func (n *node) anyDirty() bool {
	for _, d := range n.drafts {
		if d.shows() {
			return true
		}
	}
	return n.isPending()
}

// fill writes attributes for the kernel.
func (m *Mount) fill(s state, out *fuse.Attr, c *fuse.Caller) {
	in := s.Inode
	out.Ino = in.Ino
	out.Mode = in.Mode&07777 | typeBits(in.Type)
	out.Nlink = 1 // for a directory: "not counted", as on btrfs, so that find(1) does not rely on it
	if s.gone {
		out.Nlink = 0
	}
	switch in.Type {
	case store.TypeFile:
		out.Size = uint64(s.Head.Size)
	case store.TypeSymlink:
		out.Size = uint64(len(in.Target))
	}
	out.Blksize = 4096
	out.Blocks = (out.Size + 511) / 512
	mtime := s.Mtime()
	setTime(&out.Mtime, &out.Mtimensec, mtime)
	atime := in.Atime
	if atime.IsZero() {
		atime = mtime
	}
	setTime(&out.Atime, &out.Atimensec, atime)
	ctime := in.Ctime
	if ctime.Before(mtime) && in.Type == store.TypeFile {
		ctime = mtime // a write changes both, and the same before and after its commit: git compares them
	}
	setTime(&out.Ctime, &out.Ctimensec, ctime)
	out.Uid, out.Gid = m.uid, m.gid
	if m.cfg.Shared && c != nil {
		out.Uid, out.Gid = c.Uid, c.Gid // every principal owns what it sees: policy decides, not mode bits
	}
}

func setTime(sec *uint64, nsec *uint32, t time.Time) {
	if t.IsZero() {
		return
	}
	*sec, *nsec = uint64(t.Unix()), uint32(t.Nanosecond())
}

// timeout is how long the kernel may believe what it was told: not at all where the answer depends on who asks.
func (m *Mount) timeout(s state) time.Duration {
	if m.cfg.Shared || s.dirty || s.gone {
		return 0
	}
	return forever
}

func (m *Mount) fillEntry(ctx context.Context, s state, out *fuse.EntryOut) {
	c, _ := fuse.FromContext(ctx)
	m.fill(s, &out.Attr, c)
	out.SetAttrTimeout(m.timeout(s))
	out.SetEntryTimeout(m.entryTimeout(s))
}

// entryTimeout: a pending file's name is there for its session only.
func (m *Mount) entryTimeout(s state) time.Duration {
	if m.cfg.Shared || s.Pending != nil || s.gone {
		return 0
	}
	return forever
}

// Getattr answers stat and fstat.
func (n *node) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return toErrno(err)
	}
	s, err := n.state(ctx, v, c)
	if err != nil {
		return n.m.failByInode("getattr", err)
	}
	fc, _ := fuse.FromContext(ctx)
	n.m.fill(s, &out.Attr, fc)
	out.SetTimeout(n.m.timeout(s))
	return 0
}

// Lookup finds a name. A miss is never cached by the kernel: nothing could tell it when the name comes.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return nil, toErrno(err)
	}
	if n == n.m.root && name == virtualName {
		return n.m.enterVirtual(ctx, asker{v, c}, out)
	}
	id, _ := n.ident()
	b, err := v.Lookup(ctx, c, id, name)
	if err != nil {
		return nil, n.m.fail("lookup", err)
	}
	inode, child := n.m.inode(ctx, b)
	s := child.seen(b, c)
	n.m.fillEntry(ctx, s, out)
	return inode, 0
}

// seen is the state of a node that a View has just shown.
func (n *node) seen(b backend.Node, c backend.Caller) state {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := state{Node: b, gone: n.gone}
	n.showDraft(&s, c.Session)
	return s
}

// Readlink returns a symlink's target.
func (n *node) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return nil, toErrno(err)
	}
	id, _ := n.ident()
	target, err := v.Readlink(ctx, c, id)
	if err != nil {
		return nil, n.m.failByInode("readlink", err)
	}
	return []byte(target), 0
}

// Access is asked on shared mounts only; elsewhere the kernel checks the mode bits itself (default_permissions).
func (n *node) Access(ctx context.Context, mask uint32) syscall.Errno {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return toErrno(err)
	}
	s, err := n.state(ctx, v, c)
	if err != nil {
		return n.m.failByInode("access", err)
	}
	const read, write, exec = 4, 2, 1
	switch {
	case mask&write != 0 && v.Writable(ctx, c, s.Node) != "yes",
		mask&read != 0 && n.typ == fuse.S_IFREG && !v.Readable(ctx, c, s.Node),
		mask&exec != 0 && n.typ == fuse.S_IFREG && s.Inode.Mode&0o111 == 0:
		return syscall.EACCES
	}
	return 0
}

// Statfs shows the store's volume; what is free is what can really be written, the reserve taken off.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	u, err := n.m.mem.Usage()
	if err != nil {
		return n.m.fail("statfs", err)
	}
	const block = 4096
	out.Bsize, out.Frsize, out.NameLen = block, block, 255
	out.Blocks, out.Bfree, out.Bavail = u.Total/block, u.Free/block, u.Free/block
	out.Files, out.Ffree = 1<<32, 1<<31
	return 0
}
