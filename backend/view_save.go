package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"memoryfs/audit"
	"memoryfs/backend/kv"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// recordTimeout bounds a commit with its record. It runs apart from the caller's context: Ctrl-C may stop a decision,
// never a record.
const recordTimeout = 2 * time.Minute

// maxPolicyContent is how much of a content a policy may look at, in bytes.
const maxPolicyContent = 1 << 20

// SaveRequest is one save of a file: a whole content, or bytes to append.
type SaveRequest struct {
	ID      store.ID
	Pending *Pending    // not nil: the first commit of a created file
	Base    store.Sum   // the content the writer started from
	Content store.Bytes // nil with Append
	Append  store.Bytes
	Mtime   time.Time  // zero: now
	Op      string     // as the user knows it: close, fsync, put, …
	Kind    store.Kind // what the version is called; "": by what happens
	Unkept  bool       // if it is stale, its bytes are kept elsewhere already
}

func (r SaveRequest) size(head int64) int64 {
	if r.Content == nil {
		return head + r.Append.Size()
	}
	return r.Content.Size()
}

// Save commits. Errors: ErrStale when the head is not Base any more (nothing is changed), ErrDenied by content or
// because the right was taken away meanwhile, ErrTooLarge, ErrNoSpace, ErrNoRecord.
func (v *View) Save(ctx context.Context, c Caller, r SaveRequest) (Node, error) {
	if r.Pending != nil {
		return v.saveNew(ctx, c, r)
	}
	n, err := v.Attr(ctx, c, r.ID)
	if err != nil {
		return n, err
	}
	eph := n.Inode.Owner != ""
	known, _ := false, false
	if c.Session != nil {
		known, _ = c.Session.Knows(c.Proc, r.ID, n.Head.Sum)
	}
	d, err := v.decideContent(ctx, c, r, n, policy.ActionWrite, !known)
	if err != nil {
		return n, err
	}
	var rev kv.Rev
	err = v.change(ctx, c, d, baseLabel(known), eph, func(ctx context.Context, ch store.Change) error {
		var err error
		ch.Kind = r.Kind
		if r.Content == nil {
			n.Head, rev, err = v.m.store.Append(ctx, r.ID, r.Append, ch)
		} else {
			n.Head, rev, err = v.m.store.Write(ctx, r.ID, store.Base{Sum: r.Base, Any: eph}, r.Content, r.Mtime, ch)
		}
		return err
	})
	if errors.Is(err, store.ErrStale) {
		return n, v.lost(ctx, c, LostWrite{Memory: r.ID, Path: n.Path, Op: r.Op, Base: r.Base, Mine: r.Content, Unkept: r.Unkept}, d)
	}
	if err != nil {
		return n, v.commitFailed(c, r.Op, n, d, err)
	}
	v.m.applier.wait(rev)
	if c.Session != nil && !eph {
		c.Session.Wrote(c.Proc, r.ID, n.Head.Sum)
	}
	return n, nil
}

// saveNew makes a pending file a memory. If somebody made one of that name meanwhile, the writer started from "not
// there" and is stale.
func (v *View) saveNew(ctx context.Context, c Caller, r SaveRequest) (Node, error) {
	p := r.Pending
	switch p.begin(pendingCommitting) {
	case pendingOpen:
	case pendingCommitted: // by another handle, a moment ago
		r.Pending, r.ID = nil, p.ID
		return v.Save(ctx, c, r)
	default:
		return Node{}, fmt.Errorf("%s: %w", p.Inode().Name, ErrNotExist)
	}
	n, d, rev, err := v.createPending(ctx, c, r)
	switch {
	case err == nil:
		v.m.settle(p, pendingCommitted)
	case errors.Is(err, store.ErrExist):
		v.m.settle(p, pendingGone)
		return n, v.lostCreate(ctx, c, r, n, d)
	default:
		p.end(pendingOpen)
		return n, err
	}
	n.Pending = nil
	v.m.applier.wait(rev)
	if c.Session != nil {
		c.Session.Wrote(c.Proc, p.ID, n.Head.Sum)
	}
	return n, nil
}

