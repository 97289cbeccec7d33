package audit

import (
	"slices"
	"sync"
	"time"
)

// refusals counts what is refused again and again, so that a caller who is refused cannot fill the disk: the first of a
// kind is written at once, identical ones within a minute become one record with their number. What is not written yet
// is here and nowhere else, so a full disk costs no memory.
type refusals struct {
	mu    sync.Mutex
	kinds map[kind]*counted
	of    map[string]int // kinds of each principal
	now   []kind         // to be written at once
	swept time.Time
}

// kind is what makes refusals identical.
type kind struct{ kind, principal, session, op, path, errno string }

type counted struct {
	r     Record    // the last one
	since time.Time // of the last record of this kind
	count int       // not written
}

const (
	countFor    = time.Minute
	sweepEvery  = time.Second
	maxKinds    = 2048 // counted at once
	maxKindsFor = 256  // of them one principal's; beyond either, they are counted without path and session
)

func newRefusals() *refusals {
	return &refusals{kinds: map[kind]*counted{}, of: map[string]int{}}
}

// note counts r. It returns whether something is to be written at once.
func (f *refusals) note(r Record, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(r, 1, now)
}

func (f *refusals) add(r Record, n int, now time.Time) bool {
	k := kind{r.Kind, r.Principal, r.Session, r.Op, r.Path, r.Errno}
	if f.kinds[k] == nil && (len(f.kinds) >= maxKinds || f.of[r.Principal] >= maxKindsFor) {
		r = Record{Time: r.Time, Kind: r.Kind, Op: r.Op, Principal: r.Principal, PKind: r.PKind, Errno: r.Errno,
			Cause: "more kinds of these than are counted one by one"}
		if len(f.kinds) >= 2*maxKinds { // so many principals
			r.Principal, r.PKind = "", ""
		}
		k = kind{kind: r.Kind, principal: r.Principal, op: r.Op, errno: r.Errno}
	}
	c := f.kinds[k]
	if c != nil {
		c.r = r
		c.count += n
		return false
	}
	f.kinds[k] = &counted{r: r, since: now, count: n}
	f.of[k.principal]++
	f.now = append(f.now, k)
	return true
}

// due takes the records that are to be written now: of new kinds, and what was counted for a minute, or all of it. Give
// them back if they cannot be written.
func (f *refusals) due(all bool, now time.Time) []Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Record
	for _, k := range f.now {
		out = f.take(out, f.kinds[k], now)
	}
	f.now = nil
	if !all && now.Sub(f.swept) < sweepEvery {
		return out
	}
	f.swept = now
	counted := len(out)
	for k, c := range f.kinds {
		switch old := now.Sub(c.since) >= countFor; {
		case c.count > 0 && (old || all):
			out = f.take(out, c, now)
		case c.count == 0 && old:
			delete(f.kinds, k)
			if f.of[k.principal]--; f.of[k.principal] == 0 {
				delete(f.of, k.principal)
			}
		}
	}
	slices.SortFunc(out[counted:], func(a, b Record) int { return a.Time.Compare(b.Time) })
	return out
}

func (f *refusals) take(out []Record, c *counted, now time.Time) []Record {
	if c == nil || c.count == 0 {
		return out
	}
	r := c.r
	if c.count > 1 {
		r.Count = c.count
	}
	c.since, c.count = now, 0
	return append(out, r)
}

// giveBack counts records again that could not be written; the next sweep takes them.
func (f *refusals) giveBack(rs []Record, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rs {
		n := max(1, r.Count)
		r.Count = 0
		k := kind{r.Kind, r.Principal, r.Session, r.Op, r.Path, r.Errno}
		if c := f.kinds[k]; c != nil {
			c.count += n
			c.since = now.Add(-countFor)
			continue
		}
		f.add(r, n, now)
	}
}

// Refuse records a refusal, or any other event that may repeat without end. It never waits for the disk. Records with the
// same kind, principal, session, op, path and errno count as one; the record written is the last of them.
func (l *Log) Refuse(r Record) {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Seq, r.Rev, r.Time = 0, 0, r.Time.UTC()
	if l.refusals.note(r, time.Now()) {
		l.Wake()
	}
}
