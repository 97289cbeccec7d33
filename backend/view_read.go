package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"memoryfs/backend/store"
	"memoryfs/policy"
)

// place says in which space of a directory a file of this name lives for this principal.
func (v *View) place(parent store.ID, name string) store.Place {
	if v.m.settings.IsEphemeral(name) {
		return store.Place{Parent: parent, Name: name, Owner: v.principal.ID}
	}
	return store.Place{Parent: parent, Name: name}
}

// child finds a name: for an ephemeral name the principal's own file first, then the memory tree (directories are
// never ephemeral, and the patterns may have changed since).
func (v *View) child(snap snapshot, parent store.ID, name string) (store.Dentry, error) {
	p := v.place(parent, name)
	d, err := snap.Child(p)
	if p.Owner != "" && errors.Is(err, store.ErrNotExist) {
		p.Owner = ""
		return snap.Child(p)
	}
	return d, err
}

// node loads an inode with its head.
func node(snap snapshot, id store.ID) (Node, error) {
	in, err := snap.Inode(id)
	if err != nil {
		return Node{}, err
	}
	n := Node{Inode: in}
	if in.Gone {
		return n, fmt.Errorf("%s: %w", id, store.ErrNotExist)
	}
	if in.Type == store.TypeFile {
		if n.Head, err = snap.Head(id); err != nil {
			return n, err
		}
	}
	n.Path, err = snap.path(in)
	return n, err
}

// Lookup finds a name in a directory. ErrNotExist if it is not there or may not be known.
func (v *View) Lookup(ctx context.Context, c Caller, parent store.ID, name string) (Node, error) {
	if err := checkName(name); err != nil {
		return Node{}, err
	}
	pend := v.pendingNamed(c, parent, name)
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Node{}, wrap(err, name)
	}
	defer snap.Close()
	return v.lookup(ctx, c, snap, pend, parent, name)
}

// pendingNamed must be asked before the snapshot is taken: a file that is committed in between is in one of the two then.
func (v *View) pendingNamed(c Caller, parent store.ID, name string) *Pending {
	if c.Session == nil {
		return nil
	}
	return v.m.pendingAt(v.place(parent, name), c.Session)
}

func (v *View) lookup(ctx context.Context, c Caller, snap snapshot, pend *Pending, parent store.ID, name string) (Node, error) {
	dir, err := snap.dir(parent)
	if err != nil {
		return Node{}, wrap(err, name)
	}
	path := join(dir, name)
	p := v.place(parent, name)
	if c.Session != nil {
		if pend != nil && !pend.Inode().Gone {
			return Node{Inode: pend.Inode(), Path: path, Pending: pend}, nil
		}
		if v.m.anyBackups() && v.m.hidden(p, c.Session) {
			return Node{}, fmt.Errorf("%s: %w", path, ErrNotExist)
		}
	}
	d, err := v.child(snap, parent, name)
	if errors.Is(err, store.ErrNotExist) && pend != nil {
		return v.Lookup(ctx, c, parent, name) // committed, or removed, since the snapshot
	}
	if err != nil {
		return Node{}, wrap(err, path)
	}
	n, err := node(snap, d.ID)
	if err != nil {
		return Node{}, wrap(err, path)
	}
	if !v.mayKnow(ctx, c, n.Path, n.Inode.Type == store.TypeDir, n.Inode.Owner != "") {
		return Node{}, fmt.Errorf("%s: %w", path, ErrNotExist)
	}
	return n, nil
}

// Attr looks at an inode that the caller has a handle or a kernel inode of. ErrNotExist if it is gone or may not be
// known any more.
func (v *View) Attr(ctx context.Context, c Caller, id store.ID) (Node, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Node{}, wrap(err, id.String())
	}
	defer snap.Close()
	return v.attr(ctx, c, snap, id)
}

func (v *View) attr(ctx context.Context, c Caller, snap snapshot, id store.ID) (Node, error) {
	n, err := node(snap, id)
	if err != nil {
		return n, wrap(err, n.Inode.Name)
	}
	if n.Inode.Owner != "" && n.Inode.Owner != v.principal.ID ||
		!v.mayKnow(ctx, c, n.Path, n.Inode.Type == store.TypeDir, n.Inode.Owner != "") {
		return Node{}, fmt.Errorf("%s: %w", n.Path, ErrNotExist)
	}
	return n, nil
}

const listPage = 1024

