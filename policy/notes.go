package policy

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// RuleNote says in words what a rule of the policy is for.
type RuleNote struct {
	Rule  string `json:"rule"`            // effect/rule-id
	Says  string `json:"says,omitempty"`  // its METADATA description or title, else the comment directly above it
	Where string `json:"where,omitempty"` // file:line
}

// notes of every rule with a constant verdict.
func (s *source) notes() map[string]RuleNote {
	out := map[string]RuleNote{}
	for file, m := range s.modules {
		if strings.HasSuffix(file, testSuffix) {
			continue
		}
		comments := map[int]string{}
		for _, c := range m.Comments {
			comments[c.Location.Row] = strings.TrimSpace(string(c.Text))
		}
		for _, rule := range m.Rules {
			if rule.Head.Name != "verdicts" || rule.Head.Key == nil {
				continue
			}
			verdict, ok := rule.Head.Key.Value.(ast.String)
			if _, twice := out[string(verdict)]; !ok || twice && len(rule.Annotations) == 0 && comments[rule.Loc().Row-1] == "" {
				continue
			}
			out[string(verdict)] = RuleNote{Rule: string(verdict), Says: says(rule, comments),
				Where: fmt.Sprintf("%s:%d", file, rule.Loc().Row)}
		}
	}
	return out
}

func says(rule *ast.Rule, comments map[int]string) string {
	for _, a := range rule.Annotations {
		if text := strings.TrimSpace(a.Description + " " + a.Title); text != "" {
			if a.Description != "" {
				return strings.Join(strings.Fields(a.Description), " ")
			}
			return text
		}
	}
	text := ""
	for row := rule.Loc().Row - 1; comments[row] != ""; row-- {
		text = comments[row] + " " + text
	}
	return strings.TrimSpace(text)
}

// note of a verdict; one that the policy computes has no words.
func (s *snapshot) note(verdict string) RuleNote {
	if n, ok := s.notes[verdict]; ok {
		return n
	}
	return RuleNote{Rule: verdict}
}
