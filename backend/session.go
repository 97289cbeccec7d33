package backend

import (
	"slices"
	"sync"
	"time"

	"memoryfs/backend/store"
	"memoryfs/policy"
)

// Proc is the calling process, resolved once at OPEN. The zero value is a process that is not known: it has no
// observations of its own.
type Proc struct {
	Key       string      // unique over pid reuse: pid and start time; "" unknown
	Name      string      // for the record only
	Ancestors []string    // Keys of its parents, nearest first
	Alive     func() bool // nil: not alive
}

// Caller is who asks, beyond the View's principal: bound when a handle is opened and kept in it.
type Caller struct {
	Session *Session
	Proc    Proc
	Claimed policy.Claimed
}

const (
	maxObserved = 1 << 16 // observations kept per session, and again for its processes; the oldest half is dropped
	maxRefusals = 200     // kept for .memory/errors per session
	maxSessions = 1 << 14 // sessions of a Memory; the least recently used ones go first
)

// Session is one run of a principal: what it has observed, and its last refusals. It lives in memory: after a restart
// of the daemon nothing is observed, so the first write of a session that has not read again is "base: none".
// Safe for concurrent use.
type Session struct {
	Principal string
	Name      string

	mu       sync.Mutex
	seq      uint64
	used     time.Time
	observed map[store.ID]observation
	byProc   map[procMemory]observation
	refusals []Refusal
}

type observation struct {
	sum store.Sum
	seq uint64 // age
}

type procMemory struct {
	proc string
	id   store.ID
}

func newSession(principal, name string) *Session {
	return &Session{Principal: principal, Name: name, used: time.Now(),
		observed: map[store.ID]observation{}, byProc: map[procMemory]observation{}}
}

// Observe notes that this process, and so its session, has seen the content sum of id. What a process has seen, the
// parents that started it know too, if they ever looked themselves.
func (s *Session) Observe(p Proc, id store.ID, sum store.Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	s.used = time.Now()
	o := observation{sum, s.seq}
	s.observed[id] = o
	if p.Key != "" {
		s.byProc[procMemory{p.Key, id}] = o
		for _, a := range p.Ancestors {
			if _, ok := s.byProc[procMemory{a, id}]; ok {
				s.byProc[procMemory{a, id}] = o
			}
		}
	}
	dropOldest(s.observed)
	dropOldest(s.byProc)
}

// Wrote is Observe for a commit, which is no reading: it moves what the session knows, and what the process knows if
// it had read before, so that a shell that only writes is never held to a reading of its own.
func (s *Session) Wrote(p Proc, id store.ID, sum store.Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	s.used = time.Now()
	o := observation{sum, s.seq}
	s.observed[id] = o
	for _, key := range append([]string{p.Key}, p.Ancestors...) {
		if _, ok := s.byProc[procMemory{key, id}]; ok {
			s.byProc[procMemory{key, id}] = o
		}
	}
	dropOldest(s.observed)
}

// Knows compares what the caller has seen of id with its head. known is false if neither the process nor the session
// ever observed it. The process's own reading counts before its session's: two processes of one session that both
// read and then both write do collide (cases/field.md O16).
func (s *Session) Knows(p Proc, id store.ID, head store.Sum) (known, current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.byProc[procMemory{p.Key, id}]; ok && p.Key != "" {
		return true, o.sum == head
	}
	o, ok := s.observed[id]
	return ok, ok && o.sum == head
}

// seen is what the caller has seen of id last, as Knows takes it; zero if nothing.
func (s *Session) seen(p Proc, id store.ID) store.Sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.byProc[procMemory{p.Key, id}]; ok && p.Key != "" {
		return o.sum
	}
	return s.observed[id].sum
}

// HasRead tells whether this very process has read id.
func (s *Session) HasRead(p Proc, id store.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.byProc[procMemory{p.Key, id}]
	return ok && p.Key != ""
}

// Forget drops what was observed of id (it was deleted).
func (s *Session) Forget(id store.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.observed, id)
}

// Refused keeps r for .memory/errors.
func (s *Session) refused(r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = append(s.refusals, r)
	if over := len(s.refusals) - maxRefusals; over > 0 {
		s.refusals = slices.Delete(s.refusals, 0, over)
	}
}

// Refusals returns this session's last refusals, oldest first.
func (s *Session) Refusals() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refusals)
}

// dropOldest halves a map that has grown past maxObserved. Forgetting is safe: a write of what is not observed is
// recorded with base "none" and still compared with the version its handle was opened on.
func dropOldest[K comparable](m map[K]observation) {
	if len(m) <= maxObserved {
		return
	}
	ages := make([]uint64, 0, len(m))
	for _, o := range m {
		ages = append(ages, o.seq)
	}
	slices.Sort(ages)
	limit := ages[len(ages)/2]
	for k, o := range m {
		if o.seq < limit {
			delete(m, k)
		}
	}
}

// Session returns the session of that name, making it if need be. The same name of the same principal is the same
// session, on whatever mount.
func (m *Memory) Session(principal, name string) *Session {
	key := principal + "\x00" + name
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[key]; ok {
		return s
	}
	if len(m.sessions) >= maxSessions {
		m.dropOldSessions()
	}
	s := newSession(principal, name)
	m.sessions[key] = s
	return s
}

// dropOldSessions forgets the least recently used half. m.mu is held.
func (m *Memory) dropOldSessions() {
	type aged struct {
		key  string
		used time.Time
	}
	all := make([]aged, 0, len(m.sessions))
	for k, s := range m.sessions {
		s.mu.Lock()
		all = append(all, aged{k, s.used})
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b aged) int { return a.used.Compare(b.used) })
	for _, a := range all[:len(all)/2] {
		delete(m.sessions, a.key)
	}
}
