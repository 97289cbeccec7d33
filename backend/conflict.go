package backend

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"memoryfs/backend/store"
	"memoryfs/policy"
)

// Conflict is a stale write whose bytes are kept for who made it: mine, with the base that it started from and theirs,
// the version that was there instead. Only its principal sees it. It goes after Conflicts.Keep, or when there are more
// than Conflicts.Max, or more bytes than Conflicts.MaxBytes: the oldest first.
type Conflict struct {
	Name         string    `json:"name"`
	Time         time.Time `json:"time"`
	Op           string    `json:"op"`
	Path         string    `json:"-"` // of the memory, when it happened; may hold any bytes
	Session      string    `json:"session,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Mine         Side      `json:"mine"`
	Base         *Side     `json:"base,omitempty"`   // nil: it started from nothing, or from what it never read
	Theirs       *Side     `json:"theirs,omitempty"` // nil: they removed it
	Fixed        bool      `json:"fixed"`            // its principal has saved merged

	owner  string
	id     store.ID
	memory store.ID
	fixed  store.Part
}

// Side is one of a conflict's contents.
type Side struct {
	Version uint64 `json:"version,omitempty"` // 0: no version of the memory
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`

	sum store.Sum
}

func side(sum store.Sum, size int64, version uint64) Side {
	return Side{Version: version, SHA256: Hex(sum), Size: size, sum: sum}
}

// conflictNote is what is stored of a conflict beside its bytes.
type conflictNote struct {
	Conflict
	Path   []byte   `json:"path"`
	Memory store.ID `json:"memory"`
}

// LostWrite is a stale write whose bytes are to be kept.
type LostWrite struct {
	Memory store.ID
	Path   string
	Op     string
	Base   store.Sum // zero: none
	Mine   store.Bytes
	Again  string // name of a conflict that this continues: its bytes are replaced; "" makes a new one
	Unkept bool   // there is nothing to keep: the bytes are those of a conflict already
}

// lost keeps the bytes of a stale write, and records and returns its refusal. Bytes that cannot be kept do not change
// what the writer is told.
func (v *View) lost(ctx context.Context, c Caller, l LostWrite, d policy.Decision) error {
	kept := ""
	if !l.Unkept && l.Mine != nil {
		var err error
		if kept, err = v.KeepLost(ctx, c, l); err != nil {
			v.m.log.Warn("the bytes of a stale write could not be kept", "principal", v.principal.ID, "path", l.Path, "error", err)
		}
	}
	n := Node{Path: l.Path}
	if _, head, err := v.Current(ctx, l.Memory); err == nil {
		n.Head = head
	}
	return v.stale(c, l.Op, n, d, kept)
}

// KeepLost keeps the bytes of a stale write and returns the conflict's name.
func (v *View) KeepLost(ctx context.Context, c Caller, l LostWrite) (string, error) {
	ctx = context.WithoutCancel(ctx)
	k := Conflict{Time: time.Now(), Op: l.Op, Path: l.Path, Conversation: c.Claimed.Conversation, Reason: c.Claimed.Reason,
		owner: v.principal.ID, id: v.m.store.NewID(), memory: l.Memory}
	if c.Session != nil {
		k.Session = c.Session.Name
	}
	k.Name = conflictName(k)
	if l.Again != "" {
		old, err := v.Conflict(ctx, c, l.Again)
		if err == nil {
			k = old
			k.Base, k.Theirs, k.Fixed = nil, nil, false
		}
	}
	if err := v.sides(ctx, &k, l); err != nil {
		return "", wrap(err, l.Path)
	}
	kept, err := v.m.store.Keep(ctx, k.owner, k.id, []store.Bytes{l.Mine}, func(parts []store.Part) ([]byte, error) {
		k.Mine = side(parts[0].Sum, parts[0].Size, 0)
		return k.note()
	})
	if err != nil {
		return "", wrap(err, l.Path)
	}
	v.m.bound(ctx, kept)
	return k.Name, nil
}

// recentVersions are looked through for the content that a stale writer started from.
const recentVersions = 64

// sides finds the versions that the write started from and lost against.
func (v *View) sides(ctx context.Context, k *Conflict, l LostWrite) error {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	head, err := snap.Head(l.Memory)
	switch {
	case errors.Is(err, store.ErrNotExist):
	case err != nil:
		return err
	default:
		s := side(head.Sum, head.Size, head.Version)
		k.Theirs = &s
	}
	versions, err := snap.Versions(l.Memory, 0, recentVersions)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	for _, ver := range versions {
		if ver.Sum == l.Base && ver.Kind != store.KindDelete && l.Base != (store.Sum{}) {
			s := side(ver.Sum, ver.Size, ver.Number)
			k.Base = &s
			break
		}
	}
	return nil
}

