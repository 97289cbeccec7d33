package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"memoryfs/backend/kv"
)

// CreateFile makes a file: a memory with its first version, or an ephemeral. ErrExist if the name is taken, or if the
// memory to revive is not deleted.
func (s *Store) CreateFile(ctx context.Context, f NewFile, ch Change) (Head, kv.Rev, error) {
	if err := checkName(f.Name); err != nil {
		return Head{}, 0, err
	}
	var head Head
	rev, err := s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		p, path, err := snap.newEntry(f.Place)
		if err != nil {
			return nil, err
		}
		st, err := s.put(ctx, f.Content)
		if err != nil {
			return nil, err
		}
		now := s.now(ch)
		head = Head{Sum: st.sum, Size: st.size, Mtime: f.Mtime}
		if head.Mtime.IsZero() {
			head.Mtime = now
		}
		in := Inode{ID: f.ID, Type: TypeFile, Mode: f.Mode, Ino: f.Ino, Parent: f.Parent, Name: f.Name, Owner: f.Owner,
			Atime: now, Ctime: now, Btime: now, Xattrs: f.Xattrs}
		if !f.Btime.IsZero() {
			in.Atime, in.Btime, in.Ctime = f.Btime, f.Btime, f.Btime
		}
		p.use(st)
		if f.Revive {
			if head.Version, err = snap.revive(p, f.ID); err != nil {
				return nil, err
			}
		}
		if err := s.first(p, in, &head, path, "", KindCreate, ch); err != nil {
			return nil, err
		}
		p.touch(f.Parent, now)
		return p, nil
	})
	return head, rev, err
}

