package backend

import (
	"context"
	"fmt"
	"strings"

	"memoryfs/backend/kv"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// XattrPrefix is the namespace the daemon keeps for itself: readable on every memory, written by nobody.
const XattrPrefix = "user.memory."

// Setattr changes mode and times. It needs the right to write.
func (v *View) Setattr(ctx context.Context, c Caller, n Node, r store.SetattrRequest) error {
	if n.Pending != nil && n.Pending.setattr(r) {
		return nil
	}
	return v.changeAttr(ctx, c, "setattr", n, func(ctx context.Context, ch store.Change) (kv.Rev, error) {
		return v.m.store.Setattr(ctx, n.Inode.ID, r, ch)
	})
}

// SetXattr sets a user.* attribute of a program's own; create and replace are the flags of setxattr(2).
func (v *View) SetXattr(ctx context.Context, c Caller, n Node, name string, value []byte, create, replace bool) error {
	if err := checkXattr(name); err != nil {
		return fmt.Errorf("%s: %s: %w", n.Path, name, err)
	}
	if n.Pending != nil {
		if done, err := n.Pending.setXattr(name, value, create, replace); done || err != nil {
			return err
		}
	}
	return v.changeAttr(ctx, c, "setxattr", n, func(ctx context.Context, ch store.Change) (kv.Rev, error) {
		return v.m.store.SetXattr(ctx, n.Inode.ID, name, value, create, replace, ch)
	})
}

// RemoveXattr removes one.
func (v *View) RemoveXattr(ctx context.Context, c Caller, n Node, name string) error {
	if err := checkXattr(name); err != nil {
		return fmt.Errorf("%s: %s: %w", n.Path, name, err)
	}
	if n.Pending != nil {
		if done, err := n.Pending.removeXattr(name); done || err != nil {
			return err
		}
	}
	return v.changeAttr(ctx, c, "removexattr", n, func(ctx context.Context, ch store.Change) (kv.Rev, error) {
		return v.m.store.RemoveXattr(ctx, n.Inode.ID, name, ch)
	})
}

// MayRead asks for the right to read, for attributes that tell of content.
func (v *View) MayRead(ctx context.Context, c Caller, op string, n Node) error {
	_, err := v.require(ctx, c, query{op: op, action: policy.ActionRead, path: n.Path,
		dir: n.Inode.Type == store.TypeDir, eph: n.Inode.Owner != ""})
	return err
}

func checkXattr(name string) error {
	switch {
	case strings.HasPrefix(name, XattrPrefix):
		return ErrPermission
	case !strings.HasPrefix(name, "user.") || len(name) == len("user."):
		return ErrUnsupported
	case len(name) > maxName:
		return ErrXattrLarge
	}
	return nil
}

func (v *View) changeAttr(ctx context.Context, c Caller, op string, n Node, do func(context.Context, store.Change) (kv.Rev, error)) error {
	eph := n.Inode.Owner != ""
	d, err := v.require(ctx, c, query{op: op, action: policy.ActionWrite, path: n.Path, dir: n.Inode.Type == store.TypeDir, eph: eph})
	if err != nil {
		return err
	}
	var rev kv.Rev
	err = v.change(ctx, c, d, "none", eph, func(ctx context.Context, ch store.Change) error {
		var err error
		rev, err = do(ctx, ch)
		return err
	})
	if err != nil {
		return v.commitFailed(c, op, n, d, err)
	}
	v.m.applier.wait(rev)
	return nil
}

// setXattr keeps the attribute until the first commit. done is false if that has happened already.
func (p *Pending) setXattr(name string, value []byte, create, replace bool) (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled() {
		return false, nil
	}
	_, there := p.xattrs[name]
	switch {
	case create && there:
		return true, fmt.Errorf("%s: %w", name, ErrExist)
	case replace && !there:
		return true, fmt.Errorf("%s: %w", name, ErrNoXattr)
	}
	all := map[string][]byte{name: value} // a new map: Inode() gives the old one out
	total := len(name) + len(value)
	for k, x := range p.xattrs {
		if k != name {
			all[k] = x
			total += len(k) + len(x)
		}
	}
	if total > maxXattrs {
		return true, fmt.Errorf("%s: %w", name, ErrXattrLarge)
	}
	p.xattrs = all
	return true, nil
}

const maxXattrs = 64 << 10 // bytes of names and values on one inode, as in the store

func (p *Pending) removeXattr(name string) (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled() {
		return false, nil
	}
	if _, there := p.xattrs[name]; !there {
		return true, fmt.Errorf("%s: %w", name, ErrNoXattr)
	}
	all := map[string][]byte{}
	for k, x := range p.xattrs {
		if k != name {
			all[k] = x
		}
	}
	p.xattrs = all
	return true, nil
}
