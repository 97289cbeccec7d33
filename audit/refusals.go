package audit

import (
	"strings"
	"sync"
	"time"
)

// refusals counts what is refused again and again, so that a caller who is refused cannot fill the disk: the first of a
// kind is written at once, identical ones within a minute become one record.
type refusals struct {
	mu    sync.Mutex
	kinds map[string]*counted
}

type counted struct {
	r     Record
	since time.Time // of the last record of this kind
	count int       // since then
}

const (
	countFor = time.Minute
	maxKinds = 4096 // counted at once; beyond, one kind a principal
)

func (f *refusals) init() { f.kinds = map[string]*counted{} }

// note returns whether r is to be written now.
func (f *refusals) note(r Record, now time.Time) (write bool, w Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.Join([]string{r.Kind, r.Principal, r.Session, r.Op, r.Path, r.Errno}, "\x00")
	if len(f.kinds) >= maxKinds && f.kinds[key] == nil {
		r.Path, r.Session = "", ""
		key = strings.Join([]string{r.Kind, r.Principal, r.Errno}, "\x00")
	}
	c := f.kinds[key]
	if c == nil {
		f.kinds[key] = &counted{r: r, since: now}
		return true, r
	}
	c.r = r
	c.count++
	return false, r
}

// flush writes what was counted for a minute, or all of it.
func (f *refusals) flush(all bool, now time.Time, write func(Record)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, c := range f.kinds {
		if !all && now.Sub(c.since) < countFor {
			continue
		}
		if c.count == 0 {
			if now.Sub(c.since) >= countFor {
				delete(f.kinds, key)
			}
			continue
		}
		c.r.Count = c.count
		write(c.r)
		c.since, c.count = now, 0
	}
}

// Refuse records a refusal, or any other event that may repeat without end. It never waits for the disk.
func (l *Log) Refuse(r Record) {
	if write, r := l.refuse.note(r, time.Now()); write {
		l.enqueue(r)
	}
}
