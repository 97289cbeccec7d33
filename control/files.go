package control

import (
	"context"
	"fmt"
	"path"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

func (h *Handler) entry(ctx context.Context, v *backend.View, c backend.Caller, n backend.Node) Entry {
	e := Entry{Path: Path(n.Path), Name: Path(path.Base("/" + n.Path)), ID: n.Inode.ID.String(), Mode: n.Inode.Mode, Mtime: n.Mtime(),
		Target: Path(n.Inode.Target), Write: v.Writable(ctx, c, n)}
	switch n.Inode.Type {
	case store.TypeDir:
		e.Type = "directory"
	case store.TypeSymlink:
		e.Type = "symlink"
	default:
		e.Type, e.Size, e.Version, e.SHA256 = "file", n.Head.Size, n.Head.Version, backend.Hex(n.Head.Sum)
	}
	return e
}

func version(v store.Version) Version {
	out := Version{Memory: v.Memory.String(), Number: v.Number, Op: string(v.Kind), Path: Path(v.Path), From: Path(v.From), Time: v.Time, Size: v.Size,
		Mode: v.Mode, Principal: v.Prov.Principal, Kind: v.Prov.PrincipalKind, OnBehalfOf: v.Prov.OnBehalfOf, Session: v.Prov.Session,
		Conversation: v.Prov.Conversation, Reason: v.Prov.Reason, Base: v.Prov.Base, Approval: v.Prov.Approval,
		Policy: v.Prov.PolicyRevision, Decision: v.Prov.DecisionID, OpID: v.Op.String(), Process: v.Prov.Process}
	if v.Kind != store.KindDelete {
		out.SHA256 = backend.Hex(v.Sum)
	}
	if v.Number > 1 {
		out.Parent = backend.Hex(v.Parent)
	}
	return out
}

func (h *Handler) cat(ctx context.Context, in PathCall) (FileReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return FileReply{}, err
	}
	n, b, err := v.ReadFile(ctx, c, string(in.Path))
	if err != nil {
		return FileReply{}, err
	}
	e := h.entry(ctx, v, c, n)
	return FileReply{Entry: &e, Content: b}, nil
}

func (h *Handler) put(ctx context.Context, in PutCall) (FileReply, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return FileReply{}, err
	}
	n, err := v.Put(ctx, c, string(in.Path), backend.PutOptions{IfMatch: in.IfMatch, Append: in.Append}, in.Content)
	if err != nil {
		return FileReply{}, err
	}
	e := h.entry(ctx, v, c, n)
	return FileReply{Entry: &e}, nil
}

func (h *Handler) ls(ctx context.Context, in PathCall) ([]Entry, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return nil, err
	}
	nodes, err := v.List(ctx, c, string(in.Path))
	out := make([]Entry, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, h.entry(ctx, v, c, n))
	}
	return out, err
}

// onPath runs a verb that returns nothing.
func (h *Handler) onPath(ctx context.Context, in PathCall, do func(*backend.View, backend.Caller) error) (none, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return none{}, err
	}
	return none{}, do(v, c)
}

func (h *Handler) rm(ctx context.Context, in PathCall) (none, error) {
	return h.onPath(ctx, in, func(v *backend.View, c backend.Caller) error { return v.Remove(ctx, c, string(in.Path)) })
}

func (h *Handler) mv(ctx context.Context, in PathCall) (none, error) {
	return h.onPath(ctx, in, func(v *backend.View, c backend.Caller) error { return v.Move(ctx, c, string(in.Path), string(in.To)) })
}

func (h *Handler) mkdir(ctx context.Context, in PathCall) (none, error) {
	return h.onPath(ctx, in, func(v *backend.View, c backend.Caller) error {
		if !in.Parents {
			if _, err := v.Stat(ctx, c, string(in.Path)); err == nil {
				return fmt.Errorf("%s: %w", string(in.Path), backend.ErrExist)
			}
			if _, err := v.Stat(ctx, c, path.Dir(string(in.Path))); err != nil {
				return err
			}
		}
		return v.MkdirAll(ctx, c, string(in.Path))
	})
}