// ReadDir lists the names in a directory that the caller may know, its own ephemeral and pending files among them, by
// name.
func (v *View) ReadDir(ctx context.Context, c Caller, dir store.ID) ([]store.Dentry, error) {
	var pending []*Pending
	if c.Session != nil { // before the snapshot, see pendingNamed
		pending = v.m.pendingIn(dir, c.Session)
	}
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return nil, wrap(err, dir.String())
	}
	defer snap.Close()
	n, err := v.attr(ctx, c, snap, dir)
	if err != nil {
		return nil, err
	}
	if n.Inode.Type != store.TypeDir {
		return nil, fmt.Errorf("%s: %w", n.Path, ErrNotDir)
	}
	var all []store.Dentry
	for _, owner := range []string{"", v.principal.ID} {
		if all, err = v.readSpace(ctx, c, snap, n, owner, all); err != nil {
			return nil, err
		}
	}
	for _, p := range pending {
		if in := p.Inode(); !in.Gone || p.committed() {
			all = append(all, store.Dentry{Name: in.Name, ID: p.ID, Type: store.TypeFile, Ino: p.Ino})
		}
	}
	slices.SortStableFunc(all, func(a, b store.Dentry) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b store.Dentry) bool { return a.Name == b.Name }), nil
}

// readSpace appends the names of one owner's space.
func (v *View) readSpace(ctx context.Context, c Caller, snap snapshot, dir Node, owner string, all []store.Dentry) ([]store.Dentry, error) {
	after := ""
	for {
		page, err := snap.Children(dir.Inode.ID, owner, after, listPage)
		if err != nil {
			return nil, wrap(err, dir.Path)
		}
		for _, d := range page {
			if !v.mayKnow(ctx, c, join(dir.Path, d.Name), d.Type == store.TypeDir, owner != "") {
				continue
			}
			if owner == "" && c.Session != nil && v.m.anyBackups() &&
				v.m.hidden(store.Place{Parent: dir.Inode.ID, Name: d.Name}, c.Session) {
				continue
			}
			all = append(all, d)
		}
		if len(page) < listPage {
			return all, ctx.Err()
		}
		after = page[len(page)-1].Name
	}
}

// OpenFlags says how a file is opened.
type OpenFlags struct {
	Read, Write, Append, Trunc bool
}

// Open decides on an open of a file, and whether it is stale already. A reader observes the head; a handle that also
// writes observes only when it really reads (Observe).
func (v *View) Open(ctx context.Context, c Caller, id store.ID, f OpenFlags) (Node, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Node{}, wrap(err, id.String())
	}
	defer snap.Close()
	n, err := v.attr(ctx, c, snap, id)
	if err != nil {
		return n, err
	}
	if n.Inode.Type == store.TypeDir {
		return n, fmt.Errorf("%s: %w", n.Path, ErrIsDir)
	}
	eph := n.Inode.Owner != ""
	if f.Read {
		if _, err := v.require(ctx, c, query{op: "open", action: policy.ActionRead, path: n.Path, eph: eph}); err != nil {
			return n, err
		}
	}
	if f.Write {
		d, err := v.require(ctx, c, query{op: "open", action: policy.ActionWrite, path: n.Path, eph: eph})
		if err != nil {
			return n, err
		}
		if !eph && !f.Append && (!f.Read || f.Trunc) {
			if err := v.checkStale(c, "open", n, d); err != nil {
				return n, err
			}
		}
	} else if f.Read && c.Session != nil && !eph {
		c.Session.Observe(c.Proc, id, n.Head.Sum)
	}
	return n, nil
}

// Still asks again whether an open handle may do what it was opened for, after the policy changed.
func (v *View) Still(ctx context.Context, c Caller, n Node, f OpenFlags) error {
	eph := n.Inode.Owner != ""
	if f.Read {
		if _, err := v.require(ctx, c, query{op: "read", action: policy.ActionRead, path: n.Path, eph: eph}); err != nil {
			return err
		}
	}
	if f.Write {
		if _, err := v.require(ctx, c, query{op: "write", action: policy.ActionWrite, path: n.Path, eph: eph}); err != nil {
			return err
		}
	}
	return nil
}

// checkStale refuses with ErrStale if the caller has observed another content than the head.
func (v *View) checkStale(c Caller, op string, n Node, d policy.Decision) error {
	if c.Session == nil {
		return nil
	}
	if known, current := c.Session.Knows(c.Proc, n.Inode.ID, n.Head.Sum); known && !current {
		return v.stale(c, op, n, d, "")
	}
	return nil
}

