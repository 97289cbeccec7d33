package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"memoryfs/backend/kv"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// Rename moves a name; store.RenameRequest says what that means for each pair of places. Onto a memory it is a write of
// that memory, with its stale check. To an ephemeral name it is an editor's backup: the memory stays, and only this
// session sees its old name as free for a while.
func (v *View) Rename(ctx context.Context, c Caller, fromDir store.ID, fromName string, toDir store.ID, toName string,
	noReplace bool) (store.Renamed, error) {
	none := store.Renamed{}
	from, err := v.target(ctx, c, fromDir, fromName)
	if err != nil {
		return none, err
	}
	if !from.there {
		return none, fmt.Errorf("%s: %w", from.path, ErrNotExist)
	}
	if from.node.Pending != nil {
		if from.node, err = v.Save(ctx, c, SaveRequest{Pending: from.node.Pending, Content: ByteContent(nil), Op: "rename"}); err != nil {
			return none, err
		}
	}
	if c.Session != nil && v.m.anyBackups() {
		v.m.unhide(v.place(toDir, toName), nil) // the editor puts its backup, or its new file, in place
	}
	to, err := v.target(ctx, c, toDir, toName)
	if err != nil {
		return none, err
	}
	if p := to.node.Pending; p != nil {
		if p.begin(pendingGone) == pendingOpen {
			v.m.settle(p, pendingGone)
		}
		if to, err = v.target(ctx, c, toDir, toName); err != nil {
			return none, err
		}
	}
	isDir := from.node.Inode.Type == store.TypeDir
	if isDir {
		to.place.Owner = "" // directories are never ephemeral
	}
	if noReplace && to.there {
		return none, fmt.Errorf("%s: %w", to.path, ErrExist)
	}
	r := store.RenameRequest{From: from.place, To: to.place, NoReplace: noReplace, Base: store.Base{Any: true}, IDNew: v.m.store.NewID()}
	if r.InoNew, err = v.m.store.NewIno(ctx); err != nil {
		return none, wrap(err, to.path)
	}
	d, base, err := v.mayRename(ctx, c, from, to, &r)
	if err != nil {
		return none, err
	}
	return v.rename(ctx, c, d, base, from, to, r)
}

// mayRename decides on both names and sets the stale check of the target.
func (v *View) mayRename(ctx context.Context, c Caller, from, to target, r *store.RenameRequest) (policy.Decision, string, error) {
	isDir, fromEph, toEph := from.node.Inode.Type == store.TypeDir, from.place.Owner != "", to.place.Owner != ""
	source := query{op: "rename", action: policy.ActionDelete, path: from.path, dir: isDir, eph: fromEph}
	if toEph && !fromEph {
		source.action = policy.ActionWrite // a backup: the memory stays
	}
	d, err := v.require(ctx, c, source)
	if err != nil {
		return d, "", err
	}
	action := policy.ActionCreate
	if to.there {
		action = policy.ActionWrite
	}
	if isDir || toEph || from.node.Inode.Type != store.TypeFile {
		d, err = v.require(ctx, c, query{op: "rename", action: action, path: to.path, dir: isDir, eph: toEph})
		return d, "none", err
	}
	known := false
	if to.there {
		if d, err = v.require(ctx, c, query{op: "rename", action: action, path: to.path}); err != nil {
			return d, "", err
		}
		if r.Base, known, err = v.base(c, to.node); err != nil {
			return d, "", v.lostRename(ctx, c, from, to, d)
		}
	}
	content, err := v.Content(ctx, from.node.Head)
	if err != nil {
		return d, "", err
	}
	dest := Node{Path: to.path, Head: to.node.Head}
	d, err = v.decideContent(ctx, c, SaveRequest{Op: "rename", Content: content}, dest, action, to.there && !known)
	return d, baseLabel(known), err
}

func (v *View) rename(ctx context.Context, c Caller, d policy.Decision, base string, from, to target, r store.RenameRequest) (store.Renamed, error) {
	isDir := from.node.Inode.Type == store.TypeDir
	if isDir {
		v.m.paths.clear()
		defer v.m.paths.clear()
	}
	var done store.Renamed
	var rev kv.Rev
	scratch := from.place.Owner != "" && to.place.Owner != "" || from.place.Owner == "" && to.place.Owner != ""
	err := v.change(ctx, c, d, base, scratch, func(ctx context.Context, ch store.Change) error {
		var err error
		done, rev, err = v.m.store.Rename(ctx, r, ch)
		return err
	})
	if err != nil {
		if errors.Is(err, store.ErrStale) {
			return done, v.lostRename(ctx, c, from, to, d)
		}
		return done, v.commitFailed(c, "rename", Node{Inode: to.node.Inode, Head: to.node.Head, Path: to.path}, d, err)
	}
	if isDir {
		v.m.paths.clear()
	}
	if c.Session != nil {
		if done.Backup {
			v.m.hide(from.place, &backup{id: from.node.Inode.ID, session: c.Session, proc: c.Proc, until: time.Now().Add(backupFor)})
		} else if from.node.Inode.Type == store.TypeFile && to.place.Owner == "" {
			c.Session.Wrote(c.Proc, done.Moved, done.Head.Sum)
		}
	}
	v.m.applier.wait(rev)
	return done, nil
}

// lostRename refuses a rename onto a memory that changed. The file that was to be renamed stays where it is, but programs
// remove it when they give up (sed -i does): its bytes are kept.
func (v *View) lostRename(ctx context.Context, c Caller, from, to target, d policy.Decision) error {
	content, err := v.Content(ctx, from.node.Head)
	if err != nil {
		return err
	}
	var base store.Sum
	if c.Session != nil {
		base = c.Session.seen(c.Proc, to.node.Inode.ID)
	}
	return v.lost(ctx, c, LostWrite{Memory: to.node.Inode.ID, Path: to.path, Op: "rename", Base: base, Mine: content}, d)
}
