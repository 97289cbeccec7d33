package backend

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"memoryfs/backend/store"
)

// ConflictReadme tells what happened to a stale write and what its writer can do: the README of a conflict's directory,
// and `memoryfs conflicts show`.
func (v *View) ConflictReadme(ctx context.Context, c Caller, k Conflict) ([]byte, error) {
	s, err := v.conflictStory(ctx, c, k)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Your save of %q was refused: somebody changed it after you had read it.\nThe file holds their version; nothing of yours is lost.\n\n", s.path)
	fmt.Fprintf(&b, "when:          %s (%s)\n", k.Time.UTC().Format(time.RFC3339), k.Op)
	field(&b, "your session:  ", k.Session)
	field(&b, "your reason:   ", k.Reason)
	switch {
	case s.theirs == nil && k.Theirs == nil:
		fmt.Fprintf(&b, "they removed it\n")
	case s.theirs == nil:
		fmt.Fprintf(&b, "you may not read their version any more\n")
	default:
		t := s.theirs
		fmt.Fprintf(&b, "their version: %d, by %s, %s (%s)\n", t.Number, t.Prov.Principal, t.Time.UTC().Format(time.RFC3339), t.Kind)
		field(&b, "their session: ", t.Prov.Session)
		field(&b, "conversation:  ", t.Prov.Conversation)
		field(&b, "their reason:  ", t.Prov.Reason)
	}
	if k.Base != nil {
		fmt.Fprintf(&b, "you had read:  version %d\n", k.Base.Version)
	} else {
		fmt.Fprintf(&b, "you had read:  no version of it\n")
	}
	b.WriteString("\nHere:\n  mine     what you were saving\n")
	if k.Base != nil {
		b.WriteString("  base     what you had read\n")
	}
	if s.theirs != nil {
		b.WriteString("  theirs   what is in the file instead\n")
	}
	b.WriteString(mergedLine(k, s))
	fmt.Fprintf(&b, "\nWhat to do, one of:\n")
	if s.mergeable {
		fmt.Fprintf(&b, "  edit merged if it has conflict markers (you can save it here), then\n      memoryfs conflicts apply %s\n", k.Name)
		fmt.Fprintf(&b, "  or, without the command: cp merged over the file once the markers are gone\n")
	}
	fmt.Fprintf(&b, "  memoryfs conflicts apply --mine %s    your bytes on top of theirs, knowingly\n", k.Name)
	fmt.Fprintf(&b, "  memoryfs conflicts drop %s            you do not need it\n", k.Name)
	fmt.Fprintf(&b, "\nKept until %s, for you alone.\n", k.Time.Add(v.m.settings.Conflicts.Keep).UTC().Format(time.RFC3339))
	return b.Bytes(), nil
}

// field is a line of the README, if there is a value.
func field(b *bytes.Buffer, key, value string) {
	if value != "" {
		fmt.Fprintf(b, "%s%s\n", key, value)
	}
}

func mergedLine(k Conflict, s conflictStory) string {
	switch {
	case !s.mergeable:
		return "  (no merged: a side is missing, is no text, or is too long)\n"
	case k.Fixed:
		return "  merged   both together, as you saved it\n"
	case s.clashes == 0:
		return "  merged   both together: they do not touch each other, no markers\n"
	default:
		return fmt.Sprintf("  merged   both together, with conflict markers at %d places\n", s.clashes)
	}
}

// conflictStory is what a conflict's README tells.
type conflictStory struct {
	path      string         // where the memory is now; where it was, if it is gone
	theirs    *store.Version // what won; nil if they removed it, or it may not be read any more
	mergeable bool
	clashes   int // places with conflict markers in merged
}

// conflictStory finds out what there is to tell of a conflict.
func (v *View) conflictStory(ctx context.Context, c Caller, k Conflict) (conflictStory, error) {
	s := conflictStory{path: v.placeOf(ctx, k)}
	if k.Theirs == nil || !v.Readable(ctx, c, Node{Path: s.path}) {
		return s, nil
	}
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return s, wrap(err, k.Name)
	}
	defer snap.Close()
	ver, err := snap.Version(k.memory, k.Theirs.Version)
	if err != nil {
		return s, wrap(err, k.Name)
	}
	s.theirs = &ver
	merged, n, err := v.merge(ctx, k)
	s.mergeable, s.clashes = merged != nil, n
	return s, err
}
