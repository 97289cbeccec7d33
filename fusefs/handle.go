package fusefs

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// handle is an open file. Who opened it is bound here; the ids of later requests do not count.
type handle struct {
	node   *node
	view   *backend.View
	caller backend.Caller
	flags  backend.OpenFlags
	gen    uint64 // of the policy, when it was last asked
	cached bool   // reads go through the kernel's page cache

	// guarded by node.mu
	base    store.Sum      // content it was opened on, last read, or committed
	refused bool           // stale: every later write is refused
	content *store.Content // of head sum
	sum     store.Sum
	lost    *lost // what it wrote when it was refused already
}

func isStale(err error) bool { return errors.Is(err, backend.ErrStale) }
func isGone(err error) bool  { return errors.Is(err, backend.ErrNotExist) }

// allowed asks the policy again when it has changed since it was last asked: revocation counts from the next operation.
// n.mu is held.
func (h *handle) allowed(ctx context.Context) error {
	gen := h.node.m.mem.Policy().Generation()
	if gen == h.gen {
		return nil
	}
	b := h.node.last
	if !h.node.gone && !h.node.isPending() {
		if cur, err := h.view.Attr(ctx, h.caller, h.node.id); err == nil {
			b = cur
		} else if isGone(err) {
			return backend.ErrDenied // hidden now; the handle's user knows the name
		} else {
			return err
		}
	}
	if err := h.view.Still(ctx, h.caller, b, h.flags); err != nil {
		if isGone(err) {
			return backend.ErrDenied
		}
		return err
	}
	h.gen = gen
	return nil
}

// head returns the head's hash of now; for a file that is not in the tree, the one it was opened on. n.mu is held.
func (h *handle) head(ctx context.Context) (store.Head, error) {
	n := h.node
	if n.gone || n.isPending() {
		return n.last.Head, nil
	}
	in, head, err := h.view.Current(ctx, n.id)
	if isGone(err) || err == nil && in.Ino != n.ino {
		return n.last.Head, nil // removed or replaced: the handle keeps what it had
	}
	if err == nil {
		n.last.Head = head
	}
	return head, err
}

// open gives the bytes of head, kept from one read to the next. n.mu is held.
func (h *handle) open(ctx context.Context, head store.Head) (*store.Content, error) {
	if h.content != nil && h.sum == head.Sum {
		return h.content, nil
	}
	c, err := h.view.Content(ctx, head)
	if err != nil {
		return nil, err
	}
	h.content, h.sum = c, head.Sum
	return c, nil
}

