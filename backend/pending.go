package backend

import (
	"slices"
	"sync"
	"time"

	"memoryfs/backend/store"
)

// Pending is a file that was created and is not committed yet: it has a name, an id and an inode number, so that its
// program can stat it and nobody else can create the same name exclusively, but it is not in the store. A crash leaves
// nothing of it. Its first commit makes it a memory.
type Pending struct {
	ID      store.ID
	Ino     uint64
	Session *Session
	Created time.Time

	mu     sync.Mutex
	place  store.Place
	mode   uint32
	mtime  time.Time // set by utimens before the commit; zero: the time of the commit
	xattrs map[string][]byte
	done   bool // committed, unlinked or given up
}

// Place is where it will be, and whether it is still to come.
func (p *Pending) Place() (store.Place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.place, !p.done
}

// Inode is what a program that stats it sees.
func (p *Pending) Inode() store.Inode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return store.Inode{ID: p.ID, Type: store.TypeFile, Mode: p.mode, Ino: p.Ino, Parent: p.place.Parent, Name: p.place.Name,
		Ctime: p.Created, Btime: p.Created, Atime: p.Created, Xattrs: p.xattrs, Gone: p.done}
}

func (p *Pending) setattr(r store.SetattrRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Mode != nil {
		p.mode = *r.Mode
	}
	if r.Mtime != nil {
		p.mtime = *r.Mtime
	}
}

// pendingAt finds this session's pending file of a name.
func (m *Memory) pendingAt(p store.Place, s *Session) *Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.pending[p] {
		if x.Session == s {
			return x
		}
	}
	return nil
}

// pendingAny tells whether some session is creating this name.
func (m *Memory) pendingAny(p store.Place) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pending[p]) > 0
}

// reserve registers a pending file, and returns it. If the session has one of that name already, that one is returned.
// With excl it returns nil if any session has one. Two sessions that create one name have a file each, until one of
// them commits; the other is stale then.
func (m *Memory) reserve(p *Pending, excl bool) *Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := m.pending[p.place]
	if excl && len(there) > 0 {
		return nil
	}
	for _, x := range there {
		if x.Session == p.Session {
			return x
		}
	}
	m.pending[p.place] = append(there, p)
	return p
}

// settle ends a pending file: it is a memory now, or will never be one.
func (m *Memory) settle(p *Pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	left := slices.DeleteFunc(m.pending[p.place], func(x *Pending) bool { return x == p })
	if m.pending[p.place] = left; len(left) == 0 {
		delete(m.pending, p.place)
	}
}

// Uncommitted tells whether a directory has names that only some session sees.
func (m *Memory) Uncommitted(dir store.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.pending {
		if p.Parent == dir {
			return true
		}
	}
	for p := range m.backups {
		if p.Parent == dir {
			return true
		}
	}
	return false
}

// GiveUp ends a pending file that will not be committed: its program closed it after a commit that failed.
func (m *Memory) GiveUp(p *Pending) { m.settle(p) }

// pendingIn lists a session's pending files in a directory, by name.
func (m *Memory) pendingIn(dir store.ID, s *Session) []*Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*Pending
	for place, all := range m.pending {
		for _, p := range all {
			if place.Parent == dir && p.Session == s {
				found = append(found, p)
			}
		}
	}
	slices.SortFunc(found, func(a, b *Pending) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return found
}

// backup is a memory that an editor has just renamed to its backup name. For the editor's session the old name is free,
// as rename(2) promises, until the editor makes the new file, ends, or backupFor has passed; the memory itself is
// untouched, so that an editor that dies in between has deleted nothing.
type backup struct {
	id      store.ID
	session *Session
	proc    Proc
	until   time.Time
}

const backupFor = time.Minute

func (m *Memory) hide(p store.Place, b *backup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backups[p] = b
}

// hidden tells whether the name is free for this session, as the source of its backup rename.
func (m *Memory) hidden(p store.Place, s *Session) bool {
	m.mu.Lock()
	b := m.backups[p]
	m.mu.Unlock()
	if b == nil || b.session != s {
		return false
	}
	if time.Now().Before(b.until) && b.proc.Alive != nil && b.proc.Alive() {
		return true
	}
	m.unhide(p, b)
	return false
}

// unhide ends a backup; nil ends whatever is there.
func (m *Memory) unhide(p store.Place, b *backup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b == nil || m.backups[p] == b {
		delete(m.backups, p)
	}
}

// anyBackups is the cheap test for the common case of none.
func (m *Memory) anyBackups() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.backups) > 0
}
