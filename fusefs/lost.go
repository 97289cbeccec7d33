package fusefs

import (
	"context"
	"errors"
	"slices"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// lost is what a refused handle goes on writing: programs ignore errors (vim a failed ftruncate, a shell those of close),
// and what they wrote is kept as a conflict, for the one who wrote it. Guarded by node.mu.
type lost struct {
	buf   []byte
	base  store.Sum
	name  string // of the conflict, once it is kept
	dirty bool   // written since
}

// lose begins it for a handle that was found stale before its first write: on the content that it was opened on.
func (h *handle) lose(ctx context.Context) *lost {
	if h.lost == nil {
		h.lost = &lost{base: h.base}
		if before, err := h.view.VersionContent(ctx, h.caller, h.node.id, h.base); err == nil && before != nil {
			h.lost.buf = make([]byte, before.Size())
			if _, err := readFull(before, h.lost.buf, 0); err != nil {
				h.lost.buf = nil
			}
		}
	}
	return h.lost
}

// write takes bytes that were refused. The caller has checked the size limit.
func (l *lost) write(p []byte, off int64) {
	l.resize(max(int64(len(l.buf)), off+int64(len(p))))
	copy(l.buf[off:], p)
	l.dirty = true
}

func (l *lost) resize(size int64) {
	if n := int64(len(l.buf)); size > n {
		l.buf = append(l.buf, make([]byte, size-n)...)
	}
	l.buf = slices.Clip(l.buf[:size])
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
		Mine: backend.ByteContent(l.buf), Again: l.name})
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
	l := &lost{buf: slices.Clone(d.buf), base: d.base, dirty: dirty}
	var r *backend.Refusal
	if errors.As(refusal, &r) {
		l.name = r.Conflict
	}
	for h := range d.handles {
		h.lost, h.refused = l, true
	}
}
