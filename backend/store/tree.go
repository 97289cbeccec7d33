package store

import (
	"context"
	"errors"
	"fmt"

	"memoryfs/backend/kv"
)

// Mkdir makes a directory. ErrExist, ErrNotExist.
func (s *Store) Mkdir(ctx context.Context, at Place, ino uint64, mode uint32, ch Change) (Inode, kv.Rev, error) {
	at.Owner = "" // directories are everyone's
	return s.make(ctx, at, Inode{Type: TypeDir, Mode: mode, Ino: ino}, KindMkdir, ch)
}

// Symlink makes a symbolic link; its target is kept byte for byte.
func (s *Store) Symlink(ctx context.Context, at Place, ino uint64, target string, ch Change) (Inode, kv.Rev, error) {
	return s.make(ctx, at, Inode{Type: TypeSymlink, Mode: 0o777, Ino: ino, Target: target}, KindSymlink, ch)
}

func (s *Store) make(ctx context.Context, at Place, in Inode, kind Kind, ch Change) (Inode, kv.Rev, error) {
	if err := checkName(at.Name); err != nil {
		return Inode{}, 0, err
	}
	in.ID, in.Parent, in.Name, in.Owner = s.NewID(), at.Parent, at.Name, at.Owner
	rev, err := s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		p, path, err := snap.newEntry(at)
		if err != nil {
			return nil, err
		}
		now := s.now(ch)
		in.Atime, in.Mtime, in.Ctime, in.Btime = now, now, now, now
		p.put(kv.Put(keyInode(in.ID), encodeInode(in)), kv.Put(keyPlace(at), encodeDentry(Dentry{ID: in.ID, Type: in.Type, Ino: in.Ino})))
		p.touch(at.Parent, now)
		p.changed = Changed{Kind: kind, Type: in.Type, ID: in.ID, Path: path}
		return p, nil
	})
	return in, rev, err
}

// entry loads what is at a place: dentry with its revision, inode, and for a file its head with its revision.
type entry struct {
	at      Place
	dentry  Dentry
	rev     kv.Rev
	in      Inode
	head    Head
	headRev kv.Rev
	path    string
}

func (p *Snapshot) entry(at Place) (entry, error) {
	e := entry{at: at}
	var err error
	if e.dentry, e.rev, err = p.child(at); err != nil {
		return e, err
	}
	if e.in, err = p.Inode(e.dentry.ID); err != nil {
		return e, err
	}
	if e.in.Type == TypeFile {
		if e.head, e.headRev, err = p.head(e.in.ID); err != nil {
			return e, err
		}
	}
	dir, err := p.Path(at.Parent)
	if errors.Is(err, ErrNotExist) && at.Owner != "" {
		err = nil // an ephemeral whose directory is gone can still be swept
	}
	e.path = joinPath(dir, at.Name)
	return e, err
}

// Unlink removes a file or a symlink. A memory ends with a delete version and keeps its history; ErrStale if base is not
// its head. ErrIsDir for a directory.
func (s *Store) Unlink(ctx context.Context, at Place, base Base, ch Change) (Inode, kv.Rev, error) {
	var in Inode
	rev, err := s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		e, err := snap.entry(at)
		if err != nil {
			return nil, err
		}
		in = e.in
		p := &plan{}
		switch e.in.Type {
		case TypeDir:
			return nil, fmt.Errorf("%q: %w", at.Name, ErrIsDir)
		case TypeSymlink:
			p.changed = Changed{Kind: KindUnlink, Type: TypeSymlink, ID: e.in.ID, Path: e.path}
			p.put(kv.Delete(keyInode(e.in.ID)))
		default:
			if !base.Any && base.Sum != e.head.Sum {
				return nil, fmt.Errorf("%q: %w", at.Name, ErrStale)
			}
			v, err := s.end(p, e, "", ch)
			if err != nil {
				return nil, err
			}
			if v != nil {
				p.changed = Changed{Kind: v.Kind, Type: TypeFile, ID: e.in.ID, Path: e.path, Version: v}
			}
		}
		p.guard(kv.KeyRev(keyPlace(at), e.rev))
		p.put(kv.Delete(keyPlace(at)))
		p.touch(at.Parent, s.now(ch))
		return p, nil
	})
	return in, rev, err
}

// end puts the end of a file's life: a memory's delete version, kept inode and last place; an ephemeral just goes. The
// dentry is the caller's to remove. It returns the delete version, nil for an ephemeral.
func (s *Store) end(p *plan, e entry, movedTo string, ch Change) (*Version, error) {
	p.guard(kv.KeyRev(keyHead(e.in.ID), e.headRev))
	p.put(kv.Delete(keyHead(e.in.ID)))
	if e.in.Owner != "" {
		p.put(kv.Delete(keyInode(e.in.ID)))
		p.drop(e.head.Sum, e.head.Size, e.in.ID, 0)
		return nil, nil
	}
	v := s.newVersion(e.in.ID, e.head.Version+1, KindDelete, ch)
	v.Kind = KindDelete
	v.Parent, v.Mode, v.Path, v.From = e.head.Sum, e.in.Mode, e.path, movedTo
	gone := e.in
	gone.Gone, gone.Ctime = true, s.now(ch)
	p.put(kv.Put(keyInode(gone.ID), encodeInode(gone)), kv.Put(keyDeleted(e.at, gone.ID), []byte{}))
	return &v, p.addVersion(v)
}

// Rmdir removes an empty directory. Ephemerals in it do not keep it: their owners alone see them, so nobody else could
// ever remove it; they go with the next sweep.
func (s *Store) Rmdir(ctx context.Context, at Place, ch Change) (kv.Rev, error) {
	at.Owner = ""
	return s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		e, err := snap.entry(at)
		if err != nil {
			return nil, err
		}
		if e.in.Type != TypeDir {
			return nil, fmt.Errorf("%q: %w", at.Name, ErrNotDir)
		}
		p := &plan{}
		if err := snap.removeDir(p, e); err != nil {
			return nil, err
		}
		p.guard(kv.KeyRev(keyPlace(at), e.rev))
		p.put(kv.Delete(keyPlace(at)))
		p.touch(at.Parent, s.now(ch))
		p.changed = Changed{Kind: KindRmdir, Type: TypeDir, ID: e.in.ID, Path: e.path}
		return p, nil
	})
}

func (p *Snapshot) removeDir(pl *plan, e entry) error {
	below, err := p.Children(e.in.ID, "", "", 1)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("%q: %w", e.at.Name, ErrNotEmpty)
	}
	pl.guard(kv.PrefixEmpty(prefixDentry(e.in.ID)))
	gone := e.in
	gone.Gone = true
	pl.put(kv.Delete(keyInode(gone.ID)), kv.Delete(keyTouch(gone.ID)))
	pl.put(kv.Put(keyFormerDir(gone.ID), encodeInode(gone)), kv.Put(keyDeleted(e.at, gone.ID), []byte{byte(TypeDir)}))
	return nil
}
