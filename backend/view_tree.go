package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"memoryfs/backend/kv"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// target resolves a name that is to be made, changed or removed: its place, its path, and what is there (if anything).
type target struct {
	place store.Place
	path  string
	node  Node // valid if there
	there bool
}

func (v *View) target(ctx context.Context, c Caller, parent store.ID, name string) (target, error) {
	if err := checkName(name); err != nil {
		return target{}, err
	}
	pend := v.pendingNamed(c, parent, name)
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return target{}, wrap(err, name)
	}
	defer snap.Close()
	dir, err := v.attr(ctx, c, snap, parent)
	if err != nil {
		return target{}, err
	}
	t := target{place: v.place(parent, name), path: join(dir.Path, name)}
	t.node, err = v.lookup(ctx, c, snap, pend, parent, name)
	switch {
	case err == nil:
		t.there = true
		t.place.Owner = t.node.Inode.Owner
		return t, nil
	case errors.Is(err, ErrNotExist):
		return t, nil
	default:
		return t, err
	}
}

// Create makes a file, or returns the one that is there (ErrExist if excl). An ephemeral one is in the store at once;
// a memory is Pending until its first Save. made tells whether this call made it.
func (v *View) Create(ctx context.Context, c Caller, parent store.ID, name string, mode uint32, excl bool) (n Node, made bool, err error) {
	t, err := v.target(ctx, c, parent, name)
	if err != nil {
		return Node{}, false, err
	}
	if t.there {
		if excl {
			return t.node, false, fmt.Errorf("%s: %w", t.path, ErrExist)
		}
		return t.node, false, nil
	}
	eph := t.place.Owner != ""
	d, err := v.require(ctx, c, query{op: "create", action: policy.ActionCreate, path: t.path, eph: eph})
	if err != nil {
		return Node{}, false, err
	}
	if n, ok, err := v.afterBackup(ctx, c, t); ok || err != nil {
		return n, false, err
	}
	ino, err := v.m.store.NewIno(ctx)
	if err != nil {
		return Node{}, false, wrap(err, t.path)
	}
	if eph {
		n, err := v.createEphemeral(ctx, c, d, t, ino, mode)
		return n, true, err
	}
	p := newPending(v.m.store.NewID(), ino, c.Session, t.place, mode)
	if id, ok := v.m.continues(t.place, c); ok {
		p.ID, p.revives = id, true
	}
	got := v.m.reserve(p, c.Session, excl)
	if got == nil {
		return Node{}, false, fmt.Errorf("%s: %w", t.path, ErrExist)
	}
	if got == p {
		// Only now: one that was pending when we looked first may have been committed before we reserved the name.
		if err := v.notThere(ctx, t); err != nil {
			v.m.GiveUp(p)
			if excl || !errors.Is(err, ErrExist) {
				return Node{}, false, err
			}
			n, lookErr := v.Lookup(ctx, c, parent, name)
			if errors.Is(lookErr, ErrNotExist) {
				return Node{}, false, err // it is there, and not for the caller to know
			}
			return n, false, lookErr
		}
	}
	return Node{Inode: got.Inode(), Path: t.path, Pending: got}, got == p, nil
}

// notThere is ErrExist if the store has a memory of that name: made a moment ago, or one that this caller may not know of
// (the rights to list and to create differ only in odd policies).
func (v *View) notThere(ctx context.Context, t target) error {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return wrap(err, t.path)
	}
	defer snap.Close()
	_, err = snap.Child(t.place)
	switch {
	case errors.Is(err, store.ErrNotExist):
		return nil
	case err != nil:
		return wrap(err, t.path)
	default:
		return fmt.Errorf("%s: %w", t.path, ErrExist)
	}
}

// afterBackup continues an editor's save: the memory that it renamed to its backup name gets its next version.
func (v *View) afterBackup(ctx context.Context, c Caller, t target) (Node, bool, error) {
	if c.Session == nil || !v.m.anyBackups() || !v.m.hidden(t.place, c.Session) {
		return Node{}, false, nil
	}
	v.m.unhide(t.place, nil)
	n, err := v.Lookup(ctx, c, t.place.Parent, t.place.Name)
	if errors.Is(err, ErrNotExist) {
		return Node{}, false, nil // somebody removed it meanwhile
	}
	n.Continues = true
	return n, err == nil, err
}