// stale records and returns the refusal of a stale write; kept names the conflict that has its bytes, if any.
func (v *View) stale(c Caller, op string, n Node, d policy.Decision, kept string) error {
	d.Cause = fmt.Sprintf("version %d is newer than what this session last read", n.Head.Version)
	hint := "read it again (cat), make the change on what it says now, and save again; memoryfs log " + n.Path + " shows who changed it"
	if kept != "" {
		hint = "your bytes are kept: read .memory/conflicts/" + kept + "/README; or " + hint
	}
	return v.refuse(c, query{op: op, path: n.Path, kept: kept}, d, ErrStale, hint)
}

// Stale is for a front end that finds a handle stale; kept is what KeepLost gave for its bytes, "" if there are none.
func (v *View) Stale(c Caller, op string, n Node, kept string) error {
	return v.stale(c, op, n, policy.Decision{Revision: v.m.policy.Revision()}, kept)
}

// Content opens the bytes of a head that this view has given out.
func (v *View) Content(ctx context.Context, h store.Head) (*store.Content, error) {
	c, err := v.m.store.Content(ctx, h.Sum, h.Size)
	return c, wrap(err, "content")
}

// Readlink returns a symlink's target.
func (v *View) Readlink(ctx context.Context, c Caller, id store.ID) (string, error) {
	n, err := v.Attr(ctx, c, id)
	if err != nil {
		return "", err
	}
	if n.Inode.Type != store.TypeSymlink {
		return "", fmt.Errorf("%s: %w", n.Path, ErrInvalid)
	}
	return n.Inode.Target, nil
}

// Writable tells what user.memory.write shows: yes, propose or no.
func (v *View) Writable(ctx context.Context, c Caller, n Node) string {
	switch v.decide(ctx, c, query{action: policy.ActionWrite, path: n.Path, dir: n.Inode.Type == store.TypeDir, eph: n.Inode.Owner != ""}).Effect {
	case policy.Allow:
		return "yes"
	case policy.Propose:
		return "propose"
	default:
		return "no"
	}
}

// Readable tells whether the caller may read n; it records nothing.
func (v *View) Readable(ctx context.Context, c Caller, n Node) bool {
	return v.decide(ctx, c, query{action: policy.ActionRead, path: n.Path, eph: n.Inode.Owner != ""}).Effect == policy.Allow
}

// LastVersion is the provenance of a file's head. ErrNotExist for an ephemeral.
func (v *View) LastVersion(ctx context.Context, c Caller, n Node) (store.Version, error) {
	if _, err := v.require(ctx, c, query{op: "getxattr", action: policy.ActionRead, path: n.Path, eph: n.Inode.Owner != ""}); err != nil {
		return store.Version{}, err
	}
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return store.Version{}, wrap(err, n.Path)
	}
	defer snap.Close()
	ver, err := snap.Version(n.Inode.ID, n.Head.Version)
	return ver, wrap(err, n.Path)
}

// Current looks at the head of a file that the caller holds open: no decision, for that was made at Open and is made
// again by Still when the policy changes. ErrNotExist when it was removed.
func (v *View) Current(ctx context.Context, id store.ID) (store.Inode, store.Head, error) {
	snap, err := v.m.store.Snapshot(ctx)
	if err != nil {
		return store.Inode{}, store.Head{}, wrap(err, id.String())
	}
	defer snap.Close()
	head, err := snap.Head(id)
	if err != nil {
		return store.Inode{}, head, wrap(err, id.String())
	}
	in, err := snap.Inode(id)
	return in, head, wrap(err, id.String())
}

// VersionContent opens one of a memory's last versions by its hash, for a caller who may read the memory today; nil if it
// is not among them or may not be read.
func (v *View) VersionContent(ctx context.Context, c Caller, id store.ID, sum store.Sum) (*store.Content, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return nil, wrap(err, id.String())
	}
	defer snap.Close()
	n, err := v.attr(ctx, c, snap, id)
	if err != nil {
		return nil, err
	}
	if !v.Readable(ctx, c, n) {
		return nil, nil
	}
	versions, err := snap.Versions(id, 0, recentVersions)
	if err != nil {
		return nil, wrap(err, n.Path)
	}
	for _, ver := range versions {
		if ver.Sum == sum && ver.Kind != store.KindDelete {
			return v.Content(ctx, store.Head{Sum: ver.Sum, Size: ver.Size})
		}
	}
	return nil, nil
}
