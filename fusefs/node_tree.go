package fusefs

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.makeEntry(ctx, "mkdir", name, out, func(v *backend.View, c backend.Caller, dir store.ID) (backend.Node, error) {
		return v.Mkdir(ctx, c, dir, name, mode&07777)
	})
}

// Symlink makes a symbolic link that stays inside the mount.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.makeEntry(ctx, "symlink", name, out, func(v *backend.View, c backend.Caller, dir store.ID) (backend.Node, error) {
		return v.Symlink(ctx, c, dir, name, target)
	})
}

// Mknod makes an empty regular file. Devices, pipes and sockets are no memory: EPERM.
func (n *node) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if mode&syscall.S_IFMT != syscall.S_IFREG && mode&syscall.S_IFMT != 0 {
		return nil, syscall.EPERM
	}
	return n.makeEntry(ctx, "mknod", name, out, func(v *backend.View, c backend.Caller, dir store.ID) (backend.Node, error) {
		b, _, err := v.Create(ctx, c, dir, name, mode&07777, true)
		if err != nil || b.Pending == nil {
			return b, err
		}
		return v.Save(ctx, c, backend.SaveRequest{Pending: b.Pending, Content: backend.ByteContent(nil), Op: "mknod"})
	})
}

// Link is refused: a memory has one name, or policy could not be decided by path. Tools copy then.
func (n *node) Link(context.Context, fs.InodeEmbedder, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

func (n *node) makeEntry(ctx context.Context, op, name string, out *fuse.EntryOut,
	do func(*backend.View, backend.Caller, store.ID) (backend.Node, error)) (*fs.Inode, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return nil, toErrno(err)
	}
	if n == n.m.root && name == virtualName {
		return nil, syscall.EEXIST
	}
	dir, _ := n.ident()
	end := n.m.notify.begin(store.Place{Parent: dir, Name: name})
	defer end()
	b, err := do(v, c, dir)
	if err != nil {
		return nil, n.m.fail(op, err)
	}
	inode, _ := n.m.inode(ctx, b)
	n.m.fillEntry(ctx, state{Node: b}, out)
	return inode, 0
}

// Unlink removes a file or a symlink.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, "unlink", name, (*backend.View).Unlink)
}

// Rmdir removes an empty directory.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, "rmdir", name, (*backend.View).Rmdir)
}

func (n *node) remove(ctx context.Context, op, name string,
	do func(*backend.View, context.Context, backend.Caller, store.ID, string) (backend.Node, error)) syscall.Errno {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return toErrno(err)
	}
	if n == n.m.root && name == virtualName {
		return syscall.EROFS
	}
	dir, _ := n.ident()
	end := n.m.notify.begin(store.Place{Parent: dir, Name: name})
	defer end()
	b, err := do(v, ctx, c, dir, name)
	if err != nil {
		return n.m.fail(op, err)
	}
	if child := n.m.nodeByID(b.Inode.ID); child != nil {
		child.vanish(c.Session)
	}
	return 0
}

// Rename moves a name, onto another if need be. RENAME_EXCHANGE and whiteouts are refused.
func (n *node) Rename(ctx context.Context, name string, newParent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	const noReplace = 1
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	if err != nil {
		return toErrno(err)
	}
	to, ok := newParent.(*node)
	if !ok || n == n.m.root && name == virtualName || to == n.m.root && newName == virtualName {
		return syscall.EROFS
	}
	if flags&^noReplace != 0 {
		return syscall.EINVAL
	}
	fromDir, _ := n.ident()
	toDir, _ := to.ident()
	end := n.m.notify.begin(store.Place{Parent: fromDir, Name: name}, store.Place{Parent: toDir, Name: newName})
	defer end()
	if err := n.saveSource(ctx, v, c, fromDir, name); err != nil {
		return n.m.fail("rename", err)
	}
	source, err := v.Lookup(ctx, c, fromDir, name)
	if err != nil {
		return n.m.fail("rename", err)
	}
	moved := n.m.nodeByID(source.Inode.ID)
	target, targetErr := v.Lookup(ctx, c, toDir, newName)
	done, err := v.Rename(ctx, c, fromDir, name, toDir, newName, flags&noReplace != 0)
	if err != nil {
		return n.m.fail("rename", err)
	}
	if targetErr == nil && target.Inode.Ino != source.Inode.Ino {
		if old := n.m.nodeByIno(target.Inode.Ino); old != nil {
			old.vanish(c.Session)
		}
	}
	if moved != nil {
		n.m.rebind(moved, done.Moved)
	}
	return 0
}

// saveSource commits what the session has written to a file that it renames now: the new name must have it.
func (n *node) saveSource(ctx context.Context, v *backend.View, c backend.Caller, dir store.ID, name string) error {
	b, err := v.Lookup(ctx, c, dir, name)
	if err != nil || b.Inode.Type != store.TypeFile {
		return err
	}
	src := n.m.nodeByID(b.Inode.ID)
	if src == nil {
		return nil
	}
	src.mu.Lock()
	defer src.mu.Unlock()
	d := src.drafts[c.Session]
	if d == nil || d.state == draftClean {
		return nil
	}
	for h := range d.handles {
		return src.commit(ctx, d, h, "rename")
	}
	return nil
}

func (m *Mount) nodeByIno(ino uint64) *node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byIno[ino]
}

// rebind gives a node that was renamed the memory it stands for now.
func (m *Mount) rebind(n *node, id store.ID) {
	n.mu.Lock()
	old := n.id
	n.id = id
	n.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != id && m.nodes[old] == n {
		delete(m.nodes, old)
	}
	m.nodes[id] = n
}
