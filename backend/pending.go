package backend

import (
	"slices"
	"sync"
	"time"

	"memoryfs/backend/store"
)

// Pending is a file that was created and is not committed yet: it has a name, an id and an inode number, so that its
// program can stat it and nobody else can create the same name exclusively, but it is not in the store. A crash leaves
// nothing of it. Its first commit makes it a memory. Sessions that create one name at a time share the Pending, and see
// it; for the others it is not there.
type Pending struct {
	ID      store.ID
	Ino     uint64
	Created time.Time
	revives bool // it goes on with a memory that was deleted: see removal

	mu       sync.Mutex
	idle     *sync.Cond // not state pendingCommitting
	state    pendingState
	sessions map[*Session]struct{} // that created it
	place    store.Place
	mode     uint32
	mtime    time.Time // set by utimens before the commit; zero: the time of the commit
	xattrs   map[string][]byte
}

// pendingState of a Pending: open, committing and back, then for ever committed or gone.
type pendingState uint8

const (
	pendingOpen pendingState = iota
	pendingCommitting
	pendingCommitted
	pendingGone // unlinked, or given up
)

func newPending(id store.ID, ino uint64, s *Session, place store.Place, mode uint32) *Pending {
	p := &Pending{ID: id, Ino: ino, Created: time.Now(), sessions: map[*Session]struct{}{s: {}}, place: place, mode: mode}
	p.idle = sync.NewCond(&p.mu)
	return p
}

// Place is where it will be, and whether it is still to come.
func (p *Pending) Place() (place store.Place, live bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.place, p.state <= pendingCommitting
}

// begin claims it for a commit (end tells how that went), or for an unlink. It waits for a commit that runs, and returns
// the state that it found: pendingOpen if the claim succeeded.
func (p *Pending) begin(claim pendingState) pendingState {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.state == pendingCommitting {
		p.idle.Wait()
	}
	found := p.state
	if found == pendingOpen {
		p.state = claim
	}
	return found
}

func (p *Pending) end(state pendingState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	p.idle.Broadcast()
}

// Inode is what a program that stats it sees.
func (p *Pending) Inode() store.Inode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return store.Inode{ID: p.ID, Type: store.TypeFile, Mode: p.mode, Ino: p.Ino, Parent: p.place.Parent, Name: p.place.Name,
		Ctime: p.Created, Btime: p.Created, Atime: p.Created, Xattrs: p.xattrs, Gone: p.state > pendingCommitting}
}

func (p *Pending) committed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pendingCommitted
}

func (p *Pending) seenBy(s *Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.sessions[s]
	return ok
}

// settled waits for a commit that runs, and tells whether the file is in the store, or gone: then there is nothing to
// change here. p.mu is held.
func (p *Pending) settled() bool {
	for p.state == pendingCommitting {
		p.idle.Wait()
	}
	return p.state != pendingOpen
}

// setattr changes what the first commit will have. done is false if that has happened already.
func (p *Pending) setattr(r store.SetattrRequest) (done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled() {
		return false
	}
	if r.Mode != nil {
		p.mode = *r.Mode
	}
	if r.Mtime != nil {
		p.mtime = *r.Mtime
	}
	return true
}

// pendingAt finds the pending file of a name, if this session has created it.
func (m *Memory) pendingAt(p store.Place, s *Session) *Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.pending[p]; x != nil && x.seenBy(s) {
		return x
	}
	return nil
}

// pendingAny tells whether some session is creating this name.
func (m *Memory) pendingAny(p store.Place) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pending[p] != nil
}

// reserve registers a pending file and returns it, or the one that is there already, which the session shares from now
// on. With excl it returns nil if one is there.
func (m *Memory) reserve(p *Pending, s *Session, excl bool) *Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := m.pending[p.place]
	switch {
	case there == nil:
		m.pending[p.place] = p
		return p
	case excl:
		return nil
	}
	there.mu.Lock()
	defer there.mu.Unlock()
	there.sessions[s] = struct{}{}
	return there
}

// settle takes a pending file off the names: it is a memory now, or gone.
func (m *Memory) settle(p *Pending, state pendingState) {
	p.end(state)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending[p.place] == p {
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
func (m *Memory) GiveUp(p *Pending) {
	if p.begin(pendingGone) == pendingOpen {
		m.settle(p, pendingGone)
	}
}

// pendingIn lists a session's pending files in a directory, in the order of their making.
func (m *Memory) pendingIn(dir store.ID, s *Session) []*Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*Pending
	for place, p := range m.pending {
		if place.Parent == dir && p.seenBy(s) {
			found = append(found, p)
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
