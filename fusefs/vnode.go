package fusefs

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// The virtual tree, .memory and what lies in it, is made of vdirs and vfiles. They are the same for every caller: who
// asks comes with each question, so that one inode of the kernel's serves all users of a shared mount, and nothing that
// was shown to one is believed for another (all timeouts are 0).

// asker is who asks something of the virtual tree.
type asker struct {
	view   *backend.View
	caller backend.Caller
}

// vattr is what stat shows of a virtual file or directory.
type vattr struct {
	size  int64
	mtime time.Time // zero: now
	fixed bool      // of a file: its bytes never change, so the kernel may keep its pages
}

// vfile is a file of the virtual tree. Its errors are the backend's.
type vfile interface {
	attr(ctx context.Context, a asker) (vattr, error)
	// open takes the bytes as they are now; they do not change under the reader.
	open(ctx context.Context, a asker) (store.Bytes, error)
}

// vdir is a directory of the virtual tree.
type vdir interface {
	// lookup finds one name; backend.ErrNotExist.
	lookup(ctx context.Context, a asker, name string) (vnode, error)
	// list names what is there: of each vnode only name, key and kind are needed.
	list(ctx context.Context, a asker) ([]vnode, error)
}

// vwriter is a vfile that takes bytes: read as a whole, changed in memory, saved as a whole at close or fsync.
type vwriter interface {
	vfile
	// check is asked at each write(2) about all bytes so far, because shells do not see an error of close(2).
	check(ctx context.Context, a asker, content []byte) error
	save(ctx context.Context, a asker, content []byte) error
}

// vreader is a vfile that wants to know that somebody has read it to its end. If that cannot be noted, the read fails.
type vreader interface {
	finished(ctx context.Context, a asker, content store.Bytes) error
}

// vxattrs is a vfile or vdir with extended attributes, by full name.
type vxattrs interface {
	xattrs(ctx context.Context, a asker) (map[string]string, error)
}

// vstat is a vdir that knows more of itself than "a directory, now".
type vstat interface {
	attr(ctx context.Context, a asker) (vattr, error)
}

// vnode is an entry of the virtual tree: a directory, a file or a symbolic link.
type vnode struct {
	name string
	key  string // what it is: the same key is the same inode number; "": its path
	dir  vdir
	file vfile
	link string // target; if neither dir nor file
}

func (n vnode) typ() uint32 {
	switch {
	case n.dir != nil:
		return fuse.S_IFDIR
	case n.file != nil:
		return fuse.S_IFREG
	default:
		return fuse.S_IFLNK
	}
}

// under completes the key of an entry of the directory with the given key.
func (n vnode) under(dir string) vnode {
	if n.key == "" {
		n.key = dir + "/" + n.name
	}
	return n
}

// virtualIno sets the inode numbers of the virtual tree apart from those that the store gives out.
const virtualIno = 1 << 62

func (n vnode) ino() uint64 {
	h := fnv.New64a()
	h.Write([]byte(n.key)) // never fails
	return virtualIno | h.Sum64()>>2
}

// vinode is an inode of the virtual tree.
type vinode struct {
	fs.Inode
	readOnlyTree
	m *Mount
	vnode
}

func (m *Mount) virtualInode(ctx context.Context, v vnode) *fs.Inode {
	return m.root.NewInode(ctx, &vinode{m: m, vnode: v}, fs.StableAttr{Mode: v.typ(), Ino: v.ino()})
}

// ask says who asks.
func (n *vinode) ask(ctx context.Context) (context.Context, asker, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := n.m.caller(ctx)
	return ctx, asker{v, c}, toErrno(err)
}

func (n *vinode) fill(ctx context.Context, a asker, v vnode, out *fuse.Attr) error {
	var attr vattr
	var err error
	out.Mode, out.Nlink, out.Ino, out.Blksize = v.typ(), 1, v.ino(), 4096
	switch {
	case v.file != nil:
		attr, err = v.file.attr(ctx, a)
		out.Mode |= 0o444
		if _, ok := v.file.(vwriter); ok {
			out.Mode |= 0o200
		}
	case v.dir != nil:
		if s, ok := v.dir.(vstat); ok {
			attr, err = s.attr(ctx, a)
		}
		out.Mode |= 0o555
	default:
		attr.size = int64(len(v.link))
		out.Mode |= 0o777
	}
	if err != nil {
		return err
	}
	if attr.mtime.IsZero() {
		attr.mtime = time.Now()
	}
	out.Size = uint64(attr.size)
	out.Blocks = (out.Size + 511) / 512
	setTime(&out.Mtime, &out.Mtimensec, attr.mtime)
	setTime(&out.Ctime, &out.Ctimensec, attr.mtime)
	setTime(&out.Atime, &out.Atimensec, attr.mtime)
	out.Uid, out.Gid = n.m.uid, n.m.gid
	if fc, ok := fuse.FromContext(ctx); ok && n.m.cfg.Shared {
		out.Uid, out.Gid = fc.Uid, fc.Gid
	}
	return nil
}

