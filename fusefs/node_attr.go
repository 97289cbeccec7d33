package fusefs

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// Setattr handles or refuses every bit: owner (EPERM unless it is what is shown), size, mode, times.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return toErrno(err)
	}
	if errno := n.checkOwner(ctx, in); errno != 0 {
		return errno
	}
	h, _ := f.(*handle)
	if size, ok := in.GetSize(); ok {
		if errno := n.setSize(ctx, v, c, h, int64(size)); errno != 0 {
			return errno
		}
	}
	if errno := n.setModeTimes(ctx, v, c, in); errno != 0 {
		return errno
	}
	s, err := n.state(ctx, v, c)
	if err != nil {
		return n.m.failByInode("setattr", err)
	}
	fc, _ := fuse.FromContext(ctx)
	n.m.fill(s, &out.Attr, fc)
	out.SetTimeout(n.m.timeout(s))
	return 0
}

// checkOwner lets chown(2) pass only if it changes nothing: who may do what is the policy's to say.
func (n *node) checkOwner(ctx context.Context, in *fuse.SetAttrIn) syscall.Errno {
	uid, gid := n.m.uid, n.m.gid
	if fc, ok := fuse.FromContext(ctx); ok && n.m.cfg.Shared {
		uid, gid = fc.Uid, fc.Gid
	}
	if u, ok := in.GetUID(); ok && u != uid {
		return syscall.EPERM
	}
	if g, ok := in.GetGID(); ok && g != gid {
		return syscall.EPERM
	}
	return 0
}

// setSize is ftruncate by a handle, or truncate(2) by path: the latter is a save of its own, with its stale check.
func (n *node) setSize(ctx context.Context, v *backend.View, c backend.Caller, h *handle, size int64) syscall.Errno {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h != nil && h.flags.Write {
		if err := h.truncate(ctx, size, draftDirty, "ftruncate"); err != nil {
			return h.writeErrno(err)
		}
		return 0
	}
	if size > n.m.mem.Settings().Limits.MaxFile {
		return syscall.EFBIG
	}
	b := n.last
	path := &handle{node: n, view: v, caller: c, flags: backend.OpenFlags{Write: true}, gen: n.m.mem.Policy().Generation()}
	defer func() { path.lost.release() }()
	if !n.isPending() && !n.gone {
		var err error
		if b, err = v.Open(ctx, c, n.id, path.flags); err != nil {
			return n.m.failByInode("truncate", err)
		}
		n.last = b
	}
	path.base = b.Head.Sum
	if d := n.drafts[c.Session]; b.Head.Size == size && !n.isPending() && (d == nil || !d.shows()) {
		return 0
	}
	if err := path.truncate(ctx, size, draftDirty, "truncate"); err != nil {
		return n.m.fail("truncate", err)
	}
	d := n.drafts[c.Session]
	err := n.commit(ctx, d, path, "truncate")
	if delete(d.handles, path); len(d.handles) == 0 {
		n.drop(d)
	}
	if err != nil {
		return n.m.fail("truncate", err)
	}
	return 0
}

