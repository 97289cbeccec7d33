package policy

import (
	"context"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Scopes are the names that may stand at the memory's root.
func Scopes() []string { return scopeNames() }

func scopeNames() []string {
	return []string{"organization", "teams", "projects", "agents", "users", "customers", "skills"}
}

var knownActions = map[Action]bool{ActionList: true, ActionRead: true, ActionWrite: true, ActionCreate: true,
	ActionDelete: true, ActionMount: true, ActionAdmin: true}

// Decide answers one request. It never fails: whatever goes wrong is a Deny with its cause.
func (e *Engine) Decide(ctx context.Context, r Request) Decision {
	return e.current.Load().decide(ctx, r)
}

func (s *snapshot) decide(ctx context.Context, r Request) Decision {
	if r.Ephemeral { // scratch follows the right to list its directory
		r.Ephemeral, r.Action, r.Dir = false, ActionList, true
		if i := strings.LastIndexByte(r.Path, '/'); i >= 0 {
			r.Path = r.Path[:i]
		} else {
			r.Path = ""
		}
	}
	k := s.key(r)
	cacheable := !(s.reads.content && r.Content != nil)
	d, ok := Decision{}, false
	if cacheable {
		d, ok = s.cache.get(k)
	}
	if !ok {
		d = s.fresh(ctx, r)
		if cacheable && !d.failed {
			s.cache.put(k, d)
		}
	}
	d.ID = s.decisionID()
	return d
}

// decisionID is unique: the policy's revision, and a number that starts again only with the process, which the time of
// its start makes different.
func (s *snapshot) decisionID() string {
	b := make([]byte, 0, 32)
	b = append(b, s.revision[:8]...)
	b = append(b, '-')
	return string(strconv.AppendUint(b, s.number.Add(1), 36))
}

func (s *snapshot) key(r Request) key {
	k := key{caller: r.Caller, path: r.Path, target: r.Target, action: r.Action, dir: r.Dir}
	if s.reads.claimed {
		k.session, k.reason, k.conversation = r.Claimed.Session, r.Claimed.Reason, r.Claimed.Conversation
	}
	if s.reads.attested {
		k.mount, k.shared, k.uid = r.Attested.Mount, r.Attested.Shared, r.Attested.UID
	}
	if s.reads.size {
		k.size = r.Size
	}
	if s.reads.base {
		k.baseNone = r.BaseNone
	}
	if s.reads.commit {
		k.commit = r.Commit
	}
	return k
}

// fresh evaluates.
func (s *snapshot) fresh(ctx context.Context, r Request) Decision {
	d := s.ask(ctx, r)
	d.Revision = s.revision
	return d
}

func (s *snapshot) ask(ctx context.Context, r Request) Decision {
	caller, ok := s.callers[r.Caller]
	if !ok {
		return Decision{Cause: "the caller is not in the registry"}
	}
	if !knownActions[r.Action] {
		return Decision{Cause: "unknown action"}
	}
	scope, ok := scopeOf(r)
	if !ok {
		return Decision{Cause: "no such scope"}
	}
	target := ast.NullTerm()
	if r.Action == ActionMount {
		if target, ok = s.targets[r.Target]; !ok {
			return Decision{Cause: "the principal to mount as is not in the registry"}
		}
	}
	return s.evaluate(ctx, s.input(r, scope, caller, target))
}

func scopeOf(r Request) (string, bool) {
	switch {
	case r.Action == ActionMount:
		return "principal", true
	case r.Action == ActionAdmin:
		return "admin", true
	case r.Path == "":
		return "root", true
	}
	first, _, _ := strings.Cut(r.Path, "/")
	for _, s := range scopeNames() {
		if s == first {
			return s, true
		}
	}
	return "", false
}

// The keys of the input, made once.
var (
	kAction, kScope, kName, kPath         = ast.StringTerm("action"), ast.StringTerm("scope"), ast.StringTerm("name"), ast.StringTerm("path")
	kSegments, kDepth, kFile, kDir        = ast.StringTerm("segments"), ast.StringTerm("depth"), ast.StringTerm("file"), ast.StringTerm("dir")
	kCaller, kTarget, kAttested, kClaimed = ast.StringTerm("caller"), ast.StringTerm("target"), ast.StringTerm("attested"), ast.StringTerm("claimed")
	kSize, kCommit, kBase, kContent       = ast.StringTerm("size"), ast.StringTerm("commit"), ast.StringTerm("base_none"), ast.StringTerm("content")
	kMount, kShared, kUID                 = ast.StringTerm("mount"), ast.StringTerm("shared"), ast.StringTerm("uid")
	kSession, kReason, kConversation      = ast.StringTerm("session"), ast.StringTerm("reason"), ast.StringTerm("conversation")
)

// input builds the document that authz.rego describes, as terms: no JSON on the way.
func (s *snapshot) input(r Request, scope string, caller, target *ast.Term) ast.Value {
	var segments []*ast.Term
	name, file := "", ""
	if r.Path != "" {
		for i, seg := range strings.Split(r.Path, "/") {
			file = Escape(seg)
			if i == 1 {
				name = file
			}
			segments = append(segments, ast.StringTerm(file))
		}
	}
	fields := [][2]*ast.Term{
		{kAction, ast.StringTerm(string(r.Action))}, {kScope, ast.StringTerm(scope)}, {kName, ast.StringTerm(name)},
		{kPath, ast.StringTerm(Escape(r.Path))}, {kSegments, ast.ArrayTerm(segments...)}, {kDepth, ast.IntNumberTerm(len(segments))},
		{kFile, ast.StringTerm(file)}, {kDir, ast.BooleanTerm(r.Dir)}, {kCaller, caller}, {kTarget, target},
	}
	if s.reads.attested {
		fields = append(fields, [2]*ast.Term{kAttested, ast.ObjectTerm([2]*ast.Term{kMount, ast.StringTerm(Escape(r.Attested.Mount))},
			[2]*ast.Term{kShared, ast.BooleanTerm(r.Attested.Shared)}, [2]*ast.Term{kUID, ast.IntNumberTerm(int(r.Attested.UID))})})
	}
	if s.reads.claimed {
		fields = append(fields, [2]*ast.Term{kClaimed, ast.ObjectTerm([2]*ast.Term{kSession, ast.StringTerm(Escape(r.Claimed.Session))},
			[2]*ast.Term{kReason, ast.StringTerm(Escape(r.Claimed.Reason))}, [2]*ast.Term{kConversation, ast.StringTerm(Escape(r.Claimed.Conversation))})})
	}
	if s.reads.size || s.reads.commit || s.reads.base || s.reads.content {
		fields = append(fields, [2]*ast.Term{kCommit, ast.BooleanTerm(r.Commit)}, [2]*ast.Term{kSize, ast.IntNumberTerm(int(r.Size))},
			[2]*ast.Term{kBase, ast.BooleanTerm(r.BaseNone)})
	}
	if s.reads.content && r.Content != nil {
		fields = append(fields, [2]*ast.Term{kContent, ast.StringTerm(string(r.Content))})
	}
	return ast.NewObject(fields...)
}