func (v *View) createEphemeral(ctx context.Context, c Caller, d policy.Decision, t target, ino uint64, mode uint32) (Node, error) {
	f := store.NewFile{Place: t.place, ID: v.m.store.NewID(), Ino: ino, Mode: mode}
	var rev kv.Rev
	err := v.change(ctx, c, d, "none", true, func(ctx context.Context, ch store.Change) error {
		var err error
		_, rev, err = v.m.store.CreateFile(ctx, f, ch)
		return err
	})
	if err != nil {
		return Node{}, wrap(err, t.path)
	}
	v.m.applier.wait(rev)
	return v.Attr(ctx, c, f.ID)
}

// Mkdir makes a directory; never ephemeral.
func (v *View) Mkdir(ctx context.Context, c Caller, parent store.ID, name string, mode uint32) (Node, error) {
	t, d, err := v.newName(ctx, c, parent, name, "mkdir", true)
	if err != nil {
		return Node{}, err
	}
	t.place.Owner = ""
	ino, err := v.m.store.NewIno(ctx)
	if err != nil {
		return Node{}, wrap(err, t.path)
	}
	n := Node{Path: t.path}
	var rev kv.Rev
	err = v.change(ctx, c, d, "none", false, func(ctx context.Context, ch store.Change) error {
		var err error
		n.Inode, rev, err = v.m.store.Mkdir(ctx, t.place, ino, mode, ch)
		return err
	})
	if err != nil {
		return Node{}, v.commitFailed(c, "mkdir", n, d, err)
	}
	v.m.applier.wait(rev)
	return n, nil
}

// Symlink makes a symbolic link. One that leaves the mount is ErrPermission: an absolute target, or one with more ".."
// than the link is deep.
func (v *View) Symlink(ctx context.Context, c Caller, parent store.ID, name, linkTarget string) (Node, error) {
	t, d, err := v.newName(ctx, c, parent, name, "symlink", false)
	if err != nil {
		return Node{}, err
	}
	if leaves(t.path, linkTarget) {
		return Node{}, fmt.Errorf("%s: a symbolic link out of the mount %w", t.path, ErrPermission)
	}
	ino, err := v.m.store.NewIno(ctx)
	if err != nil {
		return Node{}, wrap(err, t.path)
	}
	n := Node{Path: t.path}
	var rev kv.Rev
	err = v.change(ctx, c, d, "none", t.place.Owner != "", func(ctx context.Context, ch store.Change) error {
		var err error
		n.Inode, rev, err = v.m.store.Symlink(ctx, t.place, ino, linkTarget, ch)
		return err
	})
	if err != nil {
		return Node{}, v.commitFailed(c, "symlink", n, d, err)
	}
	v.m.applier.wait(rev)
	return n, nil
}