// lostCreate refuses the first commit of a file whose name somebody else took meanwhile, and keeps its bytes.
func (v *View) lostCreate(ctx context.Context, c Caller, r SaveRequest, n Node, d policy.Decision) error {
	l := LostWrite{Memory: n.Inode.ID, Path: n.Path, Op: r.Op, Mine: r.Content}
	if r.Content == nil {
		l.Mine = r.Append
	}
	if there, err := v.Stat(ctx, c, n.Path); err == nil && there.Inode.Type == store.TypeFile {
		l.Memory = there.Inode.ID
	}
	return v.lost(ctx, c, l, d)
}

func (v *View) createPending(ctx context.Context, c Caller, r SaveRequest) (Node, policy.Decision, kv.Rev, error) {
	p := r.Pending
	n, err := v.pendingNode(ctx, p)
	if err != nil {
		return n, policy.Decision{}, 0, err
	}
	d, err := v.decideContent(ctx, c, r, n, policy.ActionCreate, false)
	if err != nil {
		return n, d, 0, err
	}
	if r.Content == nil {
		r.Content = r.Append
	}
	p.mu.Lock()
	f := store.NewFile{Place: p.place, ID: p.ID, Revive: p.revives, Ino: p.Ino, Mode: p.mode, Mtime: p.mtime, Btime: p.Created, Content: r.Content, Xattrs: p.xattrs}
	p.mu.Unlock()
	if f.Mtime.IsZero() {
		f.Mtime = r.Mtime
	}
	var rev kv.Rev
	err = v.change(ctx, c, d, baseLabel(p.revives), false, func(ctx context.Context, ch store.Change) error {
		var err error
		ch.Kind = r.Kind
		n.Head, rev, err = v.m.store.CreateFile(ctx, f, ch)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrExist) {
		err = v.commitFailed(c, r.Op, n, d, err)
	}
	n.Inode.Gone = false
	return n, d, rev, err
}

// pendingNode is a pending file with the path it will have now.
func (v *View) pendingNode(ctx context.Context, p *Pending) (Node, error) {
	in := p.Inode()
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Node{}, wrap(err, in.Name)
	}
	defer snap.Close()
	dir, err := snap.dir(in.Parent)
	if err != nil {
		return Node{}, wrap(err, in.Name)
	}
	return Node{Inode: in, Path: join(dir, in.Name), Pending: p}, nil
}

// decideContent is the second decision of a write, on what would be committed.
func (v *View) decideContent(ctx context.Context, c Caller, r SaveRequest, n Node, a policy.Action, baseNone bool) (policy.Decision, error) {
	size := r.size(n.Head.Size)
	if size > v.m.settings.Limits.MaxFile {
		return policy.Decision{}, fmt.Errorf("%s: %d bytes %w of %d", n.Path, size, ErrTooLarge, v.m.settings.Limits.MaxFile)
	}
	q := query{op: r.Op, action: a, path: n.Path, eph: n.Inode.Owner != "", commit: &policy.Request{Size: size, BaseNone: baseNone}}
	if v.m.policy.WantsContent() && !q.eph {
		var err error
		if q.commit.Content, err = v.contentFor(ctx, r, n.Head); err != nil {
			return policy.Decision{}, err
		}
	}
	return v.require(ctx, c, q)
}

// contentFor is the beginning of what the file would hold; for an append its whole, as far as it fits.
func (v *View) contentFor(ctx context.Context, r SaveRequest, head store.Head) ([]byte, error) {
	if r.Content != nil {
		return readSome(r.Content, 0)
	}
	if head.Size == 0 {
		return readSome(r.Append, 0)
	}
	old, err := v.Content(ctx, head)
	if err != nil {
		return nil, err
	}
	from := max(0, head.Size+r.Append.Size()-maxPolicyContent)
	if from >= head.Size {
		return readSome(r.Append, from-head.Size)
	}
	b, err := readSome(old, from)
	if err != nil {
		return nil, err
	}
	added, err := readSome(r.Append, 0)
	return append(b, added...), err
}

