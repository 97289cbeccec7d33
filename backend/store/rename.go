package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"memoryfs/backend/kv"
)

// Rename moves a name; see RenameRequest for what that means. ErrNotExist, ErrExist (NoReplace), ErrStale, ErrIsDir,
// ErrNotDir, ErrNotEmpty, ErrLoop.
func (s *Store) Rename(ctx context.Context, r RenameRequest, ch Change) (Renamed, kv.Rev, error) {
	for _, name := range []string{r.From.Name, r.To.Name} {
		if err := checkName(name); err != nil {
			return Renamed{}, 0, err
		}
	}
	var done Renamed
	rev, err := s.run(ctx, ch, func(snap *Snapshot) (*plan, error) {
		m := &move{s: s, snap: snap, r: r, ch: ch, p: &plan{}, now: s.now(ch)}
		var err error
		done, err = m.plan()
		if err != nil || m.p == nil {
			return nil, err
		}
		return m.p, nil
	})
	return done, rev, err
}

// move is one rename in the making.
type move struct {
	s     *Store
	snap  *Snapshot
	r     RenameRequest
	ch    Change
	p     *plan
	now   time.Time
	from  entry
	to    entry
	there bool // something is at to
}

func (m *move) plan() (Renamed, error) {
	var err error
	if m.from, err = m.snap.entry(m.r.From); err != nil {
		return Renamed{}, err
	}
	if m.r.From == m.r.To {
		m.p = nil
		return Renamed{Moved: m.from.in.ID, Head: m.from.head}, nil
	}
	m.to, err = m.snap.entry(m.r.To)
	switch {
	case err == nil:
		m.there = true
	case !errors.Is(err, ErrNotExist):
		return Renamed{}, err
	default:
		dir, err := m.snap.Path(m.r.To.Parent)
		if err != nil {
			return Renamed{}, err
		}
		m.to.at, m.to.path = m.r.To, joinPath(dir, m.r.To.Name)
	}
	if m.there && m.r.NoReplace {
		return Renamed{}, fmt.Errorf("%q: %w", m.r.To.Name, ErrExist)
	}
	m.p.guard(kv.KeyRev(keyPlace(m.r.From), m.from.rev), kv.KeyRev(keyPlace(m.r.To), m.to.rev),
		kv.KeyExists(keyInode(m.r.From.Parent)), kv.KeyExists(keyInode(m.r.To.Parent)))
	m.p.touch(m.r.From.Parent, m.now)
	m.p.touch(m.r.To.Parent, m.now)
	return m.byType()
}

func (m *move) byType() (Renamed, error) {
	isDir, toDir := m.from.in.Type == TypeDir, m.there && m.to.in.Type == TypeDir
	switch {
	case isDir && m.there && !toDir:
		return Renamed{}, fmt.Errorf("%q: %w", m.r.To.Name, ErrNotDir)
	case !isDir && toDir:
		return Renamed{}, fmt.Errorf("%q: %w", m.r.To.Name, ErrIsDir)
	case isDir:
		return m.dir()
	case m.from.in.Type == TypeSymlink:
		return m.symlink()
	case m.r.From.Owner == "" && m.r.To.Owner != "":
		return m.backup()
	case m.there && m.to.in.Type == TypeFile && m.r.To.Owner == "":
		return m.onto()
	default:
		return m.free()
	}
}

// dir moves a directory: one inode and two dentries, whatever lies below.
func (m *move) dir() (Renamed, error) {
	if err := m.noLoop(); err != nil {
		return Renamed{}, err
	}
	e, err := m.snap.get(keyMove())
	if err != nil {
		return Renamed{}, err
	}
	m.p.guard(kv.KeyRev(keyMove(), e.Rev))
	m.p.put(kv.Put(keyMove(), []byte{}))
	done := Renamed{Moved: m.from.in.ID}
	if m.there {
		if err := m.snap.removeDir(m.p, m.to); err != nil {
			return Renamed{}, err
		}
		done.Replaced = m.to.in.ID
	}
	m.relink(m.from.in)
	m.p.changed = Changed{Kind: KindMove, Type: TypeDir, ID: m.from.in.ID, Path: m.to.path, From: m.from.path}
	return done, nil
}

