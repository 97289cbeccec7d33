package fusefs

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
)

// virtualName is the directory at the mount's root that readdir does not list but that can be entered by name.
const virtualName = ".memory"

// Inode numbers of the virtual tree, far from those that the store gives out.
const virtualIno = 1 << 62

//go:embed readme.md
var readme []byte

// virtualFile is a read-only file whose bytes are made for whoever opens it.
type virtualFile struct {
	fs.Inode
	m    *Mount
	ino  uint64
	make func(ctx context.Context, v *backend.View, c backend.Caller) ([]byte, error)
}

// virtualDir is .memory itself.
type virtualDir struct {
	fs.Inode
	m     *Mount
	names []string
	files map[string]*virtualFile
}

func newVirtualDir(m *Mount) *virtualDir {
	d := &virtualDir{m: m, files: map[string]*virtualFile{}}
	for _, f := range []struct {
		name string
		make func(context.Context, *backend.View, backend.Caller) ([]byte, error)
	}{{"README.md", m.readme}, {"whoami", m.whoami}, {"errors", m.errors}} {
		d.names = append(d.names, f.name)
		d.files[f.name] = &virtualFile{m: m, ino: virtualIno + uint64(len(d.names)), make: f.make}
	}
	return d
}

// virtualRoot enters .memory.
func (m *Mount) virtualRoot(ctx context.Context, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	out.Mode, out.Nlink = fuse.S_IFDIR|0o555, 1
	out.Uid, out.Gid = m.uid, m.gid
	return m.root.NewInode(ctx, m.virtual, fs.StableAttr{Mode: fuse.S_IFDIR, Ino: virtualIno}), 0
}

func (m *Mount) readme(context.Context, *backend.View, backend.Caller) ([]byte, error) {
	return readme, nil
}

// whoami tells a caller who the mount takes it for.
func (m *Mount) whoami(_ context.Context, v *backend.View, c backend.Caller) ([]byte, error) {
	p := v.Principal()
	var b bytes.Buffer
	fmt.Fprintf(&b, "principal: %s\nkind: %s\n", p.ID, p.Kind)
	for _, line := range []struct{ key, value string }{{"on_behalf_of", p.OnBehalfOf}, {"session", c.Session.Name},
		{"conversation", c.Claimed.Conversation}, {"reason", c.Claimed.Reason}} {
		if line.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", line.key, line.value)
		}
	}
	fmt.Fprintf(&b, "mount: %s\nshared: %t\npolicy: %s\n", m.cfg.Dir, m.cfg.Shared, m.mem.Policy().Revision())
	return b.Bytes(), nil
}

// errors lists what this session was refused, one JSON object a line, oldest first.
func (m *Mount) errors(_ context.Context, _ *backend.View, c backend.Caller) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range c.Session.Refusals() {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func (d *virtualDir) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Nlink = fuse.S_IFDIR|0o555, 1
	out.Uid, out.Gid = d.m.uid, d.m.gid
	return 0
}

func (d *virtualDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	f := d.files[name]
	if f == nil {
		return nil, syscall.ENOENT
	}
	if errno := f.fill(ctx, &out.Attr); errno != 0 {
		return nil, errno
	}
	return d.NewInode(ctx, f, fs.StableAttr{Mode: fuse.S_IFREG, Ino: f.ino}), 0
}

func (d *virtualDir) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	list := make([]fuse.DirEntry, len(d.names))
	for i, name := range d.names {
		list[i] = fuse.DirEntry{Name: name, Mode: fuse.S_IFREG, Ino: d.files[name].ino}
	}
	return fs.NewListDirStream(list), 0
}

func (d *virtualDir) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EROFS
}

func (d *virtualDir) Mkdir(context.Context, string, uint32, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (d *virtualDir) Symlink(context.Context, string, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (d *virtualDir) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (d *virtualDir) Link(context.Context, fs.InodeEmbedder, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (d *virtualDir) Unlink(context.Context, string) syscall.Errno { return syscall.EROFS }

func (d *virtualDir) Rmdir(context.Context, string) syscall.Errno { return syscall.EROFS }

func (d *virtualDir) Rename(context.Context, string, fs.InodeEmbedder, string, uint32) syscall.Errno {
	return syscall.EROFS
}

func (d *virtualDir) Setattr(context.Context, fs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return syscall.EROFS
}

func (d *virtualDir) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return syscall.EROFS
}

// bytes makes the content for the caller.
func (f *virtualFile) bytes(ctx context.Context) ([]byte, syscall.Errno) {
	ctx = steady(ctx)
	v, c, err := f.m.caller(ctx)
	if err != nil {
		return nil, toErrno(err)
	}
	b, err := f.make(ctx, v, c)
	if err != nil {
		return nil, f.m.fail("read", err)
	}
	return b, 0
}

func (f *virtualFile) fill(ctx context.Context, out *fuse.Attr) syscall.Errno {
	b, errno := f.bytes(ctx)
	if errno != 0 {
		return errno
	}
	out.Mode, out.Nlink, out.Size, out.Ino = fuse.S_IFREG|0o444, 1, uint64(len(b)), f.ino
	out.Blksize, out.Blocks = 4096, (out.Size+511)/512
	out.Uid, out.Gid = f.m.uid, f.m.gid
	now := time.Now()
	setTime(&out.Mtime, &out.Mtimensec, now)
	return 0
}

func (f *virtualFile) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.fill(ctx, &out.Attr)
}

// Open takes the bytes as they are now; reading them does not change under the reader.
func (f *virtualFile) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0 {
		return nil, 0, syscall.EROFS
	}
	b, errno := f.bytes(ctx)
	return &virtualHandle{b}, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, errno
}

func (f *virtualFile) Setattr(context.Context, fs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return syscall.EROFS
}

func (f *virtualFile) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return syscall.EROFS
}

type virtualHandle struct{ b []byte }

func (h *virtualHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off >= int64(len(h.b)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, h.b[off:])]), 0
}
