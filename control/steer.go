package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"memoryfs/audit"
	"memoryfs/backend"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// record writes an audit record of the daemon's own doings.
func (h *Handler) record(ctx context.Context, r audit.Record) error {
	r.Time = time.Now()
	if _, err := h.mem.Audit().Append(ctx, r); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrNoRecord, err)
	}
	return nil
}

const defaultTail = 20

// below tells whether a path is p or lies under it; "" is above everything.
func below(path, p string) bool {
	return p == "" || path == p || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/")
}

// maxTail bounds one reply; the caller goes on at Next.
const maxTail = 10000

// tail reads the log: who may see it, may see all of it.
func (h *Handler) tail(ctx context.Context, in TailCall) (TailReply, error) {
	if _, err := h.admin(ctx, in.Who); err != nil {
		return TailReply{}, err
	}
	if rev := h.mem.Status(ctx).Revision; in.From == 0 {
		if err := h.mem.Audit().Sync(ctx, rev); err != nil {
			h.log.Warn("the audit log is behind", "error", err)
		}
	}
	count := in.Count
	if count <= 0 {
		count = defaultTail
	}
	if in.From > 0 {
		count = maxTail
	}
	out := TailReply{Lines: []string{}, Next: max(in.From, 1)}
	full := fmt.Errorf("enough")
	err := audit.Scan(ctx, h.mem.AuditDir(), in.From, func(line []byte, r audit.Record) error {
		if in.wants(r) {
			if len(out.Lines) == count {
				if in.From > 0 {
					return full
				}
				out.Lines = append(out.Lines[:0], out.Lines[1:]...)
			}
			out.Lines = append(out.Lines, string(line))
		}
		out.Next = r.Seq + 1
		return nil
	})
	if err == full {
		err = nil
	}
	return out, err
}

func (h *Handler) verify(ctx context.Context, who Who) (audit.Report, error) {
	if _, err := h.admin(ctx, who); err != nil {
		return audit.Report{}, err
	}
	r, err := h.mem.Verify(ctx)
	if r.Problems == nil {
		r.Problems = []audit.Problem{}
	}
	return r, err
}

func (h *Handler) fsck(ctx context.Context, who Who) (store.FsckReport, error) {
	if _, err := h.admin(ctx, who); err != nil {
		return store.FsckReport{}, err
	}
	r, err := h.mem.Fsck(ctx)
	if r.Problems == nil {
		r.Problems = []store.Problem{}
	}
	return r, err
}

// explain of one's own rights, or of those one may act with, is free; of anybody's, for admins.
func (h *Handler) explain(ctx context.Context, in ExplainCall) (policy.Explanation, error) {
	v, c, err := h.view(ctx, in.Who)
	if err != nil {
		return policy.Explanation{}, err
	}
	if !slices.Contains(actions, in.Action) {
		return policy.Explanation{}, fmt.Errorf("action %q is none of %v: %w", in.Action, actions, errBadRequest)
	}
	if in.Principal == "" {
		in.Principal = v.Principal().ID
	}
	if in.Principal != v.Principal().ID {
		if err := v.MayMount(ctx, c, in.Principal); err != nil {
			if err := v.MayAdmin(ctx, c); err != nil {
				return policy.Explanation{}, err
			}
		}
	}
	r := policy.Request{Caller: in.Principal, Action: in.Action, Path: strings.Trim(string(in.Path), "/"), Dir: in.Dir, Claimed: c.Claimed}
	if in.Action == policy.ActionMount {
		r.Target, r.Path = r.Path, ""
	}
	return h.mem.Policy().Explain(ctx, r), nil
}

var actions = []policy.Action{policy.ActionList, policy.ActionRead, policy.ActionWrite, policy.ActionCreate, policy.ActionDelete,
	policy.ActionMount, policy.ActionAdmin}

type reloadReply struct {
	Revision string `json:"policy_revision"`
}

func (h *Handler) reload(ctx context.Context, who Who) (reloadReply, error) {
	if err := h.operator(ctx, who); err != nil {
		return reloadReply{}, err
	}
	err := h.mem.Policy().Reload(ctx)
	return reloadReply{h.mem.Policy().Revision()}, err
}