// newEntry begins a plan for a name that must be free in a directory that must be there; it returns the name's path.
func (p *Snapshot) newEntry(at Place) (*plan, string, error) {
	dir, err := p.Path(at.Parent)
	if err != nil {
		return nil, "", err
	}
	if _, err := p.Child(at); err == nil {
		return nil, "", fmt.Errorf("%q: %w", at.Name, ErrExist)
	} else if !errors.Is(err, ErrNotExist) {
		return nil, "", err
	}
	pl := &plan{}
	pl.guard(kv.KeyExists(keyInode(at.Parent)), kv.KeyRev(keyPlace(at), 0))
	return pl, joinPath(dir, at.Name), nil
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// revive makes room for a deleted memory's next life, and returns the number of its last version.
func (p *Snapshot) revive(pl *plan, id ID) (uint64, error) {
	e, err := p.get(keyInode(id))
	if err != nil {
		return 0, err
	}
	old, err := p.Inode(id)
	if err != nil {
		return 0, err
	}
	last, err := p.Versions(id, 0, 1)
	if err != nil {
		return 0, err
	}
	if !old.Gone || len(last) == 0 {
		return 0, fmt.Errorf("%s: %w", id, ErrExist)
	}
	pl.guard(kv.KeyRev(keyInode(id), e.Rev))
	pl.put(kv.Delete(keyDeleted(Place{Parent: old.Parent, Name: old.Name}, id)))
	return last[0].Number, nil
}

// first puts a new file's inode, dentry, head and, unless it is an ephemeral, its first version, or that after head's.
func (s *Store) first(p *plan, in Inode, head *Head, path, from string, kind Kind, ch Change) error {
	at := Place{in.Parent, in.Name, in.Owner}
	if in.Owner == "" {
		head.Version++
		v := s.newVersion(in.ID, head.Version, kind, ch)
		v.Sum, v.Size, v.Mode, v.Path, v.From = head.Sum, head.Size, in.Mode, path, from
		if err := p.addVersion(v); err != nil {
			return err
		}
		p.changed = Changed{Kind: v.Kind, Type: TypeFile, ID: in.ID, Path: path, From: from, Version: &v}
	} else {
		p.put(addRef(head.Sum, head.Size, in.ID, 0)...)
	}
	p.put(kv.Put(keyInode(in.ID), encodeInode(in)), kv.Put(keyHead(in.ID), encodeHead(*head)),
		kv.Put(keyPlace(at), encodeDentry(Dentry{ID: in.ID, Type: TypeFile, Ino: in.Ino})))
	return nil
}

// Write replaces a content: ErrStale if base is not the head's. Bytes equal to the head's are success without a version
// (revision 0), whatever base says. An ephemeral is overwritten. mtime zero: now.
func (s *Store) Write(ctx context.Context, id ID, base Base, c Bytes, mtime time.Time, ch Change) (Head, kv.Rev, error) {
	return s.replace(ctx, id, KindWrite, mtime, ch, func(old Head) (Bytes, error) { return c, nil },
		func(old Head, sum Sum) error {
			if !base.Any && old.Sum != base.Sum {
				return fmt.Errorf("%s: %w", id, ErrStale)
			}
			return nil
		})
}

// Append adds bytes at the end of what is the head when it commits. Never ErrStale.
func (s *Store) Append(ctx context.Context, id ID, data Bytes, ch Change) (Head, kv.Rev, error) {
	return s.replace(ctx, id, KindAppend, time.Time{}, ch, func(old Head) (Bytes, error) {
		c, err := s.Content(ctx, old.Sum, old.Size)
		return joined{c, data}, err
	}, func(Head, Sum) error { return nil })
}

// joined is a content with bytes after it.
type joined struct {
	head *Content
	tail Bytes
}

func (j joined) Size() int64 { return j.head.size + j.tail.Size() }

func (j joined) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < j.head.size {
		want := p[:min(int64(len(p)), j.head.size-off)]
		got, err := j.head.ReadAt(want, off)
		if n = got; got < len(want) {
			return n, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	got, err := j.tail.ReadAt(p[n:], off+int64(n)-j.head.size)
	return n + got, err
}

// replace is the compare-and-swap of a head. may is asked unless the new bytes are the old ones.
func (s *Store) replace(ctx context.Context, id ID, kind Kind, mtime time.Time, ch Change,
	content func(Head) (Bytes, error), may func(Head, Sum) error) (Head, kv.Rev, error) {
	var head Head
	rev, err := s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		in, err := snap.Inode(id)
		if err != nil {
			return nil, err
		}
		old, oldRev, err := snap.head(id)
		if err != nil {
			return nil, err
		}
		c, err := content(old)
		if err != nil {
			return nil, err
		}
		st, err := s.put(ctx, c)
		if err != nil {
			return nil, err
		}
		if st.sum == old.Sum {
			head = old
			return nil, nil
		}
		if in.Owner == "" {
			if err := may(old, st.sum); err != nil {
				return nil, err
			}
		}
		head = Head{Version: old.Version, Sum: st.sum, Size: st.size, Mtime: mtime}
		if mtime.IsZero() {
			head.Mtime = s.now(ch)
		}
		p := &plan{}
		p.guard(kv.KeyRev(keyHead(id), oldRev))
		p.use(st)
		return p, s.next(snap, p, in, old, &head, kind, "", ch)
	})
	return head, rev, err
}

// next puts the following version of a memory (or the new bytes of an ephemeral) under its head.
func (s *Store) next(snap *Snapshot, p *plan, in Inode, old Head, head *Head, kind Kind, from string, ch Change) error {
	if in.Owner != "" {
		p.drop(old.Sum, old.Size, in.ID, 0)
		p.put(addRef(head.Sum, head.Size, in.ID, 0)...)
	} else {
		path, err := snap.Path(in.ID)
		if err != nil {
			return err
		}
		head.Version = old.Version + 1
		v := s.newVersion(in.ID, head.Version, kind, ch)
		v.Parent, v.Sum, v.Size, v.Mode, v.Path, v.From = old.Sum, head.Sum, head.Size, in.Mode, path, from
		if err := p.addVersion(v); err != nil {
			return err
		}
		p.changed = Changed{Kind: v.Kind, Type: TypeFile, ID: in.ID, Path: path, From: from, Version: &v}
	}
	p.put(kv.Put(keyHead(in.ID), encodeHead(*head)))
	return nil
}
