package backend

import (
	"context"
	"fmt"
	"strings"
	"time"

	"memoryfs/audit"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// View is one principal's eye on the memory. Safe for concurrent use.
type View struct {
	m         *Memory
	principal policy.Principal
	attested  policy.Attested
}

// View returns the eye of a principal of the registry: ErrUnknown for any other. Whether the caller may use it is the
// front end's question to MayMount.
func (m *Memory) View(principal string, att policy.Attested) (*View, error) {
	p, ok := m.policy.Principal(principal)
	if !ok {
		return nil, fmt.Errorf("%q %w: add it to %s", principal, ErrUnknown, RegistryFile)
	}
	return &View{m: m, principal: p, attested: att}, nil
}

// ViewByUID is View for a shared mount. uid 0 is nobody unless memoryfs.yaml says shared.root.
func (m *Memory) ViewByUID(uid uint32, att policy.Attested) (*View, error) {
	p, ok := m.policy.PrincipalByUID(uid)
	if !ok || uid == 0 && !m.settings.Shared.Root {
		return nil, fmt.Errorf("uid %d %w", uid, ErrUnknown)
	}
	att.UID = uid
	return &View{m: m, principal: p, attested: att}, nil
}

// Principal is whose view it is.
func (v *View) Principal() policy.Principal { return v.principal }

// Memory is what it looks at.
func (v *View) Memory() *Memory { return v.m }

// Node is an inode as a caller that may know it sees it.
type Node struct {
	Inode   store.Inode
	Head    store.Head // of a file
	Path    string
	Pending *Pending // created, not committed: Inode and Head are not in the store yet
	// Continues is set by Create for a memory that the caller's editor renamed to its backup name just now: the new
	// file is the memory's next version.
	Continues bool
}

// Mtime is the modification time: a file's is its head's.
func (n Node) Mtime() time.Time {
	if n.Inode.Type == store.TypeFile {
		return n.Head.Mtime
	}
	return n.Inode.Mtime
}

// query is one question to the policy, with what a refusal has to say.
type query struct {
	op     string // as the user knows it: open, rename, …
	action policy.Action
	path   string
	dir    bool
	eph    bool
	target string
	commit *policy.Request // Size, Content, BaseNone of a commit; nil before
	kept   string          // conflict that holds the bytes of a stale write
}

func (v *View) decide(ctx context.Context, c Caller, q query) policy.Decision {
	r := policy.Request{Caller: v.principal.ID, Action: q.action, Path: q.path, Dir: q.dir, Ephemeral: q.eph,
		Target: q.target, Attested: v.attested, Claimed: c.Claimed}
	if q.commit != nil {
		r.Commit, r.Size, r.Content, r.BaseNone = true, q.commit.Size, q.commit.Content, q.commit.BaseNone
	}
	return v.m.policy.Decide(ctx, r)
}

// mayKnow tells whether the name may be known. It records nothing: a hidden name is simply not there.
func (v *View) mayKnow(ctx context.Context, c Caller, path string, dir, eph bool) bool {
	d := v.decide(ctx, c, query{action: policy.ActionList, path: path, dir: dir, eph: eph})
	return d.Effect == policy.Allow
}

// require asks for the action and turns anything but an allow into a refusal: ErrNotExist if the name may not be
// known, else ErrDenied, which is recorded.
func (v *View) require(ctx context.Context, c Caller, q query) (policy.Decision, error) {
	d := v.decide(ctx, c, q)
	if d.Effect == policy.Allow {
		return d, v.obligations(ctx, c, q, d)
	}
	if err := ctx.Err(); err != nil {
		return d, err
	}
	if q.path != "" && q.target == "" && q.action != policy.ActionAdmin {
		known := q.path
		if q.action == policy.ActionCreate {
			known = parentOf(q.path) // a name that is not there yet: whoever may list the directory is told why
		}
		if !v.mayKnow(ctx, c, known, q.dir || known != q.path, q.eph && known == q.path) {
			return d, fmt.Errorf("%s: %w", q.path, ErrNotExist)
		}
	}
	if q.target != "" {
		q.path = q.target
	}
	return d, v.refuse(c, q, d, ErrDenied, v.deniedHint(q, d))
}

// obligations are what an allow asks for in return.
func (v *View) obligations(ctx context.Context, c Caller, q query, d policy.Decision) error {
	o := d.Obligations
	if q.eph {
		return nil
	}
	changes := q.action == policy.ActionWrite || q.action == policy.ActionCreate || q.action == policy.ActionDelete
	if changes && o.Reason && strings.TrimSpace(c.Claimed.Reason) == "" {
		d.Cause = "a reason is required here"
		return v.refuse(c, q, d, ErrDenied, "give one: memoryfs mount --reason, or MEMORYFS_REASON in the environment")
	}
	if q.commit != nil {
		if o.MaxBytes > 0 && q.commit.Size > o.MaxBytes {
			d.Cause = fmt.Sprintf("policy allows %d bytes here, this is %d", o.MaxBytes, q.commit.Size)
			return v.refuse(c, q, d, ErrTooLarge, "shorten it, or split it into several files")
		}
		if o.FreshBase && q.commit.BaseNone {
			d.Cause = "this session never read what it replaces"
			return v.refuse(c, q, d, ErrDenied, "read the file first, then write")
		}
	}
	if q.action == policy.ActionRead && o.AuditRead {
		if _, err := v.m.audit.Append(ctx, v.record(c, "read", q.op, q.path, d)); err != nil {
			return fmt.Errorf("%s: %w: %w", q.path, ErrNoRecord, err)
		}
	}
	return nil
}

func (v *View) deniedHint(q query, d policy.Decision) string {
	explain := fmt.Sprintf("memoryfs policy explain --as %s --action %s '%s' says who may", v.principal.ID, q.action, q.path)
	if d.Effect == policy.Propose {
		return "this place takes proposals only, not direct changes; " + explain
	}
	return explain
}

// refuse records a refusal in the audit log and for .memory/errors, and returns it as an error.
func (v *View) refuse(c Caller, q query, d policy.Decision, err error, hint string) error {
	r := &Refusal{Time: time.Now(), Op: q.op, Path: q.path, Errno: errnoName(err), Rules: d.Rules, Decision: d.ID,
		Cause: d.Cause, Conflict: q.kept, Hint: hint, Err: err}
	if c.Session != nil {
		c.Session.refused(*r)
	}
	rec := v.record(c, "refusal", q.op, q.path, d)
	rec.Errno, rec.Cause = r.Errno, d.Cause
	v.m.audit.Refuse(rec)
	return r
}

func errnoName(err error) string {
	switch err {
	case ErrStale:
		return "EAGAIN"
	case ErrTooLarge:
		return "EFBIG"
	default:
		return "EACCES"
	}
}

// record is an audit record of something that is no change of the store.
func (v *View) record(c Caller, kind, op, path string, d policy.Decision) audit.Record {
	r := audit.Record{Time: time.Now(), Kind: kind, Op: op, Path: audit.Quote(path), Principal: v.principal.ID,
		PKind: v.principal.Kind, OnBehalf: v.principal.OnBehalfOf, Convers: c.Claimed.Conversation,
		Reason: c.Claimed.Reason, Process: c.Proc.Name, Mount: v.attested.Mount, Rules: d.Rules, Decision: d.ID, Policy: d.Revision}
	if c.Session != nil {
		r.Session = c.Session.Name
	}
	if v.attested.Shared {
		uid := v.attested.UID
		r.UID = &uid
	}
	return r
}

// MayMount asks whether this principal may mount, or act, as another.
func (v *View) MayMount(ctx context.Context, c Caller, as string) error {
	_, err := v.require(ctx, c, query{op: "mount", action: policy.ActionMount, target: as})
	return err
}

// MayAdmin asks whether this principal may see and steer the daemon: audit, fsck, policy.
func (v *View) MayAdmin(ctx context.Context, c Caller) error {
	_, err := v.require(ctx, c, query{op: "admin", action: policy.ActionAdmin})
	return err
}

func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}
