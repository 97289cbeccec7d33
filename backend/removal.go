package backend

import (
	"time"

	"memoryfs/backend/store"
)

// removal is a memory that a process has just unlinked. Programs that replace a file by unlink and create (git checkout,
// install, cp --remove-destination, mv from another file system) go on with the same memory: if the same process makes
// the name anew within removalFor, its file is the memory's next version, after the delete.
type removal struct {
	id      store.ID
	session *Session
	proc    string
	until   time.Time
}

const (
	removalFor  = time.Minute
	maxRemovals = 1 << 12 // then those that are over are forgotten, and if that is not enough, all
)

func (m *Memory) removed(p store.Place, id store.ID, c Caller) {
	if c.Session == nil || c.Proc.Key == "" || p.Owner != "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.removals) >= maxRemovals {
		now := time.Now()
		for at, r := range m.removals {
			if r.until.Before(now) {
				delete(m.removals, at)
			}
		}
		if len(m.removals) >= maxRemovals {
			clear(m.removals)
		}
	}
	m.removals[p] = removal{id, c.Session, c.Proc.Key, time.Now().Add(removalFor)}
}

// continues finds the memory that a new file of this name is the next version of. It is asked once: who creates the name
// after that makes a memory of its own.
func (m *Memory) continues(p store.Place, c Caller) (store.ID, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.removals[p]
	delete(m.removals, p)
	if !ok || r.session != c.Session || r.proc != c.Proc.Key || time.Now().After(r.until) {
		return store.ID{}, false
	}
	return r.id, true
}
