package policy

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

var (
	verdictsRef    = ast.MustParseRef("data.memory.authz.verdicts")
	obligationsRef = ast.MustParseRef("data.memory.authz.obligations")
)

// reads says which parts of the input a policy looks at: what it does not look at need not be in the cache's key.
type reads struct {
	claimed, attested, size, content, base, commit bool
}

// everything is what a rule is taken to read that uses the input in a way that cannot be followed.
var everything = []string{"claimed", "attested", "size", "content", "base_none", "commit"}

// analyse checks the shape of the entry, and that no allow rule can reach a claim; it returns what the rules read.
func analyse(c *ast.Compiler) (reads, error) {
	rules := c.GetRulesExact(verdictsRef)
	if len(rules) == 0 {
		return reads{}, fmt.Errorf("%w: there is no rule data.memory.authz.verdicts", ErrPolicy)
	}
	all := reads{}
	for _, rule := range rules {
		if rule.Head.RuleKind() != ast.MultiValue {
			return all, fmt.Errorf("%w: %s: verdicts must be a set (verdicts contains \"allow/…\" if …)", ErrPolicy, rule.Loc())
		}
		fields := map[string]bool{}
		collect(c, rule, fields, map[*ast.Rule]bool{})
		all.add(fields)
		if fields["claimed"] && !denies(rule) {
			return all, fmt.Errorf("%w: %s: an allow rule reads input.claimed, which its caller says of itself", ErrPolicy, rule.Loc())
		}
	}
	for _, rule := range c.GetRulesDynamicWithOpts(obligationsRef, ast.RulesOptions{IncludeHiddenModules: true}) {
		fields := map[string]bool{}
		collect(c, rule, fields, map[*ast.Rule]bool{})
		all.add(fields)
	}
	return all, nil
}

func (r *reads) add(f map[string]bool) {
	r.claimed = r.claimed || f["claimed"]
	r.attested = r.attested || f["attested"]
	r.size = r.size || f["size"]
	r.content = r.content || f["content"]
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

// collect notes the fields of the input that a rule reads, by itself or through the rules that it uses.
func collect(c *ast.Compiler, rule *ast.Rule, fields map[string]bool, seen map[*ast.Rule]bool) {
	if seen[rule] {
		return
	}
	seen[rule] = true
	used := map[*ast.Term]bool{} // input variables that are the head of a reference seen already
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		switch {
		case ref.HasPrefix(ast.InputRootRef):
			used[ref[0]] = true
			field(ref, fields)
		case ref.HasPrefix(ast.DefaultRootRef):
			for _, other := range c.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true}) {
				collect(c, other, fields, seen)
			}
		}
		return false
	})
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		if v, ok := t.Value.(ast.Var); ok && v == ast.InputRootDocument.Value.(ast.Var) && !used[t] {
			all(fields)
		}
		return false
	})
	if rule.Else != nil {
		collect(c, rule.Else, fields, seen)
	}
}

func field(ref ast.Ref, fields map[string]bool) {
	if len(ref) < 2 {
		all(fields)
		return
	}
	if s, ok := ref[1].Value.(ast.String); ok {
		fields[string(s)] = true
	} else {
		all(fields)
	}
}

func all(fields map[string]bool) {
	for _, f := range everything {
		fields[f] = true
	}
}