// leaves tells whether a link at path to target points out of the tree.
func leaves(path, target string) bool {
	if target == "" || target[0] == '/' {
		return true
	}
	depth := strings.Count(path, "/")
	for _, seg := range strings.Split(target, "/") {
		switch seg {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

// newName checks that a name is free and may be made.
func (v *View) newName(ctx context.Context, c Caller, parent store.ID, name, op string, dir bool) (target, policy.Decision, error) {
	t, err := v.target(ctx, c, parent, name)
	if err != nil {
		return t, policy.Decision{}, err
	}
	if t.there || v.m.pendingAny(t.place) {
		return t, policy.Decision{}, fmt.Errorf("%s: %w", t.path, ErrExist)
	}
	d, err := v.require(ctx, c, query{op: op, action: policy.ActionCreate, path: t.path, dir: dir, eph: !dir && t.place.Owner != ""})
	return t, d, err
}

// Unlink removes a file or a symlink; ErrStale if the caller has observed an older content.
func (v *View) Unlink(ctx context.Context, c Caller, parent store.ID, name string) (Node, error) {
	t, d, err := v.oldName(ctx, c, parent, name, "unlink")
	if err != nil {
		return t.node, err
	}
	if p := t.node.Pending; p != nil {
		switch p.begin(pendingGone) {
		case pendingOpen:
			v.m.settle(p, pendingGone)
			return t.node, nil
		case pendingCommitted: // a moment ago
			return v.Unlink(ctx, c, parent, name)
		default:
			return t.node, fmt.Errorf("%s: %w", t.path, ErrNotExist)
		}
	}
	if t.node.Inode.Type == store.TypeDir {
		return t.node, fmt.Errorf("%s: %w", t.path, ErrIsDir)
	}
	eph := t.place.Owner != ""
	base, known, err := v.base(c, t.node)
	if err != nil {
		return t.node, v.stale(c, "unlink", t.node, d, "")
	}
	var rev kv.Rev
	err = v.change(ctx, c, d, baseLabel(known), eph, func(ctx context.Context, ch store.Change) error {
		var err error
		_, rev, err = v.m.store.Unlink(ctx, t.place, base, ch)
		return err
	})
	if err != nil {
		return t.node, v.commitFailed(c, "unlink", t.node, d, err)
	}
	if c.Session != nil {
		c.Session.Forget(t.node.Inode.ID)
	}
	if t.node.Inode.Type == store.TypeFile {
		v.m.removed(t.place, t.node.Inode.ID, c)
	}
	v.m.applier.wait(rev)
	return t.node, nil
}

// Rmdir removes an empty directory: empty for everyone, and of the caller's own uncommitted files.
func (v *View) Rmdir(ctx context.Context, c Caller, parent store.ID, name string) (Node, error) {
	t, d, err := v.oldName(ctx, c, parent, name, "rmdir")
	if err != nil {
		return t.node, err
	}
	if t.node.Inode.Type != store.TypeDir {
		return t.node, fmt.Errorf("%s: %w", t.path, ErrNotDir)
	}
	if c.Session != nil && len(v.m.pendingIn(t.node.Inode.ID, c.Session)) > 0 {
		return t.node, fmt.Errorf("%s: %w", t.path, ErrNotEmpty)
	}
	var rev kv.Rev
	err = v.change(ctx, c, d, "none", false, func(ctx context.Context, ch store.Change) error {
		var err error
		rev, err = v.m.store.Rmdir(ctx, t.place, ch)
		return err
	})
	if err != nil {
		return t.node, v.commitFailed(c, "rmdir", t.node, d, err)
	}
	v.m.paths.clear()
	v.m.applier.wait(rev)
	return t.node, nil
}

// oldName finds a name that is to go, and asks whether it may.
func (v *View) oldName(ctx context.Context, c Caller, parent store.ID, name, op string) (target, policy.Decision, error) {
	t, err := v.target(ctx, c, parent, name)
	if err != nil {
		return t, policy.Decision{}, err
	}
	if !t.there {
		return t, policy.Decision{}, fmt.Errorf("%s: %w", t.path, ErrNotExist)
	}
	d, err := v.require(ctx, c, query{op: op, action: policy.ActionDelete, path: t.path,
		dir: t.node.Inode.Type == store.TypeDir, eph: t.place.Owner != ""})
	return t, d, err
}

// base is the stale check of an operation on a name: the head, if the caller has seen it or never looked. ErrStale is not
// recorded yet.
func (v *View) base(c Caller, n Node) (b store.Base, known bool, err error) {
	if n.Inode.Type != store.TypeFile || n.Inode.Owner != "" || c.Session == nil {
		return store.Base{Any: true}, false, nil
	}
	known, current := c.Session.Knows(c.Proc, n.Inode.ID, n.Head.Sum)
	switch {
	case !known:
		return store.Base{Any: true}, false, nil
	case !current:
		return store.Base{}, true, fmt.Errorf("%s: %w", n.Path, ErrStale)
	default:
		return store.Base{Sum: n.Head.Sum}, true, nil
	}
}
