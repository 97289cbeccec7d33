package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Parsed at each load; no package-level state.
func verdictsRef() ast.Ref    { return ast.MustParseRef("data.memory.authz.verdicts") }
func obligationsRef() ast.Ref { return ast.MustParseRef("data.memory.authz.obligations") }

// reads says which parts of the input a policy looks at: what it does not look at need not be in the cache's key, nor in
// the input.
type reads struct {
	claimed, attested, size, content, base, commit bool
}

// inputFields are the keys of the input document.
func inputFields() []string {
	return []string{"action", "scope", "name", "path", "segments", "depth", "file", "inside", "dir", "caller", "target",
		"attested", "claimed", "commit", "size", "base_none", "content", "content_cut"}
}

// analyse checks the shape of the two documents and that only denials and obligations can reach a claim, directly or
// through the rules they use; it returns what the rules read, and what to ask for obligations.
func analyse(c *ast.Compiler) (r reads, duties duties, err error) {
	rules := c.GetRulesDynamicWithOpts(verdictsRef(), allRules())
	if len(rules) == 0 {
		return r, duties, fmt.Errorf("%w: there is no rule data.memory.authz.verdicts (package memory.authz; verdicts contains … if …)", ErrPolicy)
	}
	for _, rule := range rules {
		if rule.Head.RuleKind() != ast.MultiValue {
			return r, duties, fmt.Errorf("%w: %s: verdicts must be a set (verdicts contains \"allow/…\" if …)", ErrPolicy, rule.Loc())
		}
		s := survey{compiler: c, fields: map[string]bool{}, seen: map[*ast.Rule]bool{}}
		if s.visit(rule); s.err != nil {
			return r, duties, s.err
		}
		r.add(s.fields)
		if s.fields["claimed"] && !denies(rule) {
			return r, duties, fmt.Errorf("%w: %s: an allow rule, or one whose effect is not the constant deny, reads input.claimed, "+
				"which its caller says of itself", ErrPolicy, rule.Loc())
		}
	}
	obligations := c.GetRulesDynamicWithOpts(obligationsRef(), allRules())
	for _, rule := range obligations {
		if rule.Head.RuleKind() == ast.MultiValue && len(rule.Head.Ref()) == 1 {
			return r, duties, fmt.Errorf("%w: %s: obligations must be an object (obligations[\"reason\"] := true if …)", ErrPolicy, rule.Loc())
		}
		s := survey{compiler: c, fields: map[string]bool{}, seen: map[*ast.Rule]bool{}}
		if s.visit(rule); s.err != nil {
			return r, duties, s.err
		}
		r.add(s.fields)
	}
	duties, err = dutiesOf(obligations)
	return r, duties, err
}

// duties are the obligations that a policy can impose.
type duties struct {
	keys  []string // of rules obligations["key"] := …, each asked for by itself: the whole object would cost half a decision
	whole bool     // a rule of another form: the object is asked for
}

func dutiesOf(rules []*ast.Rule) (d duties, err error) {
	seen := map[string]bool{}
	for _, rule := range rules {
		ref := rule.Ref()
		if len(ref) != len(obligationsRef())+1 {
			d.whole = true
			continue
		}
		key, ok := ref[len(ref)-1].Value.(ast.String)
		if !ok {
			d.whole = true
			continue
		}
		if !slices.Contains(obligationKeys(), string(key)) {
			return d, fmt.Errorf("%w: %s: there is no obligation %s, only %s", ErrPolicy, rule.Loc(), key, strings.Join(obligationKeys(), ", "))
		}
		seen[string(key)] = true
	}
	if !d.whole {
		d.keys = sortedKeys(seen)
	}
	return d, nil
}

func obligationKeys() []string { return []string{"reason", "audit_read", "max_bytes", "fresh_base"} }

func (r *reads) add(f map[string]bool) {
	r.claimed = r.claimed || f["claimed"]
	r.attested = r.attested || f["attested"]
	r.size = r.size || f["size"] || f["content"] || f["content_cut"]
	r.content = r.content || f["content"] || f["content_cut"]
	r.base = r.base || f["base_none"]
	r.commit = r.commit || f["commit"]
}

// denies tells whether a rule can only add a constant "deny/…".
func denies(rule *ast.Rule) bool {
	if rule.Head.Key == nil {
		return false
	}
	s, ok := rule.Head.Key.Value.(ast.String)
	return ok && strings.HasPrefix(string(s), "deny/")
}

// survey collects what one rule reads, by itself and through the rules that it uses.
type survey struct {
	compiler *ast.Compiler
	fields   map[string]bool
	seen     map[*ast.Rule]bool
	err      error // the first reference to something that does not exist
}

func (s *survey) visit(rule *ast.Rule) {
	if s.seen[rule] || s.err != nil {
		return
	}
	s.seen[rule] = true
	followed := map[*ast.Term]bool{} // the input variable at the head of a reference
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		switch {
		case ref.HasPrefix(ast.InputRootRef):
			followed[ref[0]] = true
			s.readInput(rule, ref)
		case ref.HasPrefix(ast.DefaultRootRef):
			s.readData(rule, ref)
		}
		return false
	})
	ast.WalkTerms(rule, func(t *ast.Term) bool { // input as a whole; today the compiler makes that a reference too
		if v, ok := t.Value.(ast.Var); ok && v.Equal(ast.InputRootDocument.Value) && !followed[t] {
			s.readAll()
		}
		return false
	})
}

func (s *survey) readInput(rule *ast.Rule, ref ast.Ref) {
	if len(ref) < 2 {
		s.readAll()
		return
	}
	field, ok := ref[1].Value.(ast.String)
	if !ok {
		s.readAll()
		return
	}
	if !slices.Contains(inputFields(), string(field)) && s.err == nil {
		s.err = fmt.Errorf("%w: %s: there is no input.%s; a rule that reads it would never speak", ErrPolicy, where(rule, ref), string(field))
	}
	s.fields[string(field)] = true
}

// readData follows a reference into the rules it may mean. One that no rule defines is always undefined, which in a
// denial is a hole: refused.
func (s *survey) readData(rule *ast.Rule, ref ast.Ref) {
	others := s.compiler.GetRulesDynamicWithOpts(ref, allRules())
	for _, other := range others {
		s.visit(other)
	}
	if len(others) > 0 || len(ref) < 2 || s.err != nil {
		return
	}
	if name, ok := ref[1].Value.(ast.String); ok && name != "identities" {
		s.err = fmt.Errorf("%w: %s: nothing defines %s; a rule that reads it would never speak", ErrPolicy, where(rule, ref), ref)
	}
}

func (s *survey) readAll() {
	for _, f := range inputFields() {
		s.fields[f] = true
	}
}

func where(rule *ast.Rule, ref ast.Ref) *ast.Location {
	if loc := ref[0].Loc(); loc != nil && loc.File != "" {
		return loc
	}
	return rule.Loc()
}

// allRules is for looking up rules: those of hidden modules too.
func allRules() ast.RulesOptions { return ast.RulesOptions{IncludeHiddenModules: true} }
