package store

import (
	"context"
	"fmt"
	"maps"

	"memoryfs/backend/kv"
)

// Setattr changes mode and times. A file's mtime is its head's: a writer that races with a touch retries, since the
// content is still its base.
func (s *Store) Setattr(ctx context.Context, id ID, r SetattrRequest, ch Change) (kv.Rev, error) {
	return s.changeInode(ctx, id, KindSetattr, attrNames(r), ch, func(snap *Snapshot, p *plan, in *Inode) error {
		if r.Mode != nil {
			in.Mode = *r.Mode & 0o7777
		}
		if r.Atime != nil {
			in.Atime = *r.Atime
		}
		if r.Mtime == nil {
			return nil
		}
		in.Mtime = *r.Mtime
		if in.Type != TypeFile {
			return nil
		}
		head, rev, err := snap.head(id)
		if err != nil {
			return err
		}
		head.Mtime = *r.Mtime
		p.guard(kv.KeyRev(keyHead(id), rev))
		p.put(kv.Put(keyHead(id), encodeHead(head)))
		return nil
	})
}

func attrNames(r SetattrRequest) string {
	switch {
	case r.Mode != nil && (r.Atime != nil || r.Mtime != nil):
		return "mode, times"
	case r.Mode != nil:
		return "mode"
	default:
		return "times"
	}
}

// SetXattr sets an attribute; create and replace are the flags of setxattr(2). ErrExist, ErrNoXattr, ErrXattrLarge.
func (s *Store) SetXattr(ctx context.Context, id ID, name string, value []byte, create, replace bool, ch Change) (kv.Rev, error) {
	return s.changeInode(ctx, id, KindXattr, name, ch, func(_ *Snapshot, _ *plan, in *Inode) error {
		_, there := in.Xattrs[name]
		switch {
		case create && there:
			return fmt.Errorf("%s: %w", name, ErrExist)
		case replace && !there:
			return fmt.Errorf("%s: %w", name, ErrNoXattr)
		}
		in.Xattrs = maps.Clone(in.Xattrs)
		if in.Xattrs == nil {
			in.Xattrs = map[string][]byte{}
		}
		in.Xattrs[name] = value
		total := 0
		for k, v := range in.Xattrs {
			total += len(k) + len(v)
		}
		if total > maxXattrs {
			return fmt.Errorf("%s: %w of %d bytes", name, ErrXattrLarge, maxXattrs)
		}
		return nil
	})
}

// RemoveXattr removes an attribute. ErrNoXattr.
func (s *Store) RemoveXattr(ctx context.Context, id ID, name string, ch Change) (kv.Rev, error) {
	return s.changeInode(ctx, id, KindXattr, name, ch, func(_ *Snapshot, _ *plan, in *Inode) error {
		if _, there := in.Xattrs[name]; !there {
			return fmt.Errorf("%s: %w", name, ErrNoXattr)
		}
		in.Xattrs = maps.Clone(in.Xattrs)
		delete(in.Xattrs, name)
		return nil
	})
}

func (s *Store) changeInode(ctx context.Context, id ID, kind Kind, attr string, ch Change,
	change func(*Snapshot, *plan, *Inode) error) (kv.Rev, error) {
	return s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		e, err := snap.get(keyInode(id))
		if err != nil {
			return nil, err
		}
		in, err := snap.Inode(id)
		if err != nil {
			return nil, err
		}
		path, err := snap.Path(id)
		if err != nil {
			return nil, err
		}
		p := &plan{changed: Changed{Kind: kind, Type: in.Type, ID: id, Path: path, Attr: attr}}
		p.guard(kv.KeyRev(keyInode(id), e.Rev))
		if err := change(snap, p, &in); err != nil {
			return nil, err
		}
		in.Ctime = s.now(ch)
		p.put(kv.Put(keyInode(id), encodeInode(in)))
		return p, nil
	})
}
