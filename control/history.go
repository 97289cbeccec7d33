package control

import (
	"context"
	"slices"

	"memoryfs/backend"
)

func (h *Handler) logOf(ctx context.Context, in PathCall) ([]Version, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return nil, err
	}
	all, err := v.Log(ctx, c, string(in.Path), in.Limit)
	out := make([]Version, 0, len(all))
	for _, x := range all {
		out = append(out, version(x))
	}
	return out, err
}

func (h *Handler) show(ctx context.Context, in PathCall) (FileReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return FileReply{}, err
	}
	ver, b, err := v.Show(ctx, c, string(in.Path), in.Number)
	if err != nil {
		return FileReply{}, err
	}
	x := version(ver)
	return FileReply{Version: &x, Content: b}, nil
}

func (h *Handler) diff(ctx context.Context, in DiffCall) (DiffReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return DiffReply{}, err
	}
	d, err := v.Diff(ctx, c, string(in.Path), in.From, in.To)
	if err != nil {
		return DiffReply{}, err
	}
	out := DiffReply{To: version(d.To), Unified: d.Unified, Words: d.Words, Added: d.Added, Removed: d.Removed}
	if d.From.Number > 0 {
		from := version(d.From)
		out.From = &from
	}
	return out, nil
}

func (h *Handler) blame(ctx context.Context, in PathCall) (BlameReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return BlameReply{}, err
	}
	lines, err := v.Blame(ctx, c, string(in.Path), in.Number)
	out := BlameReply{Lines: make([]BlamedLine, len(lines)), Versions: []Version{}}
	seen := map[uint64]bool{}
	for i, l := range lines {
		out.Lines[i] = BlamedLine{Line: l.Text, Version: l.Version.Number}
		if !seen[l.Version.Number] {
			seen[l.Version.Number] = true
			out.Versions = append(out.Versions, version(l.Version))
		}
	}
	slices.SortFunc(out.Versions, func(a, b Version) int { return int(b.Number) - int(a.Number) })
	return out, err
}

func (h *Handler) revert(ctx context.Context, in UndoCall) (UndoReply, error) {
	return h.undo(ctx, in, (*backend.View).Revert)
}

func (h *Handler) restore(ctx context.Context, in UndoCall) (UndoReply, error) {
	return h.undo(ctx, in, (*backend.View).Restore)
}

func (h *Handler) undo(ctx context.Context, in UndoCall,
	do func(*backend.View, context.Context, backend.Caller, string, uint64, bool) (backend.Undone, error)) (UndoReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return UndoReply{}, err
	}
	u, err := do(v, ctx, c, string(in.Path), in.Number, in.DryRun)
	return UndoReply{Path: Path(u.Node.Path), Version: u.Number, Unified: u.Unified}, err
}