func (k Conflict) note() ([]byte, error) {
	return json.Marshal(conflictNote{k, []byte(k.Path), k.memory})
}

// conflictName is a file name that sorts by time and tells what it is about.
func conflictName(k Conflict) string {
	last := k.Path[strings.LastIndexByte(k.Path, '/')+1:]
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, last)
	return fmt.Sprintf("%s-%s-%s", k.Time.UTC().Format("20060102T150405Z"), safe[:min(len(safe), 80)], hex.EncodeToString(k.id[13:]))
}

func decodeConflict(kept store.Kept) (Conflict, error) {
	var n conflictNote
	if err := json.Unmarshal(kept.Note, &n); err != nil || len(kept.Parts) == 0 {
		return Conflict{}, fmt.Errorf("conflict %s: %w", kept.ID, ErrInternal)
	}
	k := n.Conflict
	k.Path, k.memory, k.owner, k.id = string(n.Path), n.Memory, kept.Owner, kept.ID
	for _, s := range []*Side{&k.Mine, k.Base, k.Theirs} {
		if s == nil {
			continue
		}
		raw, err := hex.DecodeString(s.SHA256)
		if err != nil || len(raw) != len(s.sum) {
			return Conflict{}, fmt.Errorf("conflict %s: %w", kept.ID, ErrInternal)
		}
		s.sum = store.Sum(raw)
	}
	if k.Fixed && len(kept.Parts) == 2 {
		k.fixed = kept.Parts[1]
	}
	return k, nil
}

// Conflicts lists the principal's, oldest first.
func (v *View) Conflicts(ctx context.Context, _ Caller) ([]Conflict, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return nil, wrap(err, "conflicts")
	}
	defer snap.Close()
	kept, err := snap.Kept(v.principal.ID)
	if err != nil {
		return nil, wrap(err, "conflicts")
	}
	out := make([]Conflict, 0, len(kept))
	for _, k := range kept {
		c, err := decodeConflict(k)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Conflict finds one by its name. ErrNotExist.
func (v *View) Conflict(ctx context.Context, c Caller, name string) (Conflict, error) {
	all, err := v.Conflicts(ctx, c)
	if err != nil {
		return Conflict{}, err
	}
	for _, k := range all {
		if k.Name == name {
			return k, nil
		}
	}
	return Conflict{}, fmt.Errorf("conflict %s %w (it may be older than %s, or dropped)", name, ErrNotExist, v.m.settings.Conflicts.Keep)
}

// bound keeps a principal's conflicts within the settings; the one that was just kept stays.
func (m *Memory) bound(ctx context.Context, last store.Kept) {
	snap, err := m.snapshot(ctx)
	if err != nil {
		m.log.Warn("old conflicts could not be removed", "error", err)
		return
	}
	all, err := snap.Kept(last.Owner)
	snap.Close()
	if err != nil {
		m.log.Warn("old conflicts could not be removed", "error", err)
		return
	}
	slices.Reverse(all) // newest first
	var bytes int64
	for i, k := range all {
		for _, p := range k.Parts {
			bytes += p.Size
		}
		if k.ID != last.ID && (i >= m.settings.Conflicts.Max || bytes > m.settings.Conflicts.MaxBytes) {
			m.dropKept(ctx, k)
		}
	}
}

func (m *Memory) dropKept(ctx context.Context, k store.Kept) {
	if err := m.store.Drop(ctx, k.Owner, k.ID); err != nil && !errors.Is(err, store.ErrNotExist) {
		m.log.Warn("an old conflict could not be removed", "error", err)
	}
}

// sweepConflicts removes those that are older than Conflicts.Keep.
func (m *Memory) sweepConflicts(ctx context.Context) error {
	snap, err := m.snapshot(ctx)
	if err != nil {
		return err
	}
	all, err := snap.AllKept()
	snap.Close()
	if err != nil {
		return err
	}
	old := time.Now().Add(-m.settings.Conflicts.Keep)
	for _, k := range all {
		if c, err := decodeConflict(k); err == nil && c.Time.Before(old) {
			m.dropKept(ctx, k)
		}
	}
	return nil
}
