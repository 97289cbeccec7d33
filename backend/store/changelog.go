package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"memoryfs/backend/kv"
)

// Logged is one change of the tree or of a content, as the change index has it: who, when, where, why, and which version.
// It is written in the commit of the change. Changes of attributes are not in it.
type Logged struct {
	Rev       kv.Rev    `json:"-"`
	Time      time.Time `json:"time"`
	Kind      Kind      `json:"kind"`
	Type      Type      `json:"type"`
	ID        ID        `json:"-"`
	Version   uint64    `json:"version,omitempty"` // 0: the change made none
	Path      string    `json:"-"`                 // where it is (was, for a delete)
	From      string    `json:"-"`                 // former path of a rename or move
	Principal string    `json:"principal"`
	Session   string    `json:"session,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// storedLogged is the value of w/<time><op>; names may hold any bytes.
type storedLogged struct {
	Logged
	ID   []byte `json:"id"`
	Path []byte `json:"path"`
	From []byte `json:"from,omitempty"`
}

// commitSlack is longer than a commit may take: the time in a key is that before the commit, so that a change whose key
// is that much older can have a higher revision.
const commitSlack = time.Minute

// prefixLog is the index's keys up to a time: newest first, so that List begins at the end that is asked for.
func prefixLog() []byte { return []byte("w/") }

func keyLogTime(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(prefixLog(), ^uint64(t.UnixNano()))
}

func keyLog(t time.Time, op ID) []byte { return cat(keyLogTime(t), op[:]) }

// logged adds the change to the index.
func (p *plan) logged(t time.Time, ch Change) error {
	c := p.changed
	l := Logged{Time: t, Kind: c.Kind, Type: c.Type, Principal: ch.Prov.Principal, Session: ch.Prov.Session, Reason: ch.Prov.Reason}
	if c.Version != nil {
		l.Version = c.Version.Number
	}
	b, err := json.Marshal(storedLogged{Logged: l, ID: c.ID[:], Path: []byte(c.Path), From: []byte(c.From)})
	p.ops = append(p.ops, kv.Put(keyLog(t, ch.Op), append([]byte{formLogged}, b...)))
	return err
}

func decodeLogged(e kv.Entry) (Logged, error) {
	var s storedLogged
	if len(e.Value) == 0 || e.Value[0] != formLogged || json.Unmarshal(e.Value[1:], &s) != nil || len(s.ID) != len(ID{}) {
		return Logged{}, fmt.Errorf("change %x: %w", e.Key[2:], ErrCorrupt)
	}
	l := s.Logged
	l.Rev, l.ID, l.Path, l.From = e.Rev, ID(s.ID), string(s.Path), string(s.From)
	return l, nil
}

// Changes calls fn for the changes with a revision over after, newest first by time, until fn says false; since is the
// time of the commit with that revision, or earlier.
func (p *Snapshot) Changes(ctx context.Context, after kv.Rev, since time.Time, fn func(Logged) bool) error {
	end := string(keyLogTime(since.Add(-commitSlack)))
	var from []byte
	for {
		page, err := p.kv.List(prefixLog(), from, pageSize)
		if err != nil {
			return err
		}
		for _, e := range page {
			from = e.Key
			if string(e.Key) > end {
				return nil
			}
			if e.Rev <= after {
				continue
			}
			l, err := decodeLogged(e)
			if err != nil {
				return err
			}
			if !fn(l) {
				return nil
			}
		}
		if len(page) < pageSize || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Seen is how far a session has looked at the changes.
type Seen struct {
	Rev  kv.Rev
	Time time.Time
}

func keySeen(owner, session string) []byte {
	return cat([]byte("s/"), []byte(owner), []byte{0}, []byte(session))
}

// Seen returns the zero value for a session that never looked.
func (p *Snapshot) Seen(owner, session string) (Seen, error) {
	e, err := p.get(keySeen(owner, session))
	if err != nil || e.Rev == 0 {
		return Seen{}, err
	}
	return decodeSeen(e)
}

func decodeSeen(e kv.Entry) (Seen, error) {
	r := &reader{b: e.Value}
	s := Seen{Rev: kv.Rev(r.uint()), Time: r.time()}
	return s, r.end(fmt.Sprintf("mark %q", e.Key))
}

// SetSeen keeps how far a session has looked. The last one counts.
func (s *Store) SetSeen(ctx context.Context, owner, session string, seen Seen) error {
	w := &writer{}
	w.uint(uint64(seen.Rev))
	w.time(seen.Time)
	_, err := s.kv.Commit(ctx, nil, []kv.Op{kv.Put(keySeen(owner, session), w.b)})
	return err
}

// SweepSeen forgets the sessions that have not looked since t.
func (s *Store) SweepSeen(ctx context.Context, t time.Time) error {
	var after []byte
	for {
		snap, err := s.kv.Snapshot(ctx)
		if err != nil {
			return err
		}
		page, err := snap.List([]byte("s/"), after, pageSize)
		snap.Close()
		if err != nil {
			return err
		}
		for _, e := range page {
			after = e.Key
			if seen, err := decodeSeen(e); err == nil && !seen.Time.Before(t) {
				continue
			}
			if _, err := s.kv.Commit(ctx, nil, []kv.Op{kv.Delete(e.Key)}); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}