// noLoop walks up from the target's directory: the moved one must not be on the way.
func (m *move) noLoop() error {
	for id, depth := m.r.To.Parent, 0; id != RootID; depth++ {
		if id == m.from.in.ID || depth > maxDepth {
			return fmt.Errorf("%q: %w", m.r.From.Name, ErrLoop)
		}
		in, err := m.snap.Inode(id)
		if err != nil {
			return err
		}
		id = in.Parent
	}
	return nil
}

// relink puts an inode under To and takes From's dentry away.
func (m *move) relink(in Inode) {
	in.Parent, in.Name, in.Owner, in.Ctime = m.r.To.Parent, m.r.To.Name, m.r.To.Owner, m.now
	m.p.put(kv.Delete(keyPlace(m.r.From)),
		kv.Put(keyPlace(m.r.To), encodeDentry(Dentry{ID: in.ID, Type: in.Type, Ino: in.Ino})),
		kv.Put(keyInode(in.ID), encodeInode(in)))
}

// symlink moves a symbolic link, over whatever file or link is there.
func (m *move) symlink() (Renamed, error) {
	done := Renamed{Moved: m.from.in.ID}
	m.p.changed = Changed{Kind: KindMove, Type: TypeSymlink, ID: m.from.in.ID, Path: m.to.path, From: m.from.path}
	if m.there {
		v, err := m.removeTarget()
		if err != nil {
			return done, err
		}
		done.Replaced, m.p.changed.Replaced = m.to.in.ID, v
	}
	m.relink(m.from.in)
	return done, nil
}

// removeTarget ends what is at To, which is no directory.
func (m *move) removeTarget() (*Version, error) {
	if m.to.in.Type == TypeSymlink {
		m.p.put(kv.Delete(keyInode(m.to.in.ID)))
		return nil, nil
	}
	if m.to.in.Owner == "" && !m.r.Base.Any && m.r.Base.Sum != m.to.head.Sum {
		return nil, fmt.Errorf("%q: %w", m.r.To.Name, ErrStale)
	}
	return m.s.end(m.p, m.to, "", m.ch)
}

// free moves a file to a name that no memory has.
func (m *move) free() (Renamed, error) {
	done := Renamed{Moved: m.from.in.ID, Head: m.from.head}
	var replaced *Version
	if m.there {
		v, err := m.removeTarget()
		if err != nil {
			return done, err
		}
		done.Replaced, replaced = m.to.in.ID, v
	}
	switch {
	case m.r.To.Owner != "": // ephemeral to ephemeral
		m.relink(m.from.in)
		return done, nil
	case m.r.From.Owner != "": // a program's scratch becomes a memory
		return m.promote(done)
	}
	m.p.guard(kv.KeyRev(keyHead(m.from.in.ID), m.from.headRev))
	head := m.from.head
	head.Version++
	v := m.s.newVersion(m.from.in.ID, head.Version, KindRename, m.ch)
	v.Parent, v.Sum, v.Size, v.Mode, v.Path, v.From = head.Sum, head.Sum, head.Size, m.from.in.Mode, m.to.path, m.from.path
	if err := m.p.addVersion(v); err != nil {
		return done, err
	}
	m.p.put(kv.Put(keyHead(m.from.in.ID), encodeHead(head)))
	m.relink(m.from.in)
	done.Head = head
	m.p.changed = Changed{Kind: v.Kind, Type: TypeFile, ID: m.from.in.ID, Path: m.to.path, From: m.from.path, Version: &v, Replaced: replaced}
	return done, nil
}

// promote makes a new memory of an ephemeral.
func (m *move) promote(done Renamed) (Renamed, error) {
	m.p.guard(kv.KeyRev(keyHead(m.from.in.ID), m.from.headRev))
	in := m.from.in
	in.ID, in.Parent, in.Name, in.Owner, in.Ctime = m.r.IDNew, m.r.To.Parent, m.r.To.Name, "", m.now
	head := m.from.head
	head.Version = 0
	if err := m.s.first(m.p, in, &head, m.to.path, "", KindCreate, m.ch); err != nil {
		return done, err
	}
	m.leave()
	done.Moved, done.Head = in.ID, head
	return done, nil
}

