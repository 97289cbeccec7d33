package backend

import (
	"context"
	"errors"
	"fmt"

	"memoryfs/backend/store"
	"memoryfs/backend/text"
)

// ConflictPart opens a conflict's "mine", "base", "theirs" or "merged". What they wrote is shown only to who may read the
// memory today. ErrNotExist if there is no such part: no base, they removed it, or it is no text that could be merged.
func (v *View) ConflictPart(ctx context.Context, c Caller, k Conflict, part string) (store.Bytes, error) {
	none := fmt.Errorf("%s of conflict %s %w", part, k.Name, ErrNotExist)
	if part != "mine" && !v.Readable(ctx, c, Node{Path: v.placeOf(ctx, k)}) {
		return nil, none
	}
	var s *Side
	switch part {
	case "mine":
		s = &k.Mine
	case "base":
		s = k.Base
	case "theirs":
		s = k.Theirs
	case "merged":
		if k.Fixed {
			return v.Content(ctx, store.Head{Sum: k.fixed.Sum, Size: k.fixed.Size})
		}
		merged, _, err := v.merge(ctx, k)
		if merged == nil && err == nil {
			err = none
		}
		return merged, err
	}
	if s == nil {
		return nil, none
	}
	return v.Content(ctx, store.Head{Sum: s.sum, Size: s.Size})
}

// maxMerge is up to where texts are merged, in bytes each.
const maxMerge = 4 << 20

// merge is the three-way merge of a conflict; nil if a side is missing, is no text or is too long.
func (v *View) merge(ctx context.Context, k Conflict) (ByteContent, int, error) {
	if k.Theirs == nil {
		return nil, 0, nil
	}
	var texts [3]string
	for i, s := range []*Side{k.Base, &k.Mine, k.Theirs} {
		if s == nil {
			continue // both began with nothing
		}
		if s.Size > maxMerge {
			return nil, 0, nil
		}
		b, err := v.bytes(ctx, s.sum, s.Size)
		if err != nil {
			return nil, 0, err
		}
		if text.Binary(b) {
			return nil, 0, nil
		}
		texts[i] = string(b)
	}
	merged, n := text.Merge(texts[0], texts[1], texts[2], k.labels())
	return ByteContent(merged), n, nil
}

func (k Conflict) labels() text.Labels {
	l := text.Labels{Mine: "mine"}
	if k.Theirs != nil {
		l.Theirs = fmt.Sprintf("theirs (version %d)", k.Theirs.Version)
	}
	return l
}

// placeOf is where the conflict's memory is now; where it was, if it is gone.
func (v *View) placeOf(ctx context.Context, k Conflict) string {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return k.Path
	}
	defer snap.Close()
	if path, err := snap.Path(k.memory); err == nil {
		return path
	}
	return k.Path
}

// FixConflict saves what the principal made of merged; ResolveConflict will take it.
func (v *View) FixConflict(ctx context.Context, c Caller, name string, content []byte) error {
	k, err := v.Conflict(ctx, c, name)
	if err != nil {
		return err
	}
	mine, err := v.Content(ctx, store.Head{Sum: k.Mine.sum, Size: k.Mine.Size})
	if err != nil {
		return err
	}
	k.Fixed = true
	kept, err := v.m.store.Keep(context.WithoutCancel(ctx), k.owner, k.id, []store.Bytes{mine, ByteContent(content)},
		func([]store.Part) ([]byte, error) { return k.note() })
	if err != nil {
		return wrap(err, name)
	}
	v.m.bound(ctx, kept)
	return nil
}

// ResolveConflict saves merged, or with takeMine the losing bytes as they are, as a new version of the memory on top of
// theirs, and drops the conflict. ErrInvalid while merged has conflict markers; ErrStale if somebody changed the memory
// once more.
func (v *View) ResolveConflict(ctx context.Context, c Caller, name string, takeMine bool) (Node, error) {
	k, err := v.Conflict(ctx, c, name)
	if err != nil {
		return Node{}, err
	}
	part := "merged"
	if takeMine {
		part = "mine"
	}
	content, err := v.ConflictPart(ctx, c, k, part)
	if err != nil {
		if errors.Is(err, ErrNotExist) {
			err = fmt.Errorf("%s cannot be merged (they removed it, or it is no text): take the losing bytes as they are, or drop it: %w", name, ErrInvalid)
		}
		return Node{}, err
	}
	b := make([]byte, content.Size())
	if n, err := content.ReadAt(b, 0); n < len(b) {
		return Node{}, wrap(err, name)
	}
	if !takeMine && text.HasMarkers(string(b), k.labels()) {
		return Node{}, fmt.Errorf("merged of %s still has conflict markers: edit it first: %w", name, ErrInvalid)
	}
	o := PutOptions{IfMatch: "none", unkept: true}
	if k.Theirs != nil {
		o.IfMatch = k.Theirs.SHA256
	}
	n, err := v.Put(ctx, c, v.placeOf(ctx, k), o, b)
	if errors.Is(err, ErrStale) {
		return n, v.renewConflict(ctx, c, k, takeMine, b)
	}
	if err != nil {
		return n, err
	}
	return n, v.DropConflict(ctx, c, name)
}

// renewConflict sets a conflict against the head of now, because somebody changed the memory once more before it was
// applied. What was to be saved stood on theirs, so that is its base now; mine as it is stood on what it always did.
func (v *View) renewConflict(ctx context.Context, c Caller, k Conflict, takeMine bool, content []byte) error {
	l := LostWrite{Memory: k.memory, Path: k.Path, Op: k.Op, Mine: ByteContent(content), Again: k.Name}
	base := k.Theirs
	if takeMine {
		base = k.Base
	}
	if base != nil {
		l.Base = base.sum
	}
	if _, err := v.KeepLost(ctx, c, l); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w once more; the conflict now stands against their new version: look at merged, and apply again", k.Name, ErrStale)
}

// DropConflict forgets a conflict and its bytes. ErrNotExist.
func (v *View) DropConflict(ctx context.Context, c Caller, name string) error {
	k, err := v.Conflict(ctx, c, name)
	if err != nil {
		return err
	}
	return wrap(v.m.store.Drop(ctx, k.owner, k.id), name)
}

// SeenTheirs notes that the caller has read what won, so that its next save of the memory is not stale if that is still
// the head.
func (v *View) SeenTheirs(c Caller, k Conflict) {
	if k.Theirs != nil && c.Session != nil {
		c.Session.Observe(c.Proc, k.memory, k.Theirs.sum)
	}
}