// Getattr answers stat; the kernel keeps nothing of it.
func (n *vinode) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return errno
	}
	return n.m.fail("getattr", n.fill(ctx, a, n.vnode, &out.Attr))
}

// Lookup finds a name in a virtual directory.
func (n *vinode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return nil, errno
	}
	if n.dir == nil {
		return nil, syscall.ENOTDIR
	}
	v, err := n.dir.lookup(ctx, a, name)
	if err != nil {
		return nil, n.m.fail("lookup", err)
	}
	v = v.under(n.key)
	if err := n.fill(ctx, a, v, &out.Attr); err != nil {
		return nil, n.m.fail("lookup", err)
	}
	return n.m.virtualInode(ctx, v), 0
}

// Readdir lists a virtual directory.
func (n *vinode) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return nil, errno
	}
	if n.dir == nil {
		return nil, syscall.ENOTDIR
	}
	list, err := n.dir.list(ctx, a)
	if err != nil {
		return nil, n.m.fail("readdir", err)
	}
	out := make([]fuse.DirEntry, len(list))
	for i, v := range list {
		v = v.under(n.key)
		out[i] = fuse.DirEntry{Name: v.name, Mode: v.typ(), Ino: v.ino()}
	}
	return fs.NewListDirStream(out), 0
}

// Readlink returns a symbolic link's target.
func (n *vinode) Readlink(context.Context) ([]byte, syscall.Errno) {
	if n.link == "" {
		return nil, syscall.EINVAL
	}
	return []byte(n.link), 0
}

// Getxattr answers getxattr(2).
func (n *vinode) Getxattr(ctx context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return 0, errno
	}
	attrs, err := n.attrs(ctx, a)
	if err != nil {
		return 0, n.m.fail("getxattr", err)
	}
	value, ok := attrs[name]
	if !ok {
		return 0, syscall.ENODATA
	}
	return copyXattr([]byte(value), dest)
}

// Listxattr answers listxattr(2); programs that copy attributes are told of none, as on memories.
func (n *vinode) Listxattr(ctx context.Context, dest []byte) (uint32, syscall.Errno) {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return 0, errno
	}
	attrs, err := n.attrs(ctx, a)
	if err != nil {
		return 0, n.m.fail("listxattr", err)
	}
	var list []byte
	if !copiers[a.caller.Proc.Name] {
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			list = append(append(list, name...), 0)
		}
	}
	return copyXattr(list, dest)
}

func (n *vinode) attrs(ctx context.Context, a asker) (map[string]string, error) {
	var of any = n.file
	if n.dir != nil {
		of = n.dir
	}
	if x, ok := of.(vxattrs); ok {
		return x.xattrs(ctx, a)
	}
	return nil, nil
}

// Open opens a virtual file.
func (n *vinode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return nil, 0, errno
	}
	w, _ := n.file.(vwriter)
	write := flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
	if write && w == nil {
		return nil, 0, syscall.EROFS
	}
	content, err := n.file.open(ctx, a)
	if err != nil {
		return nil, 0, n.m.fail("open", err)
	}
	h := &vhandle{n: n, a: a, content: content}
	if write {
		h.writer, h.append = w, flags&syscall.O_APPEND != 0
		if err := h.load(flags&syscall.O_TRUNC != 0); err != nil {
			return nil, 0, n.m.fail("open", err)
		}
		return h, fuse.FOPEN_DIRECT_IO, 0
	}
	if attr, err := n.file.attr(ctx, a); err == nil && attr.fixed {
		return h, fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH, 0
	}
	return h, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, 0
}

// Setattr changes the size of a writable file; everything else is refused. An editor's chmod of what it just wrote is
// let through without effect, so that its save does not look failed.
func (n *vinode) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	ctx, a, errno := n.ask(ctx)
	if errno != 0 {
		return errno
	}
	w, ok := n.file.(vwriter)
	if !ok {
		return syscall.EROFS
	}
	if size, ok := in.GetSize(); ok {
		h, ok := f.(*vhandle)
		if !ok { // truncate(2) by path: one whole save
			content, err := w.open(ctx, a)
			if err != nil {
				return n.m.fail("truncate", err)
			}
			h = &vhandle{n: n, a: a, content: content, writer: w}
			if err := h.load(false); err != nil {
				return n.m.fail("truncate", err)
			}
			defer h.Release(ctx)
		}
		if errno := h.resize(int64(size)); errno != 0 {
			return errno
		}
	}
	return n.m.fail("setattr", n.fill(ctx, a, n.vnode, &out.Attr))
}

// enterVirtual is the lookup of .memory.
func (m *Mount) enterVirtual(ctx context.Context, a asker, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n := &vinode{m: m, vnode: m.virtual}
	if err := n.fill(ctx, a, m.virtual, &out.Attr); err != nil {
		return nil, m.fail("lookup", err)
	}
	return m.virtualInode(ctx, m.virtual), 0
}