// leave removes the ephemeral that was moved onto or into a memory; its blob has another reference by now.
func (m *move) leave() {
	id := m.from.in.ID
	m.p.put(kv.Delete(keyPlace(m.r.From)), kv.Delete(keyInode(id)), kv.Delete(keyHead(id)))
	if m.from.head.Size > 0 {
		m.p.put(kv.Delete(keyRef(m.from.head.Sum, id, 0)))
	}
}

// onto is a write of the memory at To: it keeps its id and history, and takes From's inode number, mode and attributes.
func (m *move) onto() (Renamed, error) {
	if !m.r.Base.Any && m.r.Base.Sum != m.to.head.Sum && m.from.head.Sum != m.to.head.Sum {
		return Renamed{}, fmt.Errorf("%q: %w", m.r.To.Name, ErrStale)
	}
	m.p.guard(kv.KeyRev(keyHead(m.to.in.ID), m.to.headRev))
	in := m.to.in
	in.Ino, in.Mode, in.Xattrs, in.Ctime = m.from.in.Ino, m.from.in.Mode, m.from.in.Xattrs, m.now
	head := Head{Version: m.to.head.Version, Sum: m.from.head.Sum, Size: m.from.head.Size, Mtime: m.from.head.Mtime}
	m.p.changed = Changed{Kind: KindMove, Type: TypeFile, ID: in.ID, Path: m.to.path, From: m.from.path}
	if head.Sum != m.to.head.Sum {
		from := m.from.path
		if m.r.From.Owner != "" {
			from = "" // scratch names are no memories
		}
		if err := m.s.next(m.snap, m.p, in, m.to.head, &head, KindWrite, from, m.ch); err != nil {
			return Renamed{}, err
		}
	} else {
		m.p.put(kv.Put(keyHead(in.ID), encodeHead(head)))
	}
	m.p.put(kv.Put(keyInode(in.ID), encodeInode(in)),
		kv.Put(keyPlace(m.r.To), encodeDentry(Dentry{ID: in.ID, Type: TypeFile, Ino: in.Ino})))
	if m.r.From.Owner != "" {
		m.p.guard(kv.KeyRev(keyHead(m.from.in.ID), m.from.headRev))
		m.leave()
	} else {
		v, err := m.s.end(m.p, m.from, m.to.path, m.ch)
		if err != nil {
			return Renamed{}, err
		}
		m.p.changed.Replaced = v
		m.p.put(kv.Delete(keyPlace(m.r.From)))
	}
	return Renamed{Moved: in.ID, Replaced: m.from.in.ID, Head: head}, nil
}

// backup gives a memory's bytes and inode number to an ephemeral under To. The memory stays, with a new number.
func (m *move) backup() (Renamed, error) {
	if m.there {
		if _, err := m.removeTarget(); err != nil {
			return Renamed{}, err
		}
	}
	m.p.guard(kv.KeyRev(keyHead(m.from.in.ID), m.from.headRev))
	copied := m.from.in
	copied.ID, copied.Parent, copied.Name, copied.Owner, copied.Ctime = m.r.IDNew, m.r.To.Parent, m.r.To.Name, m.r.To.Owner, m.now
	head := m.from.head
	if err := m.s.first(m.p, copied, &head, m.to.path, "", KindCreate, m.ch); err != nil {
		return Renamed{}, err
	}
	head.Version = 0
	m.p.put(kv.Put(keyHead(copied.ID), encodeHead(head)))
	stays := m.from.in
	stays.Ino = m.r.InoNew
	m.p.put(kv.Put(keyInode(stays.ID), encodeInode(stays)),
		kv.Put(keyPlace(m.r.From), encodeDentry(Dentry{ID: stays.ID, Type: TypeFile, Ino: stays.Ino})))
	return Renamed{Moved: copied.ID, Head: head, Backup: true}, nil
}
