package fusefs

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

func openFlags(flags uint32) backend.OpenFlags {
	mode := flags & syscall.O_ACCMODE
	return backend.OpenFlags{
		Read:   mode == syscall.O_RDONLY || mode == syscall.O_RDWR,
		Write:  mode == syscall.O_WRONLY || mode == syscall.O_RDWR,
		Append: flags&syscall.O_APPEND != 0,
		Trunc:  flags&syscall.O_TRUNC != 0,
	}
}

// Open decides, and truncates for O_TRUNC. This is the one moment at which every program sees an error.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return nil, 0, toErrno(err)
	}
	f := openFlags(flags)
	if f.Trunc && !f.Write { // O_RDONLY|O_TRUNC truncates on Linux, if one may write
		f.Write = true
	}
	h := &handle{node: n, view: v, caller: c, flags: f, gen: n.m.mem.Policy().Generation()}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isPending() {
		return n.openPending(ctx, h)
	}
	if n.gone {
		return nil, 0, syscall.ENOENT // a path cannot lead here; /proc/self/fd can
	}
	b, err := v.Open(ctx, c, n.id, f)
	if err != nil {
		return nil, 0, n.m.failByInode("open", err)
	}
	if b.Inode.Ino != n.ino {
		return nil, 0, syscall.ESTALE // replaced by another mount; the kernel is being told, and looks again
	}
	n.last = b
	return n.opened(ctx, h, b)
}

// openPending opens a file that is created and not committed. n.mu is held.
func (n *node) openPending(ctx context.Context, h *handle) (fs.FileHandle, uint32, syscall.Errno) {
	d := n.draftOf(h.caller.Session)
	if d.state == draftClean {
		d.touch(draftTruncated, h.caller.Proc)
		d.appendOnly = h.flags.Append
	}
	d.handles[h] = struct{}{}
	n.handles[h] = struct{}{}
	if h.flags.Trunc {
		if err := h.truncate(ctx, 0, draftTruncated, "open"); err != nil {
			return nil, 0, n.m.fail("open", err)
		}
	}
	return h, fuse.FOPEN_DIRECT_IO, 0
}

// opened finishes the open of a committed file. n.mu is held.
func (n *node) opened(ctx context.Context, h *handle, b backend.Node) (fs.FileHandle, uint32, syscall.Errno) {
	h.base = b.Head.Sum
	if h.flags.Trunc && b.Head.Size > 0 || h.flags.Trunc && n.drafts[h.caller.Session] != nil {
		if err := h.truncate(ctx, 0, draftTruncated, "open"); err != nil {
			return nil, 0, n.m.fail("open", err)
		}
	}
	n.handles[h] = struct{}{}
	switch {
	case h.flags.Write:
		return h, fuse.FOPEN_DIRECT_IO, 0
	case n.m.cfg.Shared || n.anyDirty():
		return h, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, 0
	}
	h.cached = true
	out := uint32(fuse.FOPEN_NOFLUSH)
	if sum := n.cached.Load(); sum != nil && *sum == b.Head.Sum {
		out |= fuse.FOPEN_KEEP_CACHE
	}
	sum := b.Head.Sum
	n.cached.Store(&sum)
	return h, out, 0
}

// Create makes a file and opens it, or opens the one that somebody made first.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return nil, nil, 0, toErrno(err)
	}
	if n == n.m.root && name == virtualName {
		return nil, nil, 0, syscall.EROFS
	}
	dir, _ := n.ident()
	end := n.m.notify.begin(store.Place{Parent: dir, Name: name})
	defer end()
	b, made, err := v.Create(ctx, c, dir, name, mode&07777, flags&syscall.O_EXCL != 0)
	if err != nil {
		return nil, nil, 0, n.m.fail("create", err)
	}
	inode, child := n.m.inode(ctx, b)
	fh, open, errno := child.openCreated(ctx, v, c, b, made, flags)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	s := child.seen(b, c)
	n.m.fillEntry(ctx, s, out)
	return inode, fh, open, 0
}

// openCreated opens what Create has made or found.
func (n *node) openCreated(ctx context.Context, v *backend.View, c backend.Caller, b backend.Node, made bool, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f := openFlags(flags)
	h := &handle{node: n, view: v, caller: c, flags: f, gen: n.m.mem.Policy().Generation()}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case b.Pending != nil:
		return n.openPending(ctx, h)
	case made: // an ephemeral: the creating handle may write whatever its mode says
		return n.opened(ctx, h, b)
	}
	b, err := v.Open(ctx, c, b.Inode.ID, f)
	if err != nil {
		return nil, 0, n.m.fail("open", err)
	}
	n.last = b
	if b.Continues {
		h.flags.Trunc = true
	}
	fh, open, errno := n.opened(ctx, h, b)
	if d := n.drafts[c.Session]; b.Continues && d != nil {
		d.forBackup = true
	}
	return fh, open, errno
}
