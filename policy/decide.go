package policy

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Decide answers one request. It never fails: whatever goes wrong is a Deny with its cause. An answer from the cache
// does not look at ctx. Decision.Rules is shared: do not change it.
func (e *Engine) Decide(ctx context.Context, r Request) Decision {
	return e.current.Load().decide(ctx, r)
}

func (s *snapshot) decide(ctx context.Context, r Request) Decision {
	r = r.place()
	action := r.Action.number()
	if action == 0 || r.Ephemeral || s.reads.content && r.Content != nil {
		return s.decision(s.ask(ctx, r))
	}
	k := key{caller: r.Caller, path: r.Path, action: action, dir: r.Dir}
	if s.reads != (reads{}) || r.Target != "" {
		k.extra = s.extra(r)
	}
	h := s.cache.hash(&k)
	a := s.cache.get(h, &k)
	if a == nil {
		if a = s.ask(ctx, r); !a.failed {
			s.cache.put(h, k, a)
		}
	}
	return s.decision(a)
}

// place maps an ephemeral name to the question it stands for: scratch follows the right to list its directory. What
// cannot be mapped keeps the mark, and ask refuses it.
func (r Request) place() Request {
	if r.Action == ActionMount || r.Action == ActionAdmin {
		r.Ephemeral = false
	}
	if !r.Ephemeral || r.Path == "" || r.Action.number() == 0 {
		return r
	}
	r.Path = r.Path[:max(0, strings.LastIndexByte(r.Path, '/'))]
	return Request{Caller: r.Caller, Action: ActionList, Path: r.Path, Dir: true, Attested: r.Attested, Claimed: r.Claimed}
}

// number of an action in cache keys; 0 is no action.
func (a Action) number() uint8 {
	switch a {
	case ActionList:
		return 1
	case ActionRead:
		return 2
	case ActionWrite:
		return 3
	case ActionCreate:
		return 4
	case ActionDelete:
		return 5
	case ActionMount:
		return 6
	case ActionAdmin:
		return 7
	default:
		return 0
	}
}

// extra is the rest of the key, each part with its length before it: only what the policy reads.
func (s *snapshot) extra(r Request) string {
	b := make([]byte, 0, 128)
	text := func(t string) { b = append(binary.AppendUvarint(b, uint64(len(t))), t...) }
	text(r.Target)
	if s.reads.claimed {
		text(r.Claimed.Session)
		text(r.Claimed.Reason)
		text(r.Claimed.Conversation)
	}
	if s.reads.attested {
		text(r.Attested.Mount)
		b = strconv.AppendBool(binary.AppendUvarint(b, uint64(r.Attested.UID)), r.Attested.Shared)
	}
	if s.reads.size {
		b = binary.AppendVarint(b, r.Size)
	}
	if s.reads.base {
		b = strconv.AppendBool(b, r.BaseNone)
	}
	if s.reads.commit || s.reads.content {
		b = strconv.AppendBool(b, r.Commit)
	}
	return string(b)
}

// decision gives an answer its own id: the policy's revision, and a number that starts again only with the process,
// which the time of its start makes different.
func (s *snapshot) decision(a *answer) Decision {
	id := make([]byte, 0, 32)
	id = append(id, s.revision[:8]...)
	id = append(id, '-')
	id = strconv.AppendUint(id, s.number.Add(1), 36)
	return Decision{Effect: a.effect, Rules: a.rules, Cause: a.cause, ID: string(id), Revision: s.revision, Obligations: a.obligations}
}

// ask decides what needs no policy, and leaves the rest to it.
func (s *snapshot) ask(ctx context.Context, r Request) *answer {
	sub, ok := s.registry.subjects[r.Caller]
	switch {
	case !ok:
		return &answer{cause: "the caller is not in the registry"}
	case sub.Disabled:
		return &answer{cause: "the caller is disabled in the registry"}
	case r.Action.number() == 0:
		return &answer{cause: "unknown action"}
	case r.Ephemeral:
		return &answer{cause: "the root has no ephemeral name"}
	case s.reads.content && r.Commit && r.Content == nil && r.Size > 0:
		return &answer{cause: "policy error: the policy reads the content, which the request does not have", failed: true}
	}
	scope, ok := scopeOf(r)
	if !ok {
		return &answer{cause: "no such scope"}
	}
	target := ast.InternedNullTerm
	if r.Action == ActionMount {
		if target, ok = s.principals[r.Target]; !ok {
			return &answer{cause: "the principal to mount as is not in the registry"}
		}
	} else if r.Action != ActionAdmin && !wellFormed(r.Path) {
		return &answer{cause: "malformed path"}
	}
	return s.evaluate(ctx, s.input(r, scope, s.principals[r.Caller], target), s.timeout)
}

// wellFormed refuses what could mean another path than it says: empty segments, ".", "..", NUL.
func wellFormed(path string) bool {
	if path == "" {
		return true
	}
	for seg := range strings.SplitSeq(path, "/") {
		if seg == "" || seg == "." || seg == ".." || strings.IndexByte(seg, 0) >= 0 {
			return false
		}
	}
	return true
}
