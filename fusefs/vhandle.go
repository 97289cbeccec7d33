package fusefs

import (
	"context"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend/store"
)

// maxVirtual is what a writable virtual file takes, in bytes: those of a memory at its default limit.
const maxVirtual = 64 << 20

// vhandle is an open virtual file. Who opened it is bound here.
type vhandle struct {
	n      *vinode
	a      asker
	writer vwriter // nil: read-only
	append bool

	mu       sync.Mutex
	content  store.Bytes // of a reader
	told     bool        // that it was read to its end
	buf      []byte      // of a writer
	dirty    bool        // written since the last save
	emptied  bool        // truncated at open: saved at the last close, if nothing is written
	saveFail bool        // the last save failed: not tried again without new bytes
}

// load takes the bytes into memory, to be changed.
func (h *vhandle) load(empty bool) error {
	if empty {
		h.emptied = h.content.Size() > 0
		return nil
	}
	h.buf = make([]byte, h.content.Size())
	_, err := readFull(h.content, h.buf, 0)
	return err
}

// Read reads what was there at open, or what this handle wrote.
func (h *vhandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writer != nil {
		if off >= int64(len(h.buf)) {
			return fuse.ReadResultData(nil), 0
		}
		return fuse.ReadResultData(dest[:copy(dest, h.buf[off:])]), 0
	}
	n, err := readFull(h.content, dest, off)
	if err != nil {
		return nil, h.n.m.fail("read", err)
	}
	if r, ok := h.n.file.(vreader); ok && !h.told && off+int64(n) >= h.content.Size() {
		if err := r.finished(steady(ctx), h.a, h.content); err != nil {
			return nil, h.n.m.fail("read", err)
		}
		h.told = true
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// Write changes the bytes in memory, if the file takes them so far.
func (h *vhandle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writer == nil {
		return 0, syscall.EBADF
	}
	if h.append {
		off = int64(len(h.buf))
	}
	end := off + int64(len(data))
	if end > maxVirtual {
		return 0, syscall.EFBIG
	}
	next := slices.Clone(h.buf)
	if n := int64(len(next)); end > n {
		next = append(next, make([]byte, end-n)...)
	}
	copy(next[off:], data)
	if err := h.writer.check(steady(ctx), h.a, next); err != nil {
		return 0, h.n.m.fail("write", err)
	}
	h.buf, h.dirty, h.saveFail = next, true, false
	return uint32(len(data)), 0
}

func (h *vhandle) resize(size int64) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writer == nil {
		return syscall.EBADF
	}
	if size > maxVirtual {
		return syscall.EFBIG
	}
	if n := int64(len(h.buf)); size > n {
		h.buf = append(h.buf, make([]byte, size-n)...)
	} else {
		h.buf = h.buf[:size:size]
	}
	h.emptied = true // saved at the last close, unless bytes follow
	return 0
}

// Flush saves what was written.
func (h *vhandle) Flush(ctx context.Context) syscall.Errno { return h.save(ctx, "close", false) }

// Fsync saves too.
func (h *vhandle) Fsync(ctx context.Context, _ uint32) syscall.Errno {
	return h.save(ctx, "fsync", false)
}

// Release is the last close: a bare truncation is saved now.
func (h *vhandle) Release(ctx context.Context) syscall.Errno { return h.save(ctx, "close", true) }

func (h *vhandle) save(ctx context.Context, op string, last bool) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writer == nil || h.saveFail || !h.dirty && !(last && h.emptied) {
		return 0
	}
	err := h.writer.save(steady(ctx), h.a, h.buf)
	h.saveFail = err != nil
	if err == nil {
		h.dirty, h.emptied = false, false
	}
	return h.n.m.fail(op, err)
}

// readOnlyTree refuses every change of the names in a virtual tree.
type readOnlyTree struct{}

func (readOnlyTree) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EROFS
}

func (readOnlyTree) Mkdir(context.Context, string, uint32, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (readOnlyTree) Symlink(context.Context, string, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (readOnlyTree) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (readOnlyTree) Link(context.Context, fs.InodeEmbedder, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

func (readOnlyTree) Unlink(context.Context, string) syscall.Errno { return syscall.EROFS }

func (readOnlyTree) Rmdir(context.Context, string) syscall.Errno { return syscall.EROFS }

func (readOnlyTree) Rename(context.Context, string, fs.InodeEmbedder, string, uint32) syscall.Errno {
	return syscall.EROFS
}

func (readOnlyTree) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return syscall.EROFS
}

func (readOnlyTree) Removexattr(context.Context, string) syscall.Errno { return syscall.EROFS }
