package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

func scopeNames() []string {
	return []string{"organization", "teams", "projects", "agents", "users", "customers", "skills"}
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
	return first, slices.Contains(scopeNames(), first)
}

// The keys of the input, made once and never changed.
var (
	kAction, kScope, kName, kPath         = ast.StringTerm("action"), ast.StringTerm("scope"), ast.StringTerm("name"), ast.StringTerm("path")
	kSegments, kDepth, kFile, kDir        = ast.StringTerm("segments"), ast.StringTerm("depth"), ast.StringTerm("file"), ast.StringTerm("dir")
	kCaller, kTarget, kAttested, kClaimed = ast.StringTerm("caller"), ast.StringTerm("target"), ast.StringTerm("attested"), ast.StringTerm("claimed")
	kSize, kCommit, kBase, kContent       = ast.StringTerm("size"), ast.StringTerm("commit"), ast.StringTerm("base_none"), ast.StringTerm("content")
	kInside, kCut                         = ast.StringTerm("inside"), ast.StringTerm("content_cut")
	kMount, kShared, kUID                 = ast.StringTerm("mount"), ast.StringTerm("shared"), ast.StringTerm("uid")
	kSession, kReason, kConversation      = ast.StringTerm("session"), ast.StringTerm("reason"), ast.StringTerm("conversation")
)

// input builds the document that authz.rego describes, as terms: no JSON on the way.
func (s *snapshot) input(r Request, scope string, caller, target *ast.Term) ast.Value {
	segments := make([]*ast.Term, 0, 8)
	name, file := "", ""
	if r.Path != "" {
		for seg := range strings.SplitSeq(r.Path, "/") {
			file = Escape(seg)
			if len(segments) == 1 {
				name = file
			}
			segments = append(segments, ast.StringTerm(file))
		}
	}
	fields := make([][2]*ast.Term, 0, 17)
	add := func(k, v *ast.Term) { fields = append(fields, [2]*ast.Term{k, v}) }
	add(kAction, ast.InternedTerm(string(r.Action)))
	add(kScope, ast.InternedTerm(scope))
	add(kName, ast.StringTerm(name))
	add(kPath, ast.StringTerm(Escape(r.Path)))
	add(kSegments, ast.ArrayTerm(segments...))
	add(kDepth, ast.InternedTerm(len(segments)))
	add(kFile, ast.StringTerm(file))
	add(kInside, ast.InternedTerm(len(segments) > 2))
	add(kDir, ast.InternedTerm(r.Dir))
	add(kCaller, caller)
	add(kTarget, target)
	if s.reads.attested {
		add(kAttested, ast.ObjectTerm([2]*ast.Term{kMount, ast.StringTerm(Escape(r.Attested.Mount))},
			[2]*ast.Term{kShared, ast.InternedTerm(r.Attested.Shared)}, [2]*ast.Term{kUID, ast.IntNumberTerm(int(r.Attested.UID))}))
	}
	if s.reads.claimed {
		add(kClaimed, ast.ObjectTerm([2]*ast.Term{kSession, ast.StringTerm(Escape(r.Claimed.Session))},
			[2]*ast.Term{kReason, ast.StringTerm(Escape(r.Claimed.Reason))}, [2]*ast.Term{kConversation, ast.StringTerm(Escape(r.Claimed.Conversation))}))
	}
	if s.reads.size {
		add(kSize, ast.IntNumberTerm(int(r.Size)))
	}
	if s.reads.commit || s.reads.content {
		add(kCommit, ast.InternedTerm(r.Commit))
	}
	if s.reads.base {
		add(kBase, ast.InternedTerm(r.BaseNone))
	}
	if s.reads.content && r.Content != nil {
		add(kContent, ast.StringTerm(string(r.Content)))
		add(kCut, ast.InternedTerm(int64(len(r.Content)) < r.Size))
	}
	return ast.NewObject(fields...)
}
