package control

import (
	"context"

	"memoryfs/backend"
)

// ConflictCall names one of the caller's conflicts. Mine is for apply: the losing bytes as they are, instead of merged.
type ConflictCall struct {
	Who
	Name string `json:"name,omitempty"`
	Mine bool   `json:"mine,omitempty"`
}

// Conflict is a kept stale write.
type Conflict struct {
	backend.Conflict
	Path   Path              `json:"path"`
	Readme string            `json:"readme,omitempty"` // show only, as the parts
	Parts  map[string][]byte `json:"parts,omitempty"`  // mine, base, theirs, merged: those that there are
}

func (h *Handler) conflicts(ctx context.Context, in ConflictCall) ([]Conflict, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return nil, err
	}
	all, err := v.Conflicts(ctx, c)
	out := make([]Conflict, 0, len(all))
	for _, k := range all {
		out = append(out, Conflict{Conflict: k, Path: Path(k.Path)})
	}
	return out, err
}

func (h *Handler) conflict(ctx context.Context, in ConflictCall) (Conflict, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return Conflict{}, err
	}
	k, err := v.Conflict(ctx, c, in.Name)
	if err != nil {
		return Conflict{}, err
	}
	out := Conflict{Conflict: k, Path: Path(k.Path), Parts: map[string][]byte{}}
	readme, err := v.ConflictReadme(ctx, c, k)
	if err != nil {
		return out, err
	}
	out.Readme = string(readme)
	for _, part := range []string{"mine", "base", "theirs", "merged"} {
		content, err := v.ConflictPart(ctx, c, k, part)
		if err != nil {
			continue // there is none, or it may not be read
		}
		b := make([]byte, content.Size())
		if n, err := content.ReadAt(b, 0); n < len(b) {
			return out, err
		}
		out.Parts[part] = b
	}
	v.SeenTheirs(c, k)
	return out, nil
}

func (h *Handler) conflictApply(ctx context.Context, in ConflictCall) (FileReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return FileReply{}, err
	}
	n, err := v.ResolveConflict(ctx, c, in.Name, in.Mine)
	if err != nil {
		return FileReply{}, err
	}
	e := h.entry(ctx, v, c, n)
	return FileReply{Entry: &e}, nil
}

func (h *Handler) conflictDrop(ctx context.Context, in ConflictCall) (none, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return none{}, err
	}
	return none{}, v.DropConflict(ctx, c, in.Name)
}
