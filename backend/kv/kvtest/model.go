package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"memoryfs/backend/kv"
)

// Draw returns a number in [0, n), n > 0. what names the choice.
type Draw func(what string, n int) int

// TB is what Model needs of a test: *testing.T and *rapid.T both are one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

var _ TB = (*testing.T)(nil)

// Model takes steps random steps on an empty store and compares everything that can be seen with a map.
func Model(t TB, s kv.Store, draw Draw, steps int) {
	m := &model{t: t, s: s, draw: draw, now: map[string]kv.Entry{}}
	w, err := s.Watch(context.Background(), nil, 1)
	if err != nil {
		t.Fatalf("watch: %v", err)
		return
	}
	m.watch = w
	defer w.Close()
	for range steps {
		switch m.draw("step", 10) {
		case 0:
			m.openSnapshot()
		case 1:
			m.closeSnapshot()
		case 2:
			m.checkSnapshot()
		case 3:
			m.drain()
		default:
			m.commit()
		}
	}
	for len(m.snaps) > 0 {
		m.checkSnapshot()
		m.closeSnapshot()
	}
	m.drain()
}

// model is what the store should be.
type model struct {
	t     TB
	s     kv.Store
	draw  Draw
	now   map[string]kv.Entry
	rev   kv.Rev
	snaps []frozen
	watch kv.Watcher
	due   []kv.Batch // committed, not yet watched
}

type frozen struct {
	kv.Snapshot
	rev  kv.Rev
	want map[string]kv.Entry
}

// key draws from a small set, so that keys meet; some are prefixes of others.
func (m *model) key() string {
	return []string{"a", "a/", "a/1", "a/2", "a/2/x", "b", "b\x00", "\xff", "c/1", "c/2"}[m.draw("key", 10)]
}

func (m *model) guard() (kv.Guard, bool) {
	k := m.key()
	switch e, ok := m.now[k]; m.draw("guard", 4) {
	case 0:
		return kv.KeyExists([]byte(k)), ok
	case 1:
		return kv.PrefixEmpty([]byte(k)), !slices.ContainsFunc(m.keys(m.now), func(o string) bool { return strings.HasPrefix(o, k) })
	case 2:
		return kv.KeyRev([]byte(k), e.Rev), true
	default:
		rev := kv.Rev(m.draw("rev", int(m.rev)+2))
		return kv.KeyRev([]byte(k), rev), rev == e.Rev
	}
}

func (m *model) commit() {
	var guards []kv.Guard
	holds := true
	for range m.draw("guards", 3) {
		g, ok := m.guard()
		guards, holds = append(guards, g), holds && ok
	}
	var ops []kv.Op
	seen, twice := map[string]bool{}, false
	for i := range 1 + m.draw("ops", 3) {
		k := m.key()
		twice = twice || seen[k]
		seen[k] = true
		if m.draw("delete", 3) == 0 {
			ops = append(ops, kv.Delete([]byte(k)))
		} else {
			ops = append(ops, kv.Put([]byte(k), bytes.Repeat([]byte{byte(i)}, m.draw("size", 40))))
		}
	}
	rev, err := m.s.Commit(context.Background(), guards, ops)
	switch {
	case twice && errors.Is(err, kv.ErrInvalid), !twice && !holds && errors.Is(err, kv.ErrConflict):
	case twice || !holds || err != nil || rev <= m.rev:
		m.t.Fatalf("commit of %v with %v: revision %d, %v; guards hold: %v, key twice: %v, last revision %d", ops, guards, rev, err, holds, twice, m.rev)
	default:
		m.apply(rev, ops)
	}
}

func (m *model) apply(rev kv.Rev, ops []kv.Op) {
	b := kv.Batch{Rev: rev}
	for _, op := range ops {
		b.Keys = append(b.Keys, op.Key)
		if op.Kind == kv.OpDelete {
			delete(m.now, string(op.Key))
		} else {
			m.now[string(op.Key)] = kv.Entry{Key: op.Key, Value: op.Value, Rev: rev}
		}
	}
	m.rev = rev
	m.due = append(m.due, b)
}

func (m *model) openSnapshot() {
	p, err := m.s.Snapshot(context.Background())
	if err != nil || p.Rev() != m.rev {
		m.t.Fatalf("snapshot after revision %d: %v", m.rev, err)
	}
	want := make(map[string]kv.Entry, len(m.now))
	for k, e := range m.now {
		want[k] = e
	}
	m.snaps = append(m.snaps, frozen{p, m.rev, want})
}

func (m *model) closeSnapshot() {
	if len(m.snaps) > 0 {
		i := m.draw("snapshot", len(m.snaps))
		m.snaps[i].Close()
		m.snaps = slices.Delete(m.snaps, i, i+1)
	}
}

func (m *model) checkSnapshot() {
	if len(m.snaps) == 0 {
		return
	}
	p := m.snaps[m.draw("snapshot", len(m.snaps))]
	prefix, page := "", 1+m.draw("page", 12)
	if m.draw("prefixed", 2) == 1 {
		prefix = m.key()
	}
	var want, got []string
	for _, k := range m.keys(p.want) {
		if strings.HasPrefix(k, prefix) {
			want = append(want, show(p.want[k]))
		}
	}
	for after, full := []byte(nil), true; full; {
		es, err := p.List([]byte(prefix), after, page)
		if err != nil || len(es) > page {
			m.t.Fatalf("list: %d of %d, %v", len(es), page, err)
		}
		for _, e := range es {
			got, after = append(got, show(e)), e.Key
		}
		full = len(es) == page
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("under %q at %d the store has\n%q\nwant\n%q", prefix, p.rev, got, want)
	}
	k := m.key()
	e, err := p.Get([]byte(k))
	if err != nil || e[0].Rev != p.want[k].Rev || !bytes.Equal(e[0].Value, p.want[k].Value) {
		m.t.Fatalf("get %q at %d: %v, %v; want %v", k, p.rev, e, err, p.want[k])
	}
}

// drain takes what the watcher is due.
func (m *model) drain() {
	for _, want := range m.due {
		got, err := m.watch.Next(context.Background())
		if err != nil || got.Rev != want.Rev || !slices.EqualFunc(sorted(got.Keys), sorted(want.Keys), bytes.Equal) {
			m.t.Fatalf("watch: %v, %v; want %v", got, err, want)
		}
	}
	m.due = nil
}

func sorted(keys [][]byte) [][]byte {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

func (m *model) keys(of map[string]kv.Entry) []string {
	var out []string
	for k := range of {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func show(e kv.Entry) string { return fmt.Sprintf("%q@%d=%x", e.Key, e.Rev, e.Value) }
