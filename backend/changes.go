package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"memoryfs/audit"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

const (
	firstLook  = 24 * time.Hour // what a session is shown that never looked
	maxChanges = 1000           // shown at once; the newest
	keepSeen   = 30 * 24 * time.Hour
)

// ChangeSet is what others have changed since a session last looked.
type ChangeSet struct {
	Since   time.Time // of the last look
	First   bool      // there was none: Since is a day ago
	Changes []store.Logged
	Cut     bool // there were more than are shown: older ones

	upto store.Seen
}

// Changes lists what was changed since this session last looked, oldest first, as far as the principal may read it
// today, without the session's own changes. It does not move the mark: SawChanges does.
func (v *View) Changes(ctx context.Context, c Caller) (ChangeSet, error) {
	now := time.Now()
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return ChangeSet{}, wrap(err, "changes")
	}
	defer snap.Close()
	seen, err := snap.Seen(v.principal.ID, c.Session.Name)
	if err != nil {
		return ChangeSet{}, wrap(err, "changes")
	}
	set := ChangeSet{Since: seen.Time, First: seen.Rev == 0, upto: store.Seen{Rev: snap.Rev(), Time: now}}
	if set.First {
		set.Since = now.Add(-firstLook)
	}
	err = snap.Changes(ctx, seen.Rev, set.Since, func(l store.Logged) bool {
		if set.First && l.Time.Before(set.Since) || l.Principal == v.principal.ID && l.Session == c.Session.Name {
			return true
		}
		if !v.maySeeChange(ctx, c, &l) {
			return true
		}
		if set.Cut = len(set.Changes) == maxChanges; !set.Cut {
			set.Changes = append(set.Changes, l)
		}
		return !set.Cut
	})
	slices.SortFunc(set.Changes, func(a, b store.Logged) int {
		if a.Rev < b.Rev {
			return -1
		}
		return 1
	})
	return set, wrap(err, "changes")
}

// maySeeChange decides by today's policy on the path of then; a former path that may not be known is taken out.
func (v *View) maySeeChange(ctx context.Context, c Caller, l *store.Logged) bool {
	isDir := l.Type == store.TypeDir
	may := func(path string) bool {
		action := policy.ActionRead
		if isDir {
			action = policy.ActionList
		}
		return v.mayKnow(ctx, c, path, isDir, false) &&
			v.decide(ctx, c, query{action: action, path: path, dir: isDir}).Effect == policy.Allow
	}
	if !may(l.Path) {
		return false
	}
	if l.From != "" && !may(l.From) {
		l.From = ""
	}
	return true
}

// SawChanges moves the session's mark: what is in set is not shown again. The mark outlives a restart; it is forgotten 30
// days after the last look.
func (v *View) SawChanges(ctx context.Context, c Caller, set ChangeSet) error {
	return wrap(v.m.store.SetSeen(context.WithoutCancel(ctx), v.principal.ID, c.Session.Name, set.upto), "changes")
}

// Text is the set as .memory/changes shows it.
func (s ChangeSet) Text() []byte {
	var b bytes.Buffer
	what := "your last look"
	if s.First {
		what = "a day ago: this session has not looked before"
	}
	fmt.Fprintf(&b, "# changed by others since %s (%s); reading this to its end is a look\n", s.Since.UTC().Format(time.RFC3339), what)
	if s.Cut {
		fmt.Fprintf(&b, "# only the newest %d; memoryfs log PATH tells the rest\n", maxChanges)
	}
	if len(s.Changes) == 0 {
		b.WriteString("# nothing\n")
	}
	for _, l := range s.Changes {
		fmt.Fprintf(&b, "%s  %-7s %s", l.Time.UTC().Format(time.RFC3339), l.Kind, audit.Quote(l.Path))
		if l.From != "" {
			fmt.Fprintf(&b, "  from %s", audit.Quote(l.From))
		}
		if l.Version > 0 {
			fmt.Fprintf(&b, "  version %d", l.Version)
		}
		fmt.Fprintf(&b, "  by %s", l.Principal)
		if l.Session != "" {
			fmt.Fprintf(&b, " in %s", oneLine(l.Session))
		}
		if l.Reason != "" {
			fmt.Fprintf(&b, ": %s", oneLine(l.Reason))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// oneLine keeps a claimed text from looking like a line of ours.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// sweepSeen forgets the marks of sessions that are long over.
func (m *Memory) sweepSeen(ctx context.Context) {
	if err := m.store.SweepSeen(ctx, time.Now().Add(-keepSeen)); err != nil && !errors.Is(err, context.Canceled) {
		m.log.Warn("sweep of old marks failed", "error", err)
	}
}
