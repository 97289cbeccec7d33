package fusefs

import (
	"context"
	"errors"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// lost is what a refused handle goes on writing: programs ignore errors (vim a failed ftruncate, a shell those of close),
// and what they wrote is kept as a conflict, for the one who wrote it. Guarded by node.mu.
type lost struct {
	buf   *backend.Scratch
	base  store.Sum
	name  string // of the conflict, once it is kept
	dirty bool   // written since
	users int    // handles that write it
}

// lose begins it for a handle that was found stale before its first write: on the content that it was opened on.
func (h *handle) lose(ctx context.Context) *lost {
	if h.lost == nil {
		h.lost = &lost{buf: h.node.m.mem.NewScratch(), base: h.base, users: 1}
		if before, err := h.view.VersionContent(ctx, h.caller, h.node.id, h.base); err == nil && before != nil {
			h.cannotLose(h.lost.buf.Append(before, 0))
		}
	}
	return h.lost
}

// loseWrite takes bytes that were refused. The caller has checked the size limit.
func (h *handle) loseWrite(ctx context.Context, p []byte, off int64) {
	l := h.lose(ctx)
	_, err := l.buf.WriteAt(p, off)
	h.cannotLose(err)
	l.dirty = true
}

// loseSize is the same for a change of size, which by itself is nothing to keep.
func (h *handle) loseSize(ctx context.Context, size int64) {
	h.cannotLose(h.lose(ctx).buf.Truncate(size))
}

// cannotLose says that there is no room for refused bytes. Their writer is told that it is stale in any case.
func (h *handle) cannotLose(err error) {
	if err != nil {
		h.node.m.log.Warn("the bytes of a stale write could not be taken", "path", h.node.last.Path, "error", err)
	}
}

// release is called by a handle that is closed. It may be called on nil.
func (l *lost) release() {
	if l == nil {
		return
	}
	if l.users--; l.users == 0 {
		l.buf.Close()
	}
}

// keep makes a conflict of what was lost since the last time, and says so in .memory/errors. n.mu is held.
func (h *handle) keep(ctx context.Context) {
	l := h.lost
	if l == nil || !l.dirty {
		return
	}
	l.dirty = false
	n := h.node
	name, err := h.view.KeepLost(ctx, h.caller, backend.LostWrite{Memory: n.id, Path: n.last.Path, Op: "write", Base: l.base,
		Mine: l.buf, Again: l.name})
	if err != nil {
		n.m.log.Warn("the bytes of a stale write could not be kept", "path", n.last.Path, "error", err)
		return
	}
	if l.name == "" {
		_ = h.view.Stale(h.caller, "close", n.last, name) // said, not returned: the caller knows that it is stale
	}
	l.name = name
}

// loseDraft hands a draft that is dropped to its handles: what they go on writing belongs to the same conflict, which is
// kept in refusal already, or with dirty only now. n.mu is held.
func (d *draft) loseDraft(refusal error, dirty bool) {
	l := &lost{buf: d.buf, base: d.base, dirty: dirty, users: len(d.handles)}
	d.buf = nil
	if l.buf == nil {
		l.buf = d.node.m.mem.NewScratch()
	}
	var r *backend.Refusal
	if errors.As(refusal, &r) {
		l.name = r.Conflict
	}
	for h := range d.handles {
		h.lost, h.refused = l, true
	}
}
