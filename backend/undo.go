package backend

import (
	"context"
	"errors"
	"fmt"

	"memoryfs/backend/store"
	"memoryfs/backend/text"
	"memoryfs/policy"
)

// BlamedLine is a line of a memory with the version that brought it.
type BlamedLine struct {
	Text    string // with its newline
	Version store.Version
}

// Blame tells for each line of a version (number 0: the newest) which version brought it. ErrInvalid for what is no text.
func (v *View) Blame(ctx context.Context, c Caller, path string, number uint64) ([]BlamedLine, error) {
	snap, p, err := v.history(ctx, c, "blame", path)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	ver, err := v.versionWithBytes(ctx, c, snap, p, number)
	if err != nil {
		return nil, err
	}
	lines, err := v.lines(ctx, ver, p)
	if err != nil {
		return nil, err
	}
	out := make([]BlamedLine, len(lines))
	open := make([]int, len(lines)) // of each line of lines, its index in out; -1: blamed
	for i, l := range lines {
		out[i].Text, open[i] = l, i
	}
	for left := len(lines); left > 0; {
		before, err := v.before(snap, p, ver)
		if err != nil {
			return nil, err
		}
		var old []string
		if before.Number > 0 {
			if old, err = v.lines(ctx, before, p); err != nil {
				return nil, err
			}
		}
		next := make([]int, len(old))
		for i := range next {
			next[i] = -1
		}
		kept := func(from, newFrom, n int) { // the same in both
			for i := range n {
				next[from+i], open[newFrom+i] = open[newFrom+i], -1
			}
		}
		from, newFrom := 0, 0
		for _, e := range text.Diff(old, lines) {
			kept(from, newFrom, e.From-from)
			from, newFrom = e.To, e.NewTo
		}
		kept(from, newFrom, len(old)-from)
		shown := v.withhold(ctx, c, ver)
		for _, i := range open {
			if i >= 0 {
				out[i].Version = shown
				left--
			}
		}
		ver, lines, open = before, old, next
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// versionWithBytes is one that the caller may read; 0: the newest that has bytes.
func (v *View) versionWithBytes(ctx context.Context, c Caller, snap snapshot, p Past, number uint64) (store.Version, error) {
	var ver store.Version
	var err error
	if number > 0 {
		ver, err = snap.Version(p.ID, number)
	} else if ver.Number, err = snap.LastVersion(p.ID); err == nil {
		ver.Number++
		ver, err = v.before(snap, p, ver)
	}
	if err != nil {
		return ver, wrap(err, p.Path)
	}
	switch ver = v.withhold(ctx, c, ver); {
	case ver.Kind == KindWithheld:
		return ver, fmt.Errorf("version %d of %s was made where you may not read: %w", ver.Number, p.Path, ErrDenied)
	case ver.Number == 0 || !HasBytes(ver):
		return ver, fmt.Errorf("version %d of %s has no bytes: %w", ver.Number, p.Path, ErrInvalid)
	}
	return ver, nil
}

// before is the newest version with bytes that is older than ver; the zero Version if there is none.
func (v *View) before(snap snapshot, p Past, ver store.Version) (store.Version, error) {
	for n := ver.Number - 1; n >= 1; n-- {
		old, err := snap.Version(p.ID, n)
		if err != nil {
			return old, wrap(err, p.Path)
		}
		if HasBytes(old) {
			return old, nil
		}
	}
	return store.Version{}, nil
}

// text reads a version that is to be compared or merged line by line.
func (v *View) text(ctx context.Context, ver store.Version, p Past) (string, error) {
	if ver.Size > maxMerge {
		return "", fmt.Errorf("version %d of %s: %d bytes are too many to compare line by line: %w", ver.Number, p.Path, ver.Size, ErrInvalid)
	}
	b, err := v.bytes(ctx, ver.Sum, ver.Size)
	if err != nil {
		return "", err
	}
	if text.Binary(b) {
		return "", fmt.Errorf("version %d of %s is no text: %w", ver.Number, p.Path, ErrInvalid)
	}
	return string(b), nil
}

func (v *View) lines(ctx context.Context, ver store.Version, p Past) ([]string, error) {
	s, err := v.text(ctx, ver, p)
	return text.Lines(s), err
}

// Difference is what changed between two versions of a memory.
type Difference struct {
	From, To       store.Version // From is the zero Version if To is the first
	Unified        string        // as diff -u; "" if nothing
	Words          string        // the new text with [-removed-] and {+added+} words; "" if nothing
	Added, Removed int           // lines
}

// Diff compares two versions: to 0 is the newest, from 0 the one before to.
func (v *View) Diff(ctx context.Context, c Caller, path string, from, to uint64) (Difference, error) {
	snap, p, err := v.history(ctx, c, "diff", path)
	if err != nil {
		return Difference{}, err
	}
	defer snap.Close()
	var d Difference
	if d.To, err = v.versionWithBytes(ctx, c, snap, p, to); err != nil {
		return d, err
	}
	if from == 0 {
		if d.From, err = v.before(snap, p, d.To); err != nil {
			return d, err
		}
		from = d.From.Number
	}
	if from > 0 {
		if d.From, err = v.versionWithBytes(ctx, c, snap, p, from); err != nil {
			return d, err
		}
	}
	var before, after string
	if d.From.Number > 0 {
		if before, err = v.text(ctx, d.From, p); err != nil {
			return d, err
		}
	}
	if after, err = v.text(ctx, d.To, p); err != nil {
		return d, err
	}
	d.compare(versionName(d.From, p), versionName(d.To, p), before, after)
	return d, nil
}

func versionName(ver store.Version, p Past) string {
	if ver.Number == 0 {
		return "/dev/null"
	}
	return fmt.Sprintf("%s@%d", p.Path, ver.Number)
}

func (d *Difference) compare(oldName, newName, before, after string) {
	d.Unified = text.Unified(oldName, newName, before, after)
	d.Words = text.Words(before, after)
	for _, e := range text.Diff(text.Lines(before), text.Lines(after)) {
		d.Added += e.NewTo - e.NewFrom
		d.Removed += e.To - e.From
	}
}

// Undone is what Revert or Restore made, or with a dry run would make.
type Undone struct {
	Node    Node // of the dry run: as it is
	Number  uint64
	Unified string // against what is there now
}

// Revert takes one version's change back, on top of the head: what later versions changed stays. ErrInvalid, with the
// places, if they changed the same lines, if it is the first version, or if it is no text; nothing is changed then.
func (v *View) Revert(ctx context.Context, c Caller, path string, number uint64, dry bool) (Undone, error) {
	snap, p, err := v.history(ctx, c, "revert", path)
	if err != nil {
		return Undone{}, err
	}
	defer snap.Close()
	if p.Gone {
		return Undone{}, fmt.Errorf("%s is deleted: restore it first: %w", p.Path, ErrInvalid)
	}
	bad, err := v.versionWithBytes(ctx, c, snap, p, number)
	if err != nil {
		return Undone{}, err
	}
	good, err := v.before(snap, p, bad)
	if err != nil {
		return Undone{}, err
	}
	if good.Number == 0 {
		return Undone{}, fmt.Errorf("version %d of %s is the first, there is nothing before it (rm removes the memory): %w", bad.Number, p.Path, ErrInvalid)
	}
	if good, err = v.versionWithBytes(ctx, c, snap, p, good.Number); err != nil {
		return Undone{}, err
	}
	head, err := snap.Head(p.ID)
	if err != nil {
		return Undone{}, wrap(err, p.Path)
	}
	newest, err := v.versionWithBytes(ctx, c, snap, p, head.Version)
	if err != nil {
		return Undone{}, err
	}
	var texts [3]string
	for i, ver := range []store.Version{bad, newest, good} {
		if texts[i], err = v.text(ctx, ver, p); err != nil {
			return Undone{}, err
		}
	}
	labels := text.Labels{Mine: fmt.Sprintf("version %d, as it is", head.Version), Theirs: fmt.Sprintf("version %d, before what is reverted", good.Number)}
	merged, clashes := text.Merge(texts[0], texts[1], texts[2], labels)
	if clashes > 0 {
		return Undone{}, fmt.Errorf("revert of version %d of %s: later versions changed the same lines at %d places, edit them by hand:\n%s%w",
			bad.Number, p.Path, clashes, text.Unified("as it is", "reverted", texts[1], merged), ErrInvalid)
	}
	return v.undo(ctx, c, p, head, []byte(merged), store.KindRevert, bad.Number, dry)
}

// undo saves content on top of head; number is the version that is taken back or brought back.
func (v *View) undo(ctx context.Context, c Caller, p Past, head store.Head, content []byte, kind store.Kind, number uint64, dry bool) (Undone, error) {
	u := Undone{Number: head.Version + 1}
	now, err := v.bytes(ctx, head.Sum, head.Size)
	if err != nil {
		return u, err
	}
	if !text.Binary(now) && !text.Binary(content) && len(now) <= maxMerge && len(content) <= maxMerge {
		u.Unified = text.Unified(p.Path, p.Path, string(now), string(content))
	}
	n, err := v.Open(ctx, c, p.ID, OpenFlags{Write: true, Append: true}) // the caller knows what it replaces
	if err != nil {
		return u, err
	}
	if u.Node = n; dry {
		return u, nil
	}
	if c.Session != nil {
		c.Session.Observe(c.Proc, p.ID, head.Sum)
	}
	c.because(kind, number)
	u.Node, err = v.Save(ctx, c, SaveRequest{ID: p.ID, Base: head.Sum, Content: ByteContent(content), Op: string(kind), Kind: kind, Unkept: true})
	u.Number = u.Node.Head.Version
	return u, err
}

// because gives a reason, if the caller gave none: after the policy, which may oblige the caller to one, was asked.
func (c *Caller) because(kind store.Kind, number uint64) {
	if c.Claimed.Reason == "" {
		c.Claimed.Reason = fmt.Sprintf("%s of version %d", kind, number)
	}
}

// Restore brings the bytes of a version back as the newest version, or a deleted memory at its last place (number 0: its
// last bytes). ErrExist if something else has its name.
func (v *View) Restore(ctx context.Context, c Caller, path string, number uint64, dry bool) (Undone, error) {
	snap, p, err := v.history(ctx, c, "restore", path)
	if err != nil {
		return Undone{}, err
	}
	defer snap.Close()
	if number == 0 && !p.Gone {
		return Undone{}, fmt.Errorf("%s is there: say which version to restore: %w", p.Path, ErrInvalid)
	}
	ver, err := v.versionWithBytes(ctx, c, snap, p, number)
	if err != nil {
		return Undone{}, err
	}
	content, err := v.bytes(ctx, ver.Sum, ver.Size)
	if err != nil {
		return Undone{}, err
	}
	if p.Gone {
		return v.revive(ctx, c, p, ver, content, dry)
	}
	head, err := snap.Head(p.ID)
	if err != nil {
		return Undone{}, wrap(err, p.Path)
	}
	return v.undo(ctx, c, p, head, content, store.KindRestore, ver.Number, dry)
}

// revive gives a deleted memory its last name again, with the directories above it.
func (v *View) revive(ctx context.Context, c Caller, p Past, ver store.Version, content []byte, dry bool) (Undone, error) {
	u := Undone{Node: Node{Path: p.Path}}
	if !text.Binary(content) && len(content) <= maxMerge {
		u.Unified = text.Unified("/dev/null", p.Path, "", string(content))
	}
	if _, err := v.require(ctx, c, query{op: "restore", action: policy.ActionCreate, path: p.Path}); err != nil || dry {
		return u, err
	}
	c.because(store.KindRestore, ver.Number)
	if err := v.MkdirAll(ctx, c, parentOf(p.Path)); err != nil {
		return u, err
	}
	dir, name, err := v.parent(ctx, c, p.Path)
	if err != nil {
		return u, err
	}
	t, err := v.target(ctx, c, dir.Inode.ID, name)
	if err != nil {
		return u, err
	}
	if t.there {
		return u, fmt.Errorf("%s: %w: move it away first", t.path, ErrExist)
	}
	ino, err := v.m.store.NewIno(ctx)
	if err != nil {
		return u, wrap(err, t.path)
	}
	pend := newPending(p.ID, ino, c.Session, t.place, ver.Mode)
	pend.revives = true
	if v.m.reserve(pend, c.Session, true) == nil {
		return u, fmt.Errorf("%s: %w: somebody is making it", t.path, ErrExist)
	}
	u.Node, err = v.Save(ctx, c, SaveRequest{Pending: pend, Content: ByteContent(content), Op: "restore", Kind: store.KindRestore, Unkept: true})
	if err != nil {
		v.m.GiveUp(pend)
		if errors.Is(err, ErrStale) { // somebody made the name, or restored it, meanwhile
			err = fmt.Errorf("%s: %w", t.path, ErrExist)
		}
	}
	u.Number = u.Node.Head.Version
	return u, err
}