func readSome(c store.Bytes, from int64) ([]byte, error) {
	b := make([]byte, min(c.Size()-from, maxPolicyContent))
	n, err := c.ReadAt(b, from)
	if errors.Is(err, io.EOF) && n == len(b) {
		err = nil
	}
	return b[:n], wrap(err, "content")
}

// change runs one change of the store with its record: nothing is done if the log cannot take the record.
func (v *View) change(ctx context.Context, c Caller, d policy.Decision, base string, eph bool,
	do func(context.Context, store.Change) error) error {
	ch := store.Change{Op: v.m.store.NewID(), Time: time.Now()}
	if !eph {
		if err := v.m.audit.Healthy(); err != nil {
			return fmt.Errorf("%w: %w", ErrNoRecord, err)
		}
		if len(c.Claimed.Reason) > v.m.settings.Limits.MaxReason {
			return fmt.Errorf("a reason of %d bytes %w of %d", len(c.Claimed.Reason), ErrTooLarge, v.m.settings.Limits.MaxReason)
		}
		ch.Prov = v.provenance(c, d, base)
		ch.Record = func(what store.Changed) ([]byte, error) { return v.intent(c, d, ch, what) }
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := do(ctx, ch); err != nil {
		return err
	}
	v.m.audit.Wake()
	return nil
}

func (v *View) provenance(c Caller, d policy.Decision, base string) store.Provenance {
	p := store.Provenance{Principal: v.principal.ID, PrincipalKind: v.principal.Kind, OnBehalfOf: v.principal.OnBehalfOf,
		Conversation: c.Claimed.Conversation, Reason: c.Claimed.Reason, Base: base, Approval: "direct",
		PolicyRevision: d.Revision, DecisionID: d.ID, Process: c.Proc.Name}
	if c.Session != nil {
		p.Session = c.Session.Name
	}
	return p
}

// intent renders the audit record that is committed with the change.
func (v *View) intent(c Caller, d policy.Decision, ch store.Change, what store.Changed) ([]byte, error) {
	r := v.record(c, "change", string(what.Kind), what.Path, d)
	r.Time, r.OpID, r.Base, r.Approval = ch.Time, ch.Op.String(), ch.Prov.Base, ch.Prov.Approval
	if what.From != "" {
		r.From = audit.Quote(what.From)
	}
	r.Memory = what.ID.String()
	if what.Attr != "" {
		r.Cause = what.Attr
	}
	if ver := what.Version; ver != nil {
		r.Version, r.Size, r.Commit = ver.Number, ver.Size, audit.Commitment(ver.Salt, ver.Sum)
	}
	if rep := what.Replaced; rep != nil {
		r.Replaced = &audit.Replaced{Memory: rep.Memory.String(), Version: rep.Number}
	}
	return audit.Marshal(r)
}

// commitFailed turns the failure of a change into this package's errors; a lost race is recorded as a refusal.
func (v *View) commitFailed(c Caller, op string, n Node, d policy.Decision, err error) error {
	if errors.Is(err, store.ErrStale) {
		return v.stale(c, op, n, d, "")
	}
	if errors.Is(err, ErrNoRecord) || errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%s: %w", n.Path, err)
	}
	return wrap(err, n.Path)
}

func baseLabel(known bool) string {
	if known {
		return "current"
	}
	return "none"
}

// ByteContent is content in memory.
type ByteContent []byte

// ReadAt is io.ReaderAt.
func (b ByteContent) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size is the length in bytes.
func (b ByteContent) Size() int64 { return int64(len(b)) }