// Read serves the session's draft, else the head of now.
func (h *handle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	ctx = steady(ctx)
	h.node.mu.Lock()
	defer h.node.mu.Unlock()
	n, err := h.read(ctx, dest, off)
	if err != nil {
		if isStale(err) {
			return nil, syscall.ESTALE
		}
		return nil, h.node.m.fail("read", err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (h *handle) read(ctx context.Context, dest []byte, off int64) (int, error) {
	if !h.flags.Read {
		return 0, nil // a mapping's read-ahead of a write-only handle: the kernel does not ask
	}
	if err := h.allowed(ctx); err != nil {
		return 0, err
	}
	n := h.node
	head, err := h.head(ctx)
	if err != nil {
		return 0, err
	}
	if d := h.visibleDraft(); d != nil {
		if h.caller.Proc.Key != "" {
			d.readers[h.caller.Proc.Key] = true
		}
		var before store.Bytes
		if d.appendOnly {
			if before, err = h.open(ctx, head); err != nil {
				return 0, err
			}
		}
		return d.readAt(dest, off, before)
	}
	if n.isPending() {
		return 0, nil
	}
	content, err := h.open(ctx, head)
	if err != nil {
		return 0, err
	}
	if !n.gone && n.last.Inode.Owner == "" && (h.flags.Write || h.base != head.Sum) {
		h.caller.Session.Observe(h.caller.Proc, n.id, head.Sum)
	}
	if !h.refused {
		h.base = head.Sum
	}
	return readFull(content, dest, off)
}

// visibleDraft is the draft that this handle reads. A handle that reads through the page cache must not bring a
// session's draft into it while another session does the same.
func (h *handle) visibleDraft() *draft {
	n := h.node
	d := n.drafts[h.caller.Session]
	if d == nil && (n.gone || n.isPending()) {
		for _, d = range n.drafts {
			break
		}
	}
	if d == nil || !d.shows() || h.refused {
		return nil
	}
	if h.cached {
		for other := range n.handles {
			if other.cached && other.caller.Session != h.caller.Session {
				return nil
			}
		}
	}
	return d
}

// Write puts bytes into the session's draft. ESTALE, never EAGAIN: SEMANTICS.md section 1.
func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	ctx = steady(ctx)
	n := h.node
	n.mu.Lock()
	defer n.mu.Unlock()
	limit := n.m.mem.Settings().Limits.MaxFile
	end := off + int64(len(data))
	if !h.flags.Append && end > limit {
		return 0, syscall.EFBIG
	}
	d, err := h.modify(ctx, "write")
	if err != nil {
		if isStale(err) && !h.flags.Append {
			h.loseWrite(ctx, data, off)
		}
		return 0, h.writeErrno(err)
	}
	if h.flags.Append {
		if d.size()+int64(len(data)) > limit {
			return 0, syscall.EFBIG
		}
		off = d.held()
	}
	if err := d.writeAt(data, off); err != nil {
		return 0, h.writeErrno(err)
	}
	d.touch(draftDirty, h.caller.Proc)
	if d.appendOnly {
		n.armIdle(d, h)
	}
	return uint32(len(data)), 0
}

func (h *handle) writeErrno(err error) syscall.Errno {
	if isStale(err) {
		return syscall.ESTALE
	}
	return h.node.m.fail("write", err)
}

// modify returns the session's draft, ready to be changed by this handle: it has the head's bytes, and the handle is
// not stale. n.mu is held.
func (h *handle) modify(ctx context.Context, op string) (*draft, error) {
	n := h.node
	if h.refused {
		return nil, backend.ErrStale
	}
	if err := h.allowed(ctx); err != nil {
		return nil, err
	}
	d := n.draftOf(h.caller.Session)
	if d.failed != nil && d.appendOnly {
		return nil, d.failed // an idle append failed and nobody has been told yet
	}
	var err error
	if d.state == draftClean {
		err = h.begin(ctx, d, op)
	} else {
		err = h.join(ctx, d, op)
	}
	if err != nil {
		if isStale(err) {
			h.refused = true
		}
		if d.state == draftClean && len(d.handles) == 0 {
			n.drop(d)
		}
		return nil, err
	}
	d.handles[h] = struct{}{}
	return d, nil
}

// begin starts a draft on the head.
func (h *handle) begin(ctx context.Context, d *draft, op string) error {
	n := h.node
	if n.isPending() || n.gone && d.held() > 0 {
		d.appendOnly = n.isPending() && h.flags.Append && d.held() == 0
		return nil // nothing in the store to start from, or to be stale against
	}
	head, err := h.head(ctx)
	if err != nil {
		return err
	}
	if !n.gone && !h.flags.Append && n.last.Inode.Owner == "" {
		if h.base != head.Sum {
			return h.view.Stale(h.caller, op, n.last, "")
		}
		if known, current := h.caller.Session.Knows(h.caller.Proc, n.id, head.Sum); known && !current {
			return h.view.Stale(h.caller, op, n.last, "")
		}
	}
	if h.flags.Append && !n.gone {
		d.replace(nil)
		d.appendOnly, d.headSize, d.base = true, head.Size, head.Sum
		return nil
	}
	if d.base == head.Sum && d.buf != nil {
		return nil // still there from the last commit
	}
	return h.load(ctx, d, head)
}

// load makes the draft one of the whole content of head, with what was appended to it already.
func (h *handle) load(ctx context.Context, d *draft, head store.Head) error {
	content, err := h.open(ctx, head)
	if err != nil {
		return err
	}
	buf := h.node.m.mem.NewScratch()
	if err = buf.Append(content, 0); err == nil && d.appendOnly && d.buf != nil {
		err = buf.Append(d.buf, 0)
	}
	if err != nil {
		buf.Close()
		return err
	}
	d.replace(buf)
	d.appendOnly, d.base = false, head.Sum
	return nil
}

// join makes a handle take part in a draft that its session has already. A process that read the committed bytes itself,
// and has not looked at what another process of the session made of them since, would overwrite that unseen: it is
// stale, although nothing is committed yet.
func (h *handle) join(ctx context.Context, d *draft, op string) error {
	n := h.node
	if _, ok := d.handles[h]; !ok && !h.flags.Append && n.last.Inode.Owner == "" && !d.readers[h.caller.Proc.Key] &&
		!h.related(d) && h.caller.Session.HasRead(h.caller.Proc, n.id) {
		return h.view.Stale(h.caller, op, n.last, "")
	}
	if !d.appendOnly || h.flags.Append {
		return nil
	}
	// A plain write meets the session's uncommitted appends: from here on it is a draft of the whole content.
	return h.loadWhole(ctx, d)
}

// loadWhole is load on the head of now.
func (h *handle) loadWhole(ctx context.Context, d *draft) error {
	head, err := h.head(ctx)
	if err != nil {
		return err
	}
	return h.load(ctx, d, head)
}

// related tells whether every writer of the draft is this process, or one that it started.
func (h *handle) related(d *draft) bool {
	self := h.caller.Proc.Key
	for key, w := range d.writers {
		if key != self && !slices.Contains(w.Ancestors, self) {
			return false
		}
	}
	return true
}

// truncate is ftruncate, O_TRUNC (state draftTruncated) or a hole that grows the file. n.mu is held.
func (h *handle) truncate(ctx context.Context, size int64, state draftState, op string) error {
	if size > h.node.m.mem.Settings().Limits.MaxFile {
		return backend.ErrTooLarge
	}
	d, err := h.modify(ctx, op)
	if err != nil {
		if isStale(err) {
			h.loseSize(ctx, size)
		}
		return err
	}
	if d.appendOnly {
		if err := h.loadWhole(ctx, d); err != nil {
			return err
		}
	}
	if err := d.resize(size); err != nil {
		return err
	}
	if d.state == draftDirty {
		state = draftDirty
	}
	d.touch(state, h.caller.Proc)
	return nil
}

// Flush commits what was written. Without anything written it does nothing: shells send it before their first WRITE.
func (h *handle) Flush(ctx context.Context) syscall.Errno {
	return h.sync(ctx, "close", draftDirty)
}

// Fsync commits too, and a bare truncation as well.
func (h *handle) Fsync(ctx context.Context, _ uint32) syscall.Errno {
	return h.sync(ctx, "fsync", draftTruncated)
}

func (h *handle) sync(ctx context.Context, op string, least draftState) syscall.Errno {
	ctx = steady(ctx)
	n := h.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.refused {
		h.keep(ctx)
		return syscall.EAGAIN
	}
	d := n.drafts[h.caller.Session]
	if d == nil || d.state < least {
		return 0
	}
	if _, mine := d.handles[h]; !mine {
		return 0
	}
	if err := n.commit(ctx, d, h, op); err != nil {
		return n.m.fail(op, err)
	}
	return 0
}

// Release is the last close: a bare truncation, or what a mapping wrote back after the FLUSH, is committed now. Nobody
// sees an error of it.
func (h *handle) Release(ctx context.Context) syscall.Errno {
	n := h.node
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.handles, h)
	h.keep(steady(ctx))
	h.lost.release()
	d := n.drafts[h.caller.Session]
	if d == nil {
		return 0
	}
	if _, mine := d.handles[h]; !mine {
		return 0
	}
	last := len(d.handles) == 1
	if last && d.state != draftClean && d.failed == nil && !(d.forBackup && d.state == draftTruncated) {
		if err := n.commit(steady(ctx), d, h, "close"); err != nil {
			n.m.log.Warn("a change could not be committed at the last close", "error", err)
		}
	}
	delete(d.handles, h)
	if len(d.handles) == 0 && !d.dropped {
		if n.isPending() && d.state != draftClean {
			n.m.mem.GiveUp(n.pending)
		}
		n.drop(d)
	}
	return 0
}

// Lseek knows no holes: data everywhere up to the end.
func (h *handle) Lseek(ctx context.Context, off uint64, whence uint32) (uint64, syscall.Errno) {
	const seekData, seekHole = 3, 4
	ctx = steady(ctx)
	h.node.mu.Lock()
	defer h.node.mu.Unlock()
	s, err := h.node.stateLocked(ctx, h.view, h.caller)
	if err != nil {
		return 0, h.node.m.fail("lseek", err)
	}
	size := uint64(s.Head.Size)
	switch {
	case off >= size:
		return 0, syscall.ENXIO
	case whence == seekData:
		return off, 0
	case whence == seekHole:
		return size, 0
	default:
		return 0, syscall.EINVAL
	}
}

// Allocate is fallocate(2): growing, zeroing and punching, all of it in the draft.
func (h *handle) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	ctx = steady(ctx)
	const keepSize, punchHole, zeroRange = 1, 2, 16
	n := h.node
	n.mu.Lock()
	defer n.mu.Unlock()
	limit := uint64(n.m.mem.Settings().Limits.MaxFile)
	if off > limit || size > limit || off+size > limit {
		return syscall.EFBIG
	}
	if mode&^(keepSize|punchHole|zeroRange) != 0 || mode&punchHole != 0 && mode&keepSize == 0 {
		return syscall.EOPNOTSUPP
	}
	s, err := n.stateLocked(ctx, h.view, h.caller)
	if err != nil {
		return n.m.fail("fallocate", err)
	}
	old, end := s.Head.Size, int64(off+size)
	if mode&keepSize != 0 {
		end = min(end, old)
	}
	if mode&(punchHole|zeroRange) == 0 && end <= old {
		return 0 // space is never reserved ahead
	}
	if err := h.truncate(ctx, max(old, end), draftDirty, "fallocate"); err != nil {
		return h.writeErrno(err)
	}
	if mode&(punchHole|zeroRange) != 0 && int64(off) < end {
		d := n.drafts[h.caller.Session]
		if err := d.own(); err != nil {
			return h.writeErrno(err)
		}
		if err := d.buf.Zero(int64(off), end); err != nil {
			return h.writeErrno(err)
		}
	}
	return 0
}
