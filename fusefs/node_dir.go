package fusefs

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// dirHandle is an open directory: a listing taken at the first read and again at every rewind.
type dirHandle struct {
	node   *node
	view   *backend.View
	caller backend.Caller
	gen    uint64
	loaded bool
	names  []store.Dentry
	next   int
}

// OpendirHandle decides, and lets the kernel keep the listing on a one-principal mount. Names that only the caller's
// session sees (created, not committed) are not for the kernel's one listing.
func (n *node) OpendirHandle(ctx context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return nil, 0, toErrno(err)
	}
	id, _ := n.ident()
	h := &dirHandle{node: n, view: v, caller: c}
	if _, err := v.Attr(ctx, c, id); err != nil {
		return nil, 0, n.m.failByInode("opendir", err)
	}
	h.gen = n.m.mem.Policy().Generation()
	if n.m.cfg.Shared || n.m.mem.Uncommitted(id) {
		return h, 0, 0
	}
	return h, fuse.FOPEN_CACHE_DIR, 0
}

func (h *dirHandle) load(ctx context.Context) syscall.Errno {
	ctx = steady(ctx)
	id, _ := h.node.ident()
	names, err := h.view.ReadDir(ctx, h.caller, id)
	switch {
	case isGone(err) && h.gen == h.node.m.mem.Policy().Generation():
		names = nil // removed while open: empty, as on ext4
	case err != nil:
		return h.node.m.fail("readdir", err)
	}
	parent := uint64(rootIno)
	if _, p := h.node.Parent(); p != nil {
		parent = p.StableAttr().Ino
	}
	dots := []store.Dentry{{Name: ".", Type: store.TypeDir, Ino: h.node.ino}, {Name: "..", Type: store.TypeDir, Ino: parent}}
	h.names, h.loaded, h.gen = append(dots, names...), true, h.node.m.mem.Policy().Generation()
	return 0
}

// Readdirent returns the next name. A listing taken under a policy that is no longer in force is not handed out.
func (h *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	if !h.loaded || h.gen != h.node.m.mem.Policy().Generation() {
		if errno := h.load(ctx); errno != 0 {
			return nil, errno
		}
	}
	if h.next >= len(h.names) {
		return nil, 0
	}
	d := h.names[h.next]
	h.next++
	return &fuse.DirEntry{Name: d.Name, Ino: d.Ino, Mode: typeBits(d.Type), Off: uint64(h.next)}, 0
}

// Seekdir moves; to the start it takes a new listing (rewinddir(3)).
func (h *dirHandle) Seekdir(_ context.Context, off uint64) syscall.Errno {
	if off == 0 {
		h.loaded = false
	}
	h.next = int(off)
	return 0
}

// Fsyncdir has nothing to do: every change of a directory is durable when it is answered.
func (h *dirHandle) Fsyncdir(context.Context, uint32) syscall.Errno { return 0 }