// setModeTimes changes mode and times, also of a draft.
func (n *node) setModeTimes(ctx context.Context, v *backend.View, c backend.Caller, in *fuse.SetAttrIn) syscall.Errno {
	var r store.SetattrRequest
	if mode, ok := in.GetMode(); ok {
		mode &= 07777
		r.Mode = &mode
	}
	if t, ok := in.GetATime(); ok {
		r.Atime = &t
	}
	if t, ok := in.GetMTime(); ok {
		r.Mtime = &t
	}
	if r.Mode == nil && r.Atime == nil && r.Mtime == nil {
		return 0
	}
	if _, resized := in.GetSize(); resized && r.Mode == nil {
		return 0 // the kernel's own update of the times that goes with a truncation: the draft has done that
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Mtime != nil {
		if d := n.drafts[c.Session]; d != nil && d.shows() {
			d.mtime = *r.Mtime // utimens after write and before close: the save keeps it
			if r.Mode == nil {
				return 0
			}
			r.Mtime = nil
		}
	}
	if n.gone {
		n.setGone(r)
		return 0
	}
	b := n.last
	if n.isPending() {
		b.Pending = n.pending
	} else {
		var err error
		if b, err = v.Attr(ctx, c, n.id); err != nil {
			return n.m.failByInode("setattr", err)
		}
	}
	n.mu.Unlock() // the change waits for invalidations
	err := v.Setattr(ctx, c, b, r)
	n.mu.Lock()
	if err != nil {
		return n.m.failByInode("setattr", err)
	}
	return 0
}

// setGone changes what fstat shows of a file without a name.
func (n *node) setGone(r store.SetattrRequest) {
	if r.Mode != nil {
		n.last.Inode.Mode = *r.Mode
	}
	if r.Mtime != nil {
		n.last.Head.Mtime, n.last.Inode.Mtime = *r.Mtime, *r.Mtime
	}
	n.last.Inode.Ctime = time.Now()
}

// Getxattr answers user.memory.* from the head's provenance, other names from what programs stored.
func (n *node) Getxattr(ctx context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return 0, toErrno(err)
	}
	s, err := n.state(ctx, v, c)
	if err != nil {
		return 0, n.m.failByInode("getxattr", err)
	}
	value, ok := s.Inode.Xattrs[attr]
	if !ok {
		if value, err = n.memoryXattr(ctx, v, c, s, attr); err != nil {
			return 0, n.m.fail("getxattr", err)
		}
	}
	return copyXattr(value, dest)
}

// Listxattr names the user.memory.* too, except to programs that copy attributes: they would write them elsewhere, or
// find every copy different from its original (rsync -aX, measured).
func (n *node) Listxattr(ctx context.Context, dest []byte) (uint32, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return 0, toErrno(err)
	}
	s, err := n.state(ctx, v, c)
	if err != nil {
		return 0, n.m.failByInode("listxattr", err)
	}
	var list []byte
	for name := range s.Inode.Xattrs {
		list = append(append(list, name...), 0)
	}
	if !copiers[c.Proc.Name] {
		for _, name := range n.memoryXattrs(s) {
			list = append(append(list, name...), 0)
		}
	}
	return copyXattr(list, dest)
}

// copiers are the programs that copy attributes, by the kernel's name of the process (comm).
var copiers = map[string]bool{"cp": true, "mv": true, "rsync": true, "tar": true, "bsdtar": true, "install": true, "busybox": true}

func copyXattr(value, dest []byte) (uint32, syscall.Errno) {
	if len(dest) < len(value) {
		return uint32(len(value)), syscall.ERANGE
	}
	return uint32(copy(dest, value)), 0
}

// Setxattr stores a user.* attribute; user.memory.* is EPERM, other namespaces ENOTSUP.
func (n *node) Setxattr(ctx context.Context, attr string, data []byte, flags uint32) syscall.Errno {
	const create, replace = 1, 2
	return n.changeXattr(ctx, "setxattr", func(v *backend.View, c backend.Caller, b backend.Node) error {
		return v.SetXattr(ctx, c, b, attr, data, flags&create != 0, flags&replace != 0)
	})
}

// Removexattr removes one.
func (n *node) Removexattr(ctx context.Context, attr string) syscall.Errno {
	return n.changeXattr(ctx, "removexattr", func(v *backend.View, c backend.Caller, b backend.Node) error {
		return v.RemoveXattr(ctx, c, b, attr)
	})
}

func (n *node) changeXattr(ctx context.Context, op string, do func(*backend.View, backend.Caller, backend.Node) error) syscall.Errno {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return toErrno(err)
	}
	s, err := n.state(ctx, v, c)
	if err != nil {
		return n.m.fail(op, err)
	}
	if s.gone {
		return syscall.ENOTSUP
	}
	if err := do(v, c, s.Node); err != nil {
		if errors.Is(err, backend.ErrExist) {
			return syscall.EEXIST
		}
		return n.m.fail(op, err)
	}
	return 0
}
