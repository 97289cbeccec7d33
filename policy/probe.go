package policy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// probeTimeout is generous, so that a busy machine does not refuse a good policy.
const probeTimeout = 2 * time.Second

// probe asks the policy for callers that it must allow nothing: unknown ones, and one that has every grant of the registry
// but is disabled. ask would stop them before the policy; this is the second lock.
func (s *snapshot) probe(ctx context.Context) error {
	p := s.prober()
	for _, who := range []string{"an unknown caller", "a caller without id", "a disabled human", "a disabled agent"} {
		caller := p.caller(who)
		for _, r := range p.requests {
			scope, _ := scopeOf(r)
			a := s.evaluate(ctx, s.input(r, scope, caller, p.target), probeTimeout)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case a.effect == Allow:
				return fmt.Errorf("%w: it allows %s to %s %q by %s", ErrPolicy, who, r.Action, r.Path, strings.Join(a.rules, ", "))
			case strings.HasPrefix(a.cause, "policy error: no decision within"):
				return fmt.Errorf("%w: no decision within %v, when %s wants to %s %q", ErrPolicy, probeTimeout, who, r.Action, r.Path)
			}
		}
	}
	return nil
}

type prober struct {
	everything *subject // all grants of the registry in one
	names      map[string][]string
	requests   []Request
	target     *ast.Term
}

func (s *snapshot) prober() *prober {
	all := &subject{Principal: Principal{ID: "probe"}}
	for _, sub := range s.registry.subjects {
		for i, g := range sub.grants() {
			for k, v := range *g {
				give(all.grants()[i], k, v)
			}
		}
	}
	p := &prober{everything: all, target: ast.ObjectTerm(ast.Item(ast.StringTerm("id"), ast.StringTerm("probe")),
		ast.Item(ast.StringTerm("kind"), ast.StringTerm("agent")),
		ast.Item(ast.StringTerm("owners"), ast.ObjectTerm(ast.Item(ast.StringTerm("probe"), ast.BooleanTerm(true)))))}
	p.names = map[string][]string{
		"organization": {"principles.md", "security-policy.md", "security"},
		"teams":        sample(all.teams), "projects": sample(all.projects), "agents": sample(all.owns),
		"users": sample(all.serves), "customers": sample(all.customers), "skills": sample(all.skills),
	}
	p.ask()
	return p
}

// sample is one name of the registry, and one that it does not know.
func sample(m map[string]any) []string {
	keys := sortedKeys(m)
	return append(keys[:min(len(keys), 1)], "probe")
}

// ask lists the questions.
func (p *prober) ask() {
	claims := Claimed{Session: "probe", Reason: "probe", Conversation: "probe"}
	paths := []string{""}
	for _, scope := range scopeNames() {
		paths = append(paths, scope)
		for _, name := range p.names[scope] {
			at := scope + "/" + name
			paths = append(paths, at, at+"/probe.md")
			if scope == "projects" {
				paths = append(paths, at+"/current-status.md", at+"/incidents/probe.md")
			}
		}
	}
	for _, path := range paths {
		for _, a := range []Action{ActionList, ActionRead, ActionWrite, ActionCreate, ActionDelete} {
			r := Request{Action: a, Path: path, Claimed: claims}
			d, c := r, r
			d.Dir, c.Commit = true, true
			p.requests = append(p.requests, r, d)
			if a == ActionWrite || a == ActionCreate {
				c.Size, c.Content = 5, []byte("probe")
				p.requests = append(p.requests, c)
			}
		}
	}
	p.requests = append(p.requests, Request{Action: ActionMount, Claimed: claims}, Request{Action: ActionAdmin, Claimed: claims})
}

func (p *prober) caller(who string) *ast.Term {
	switch who {
	case "an unknown caller":
		return ast.ObjectTerm(ast.Item(ast.StringTerm("id"), ast.StringTerm("probe")), ast.Item(ast.StringTerm("kind"), ast.StringTerm("")))
	case "a caller without id":
		return ast.ObjectTerm()
	}
	s := *p.everything
	s.Kind, s.Disabled = strings.TrimPrefix(who, "a disabled "), true
	return s.term(ast.ObjectTerm())
}
