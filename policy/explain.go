package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Explanation of a decision for a person.
type Explanation struct {
	Principal string     `json:"principal"`
	Action    Action     `json:"action"`
	Path      string     `json:"path"`
	Effect    string     `json:"effect"`
	Rules     []string   `json:"rules"`
	Cause     string     `json:"cause,omitempty"`
	Notes     []RuleNote `json:"notes"`             // of the rules that spoke
	Missing   string     `json:"missing,omitempty"` // what would have to be granted
	Grants    []RuleNote `json:"grants,omitempty"`  // the rules by which others may
	MayDo     []string   `json:"may_do"`            // principals that are allowed to do it
	MayAsk    []string   `json:"may_propose"`       // principals that may propose it
	Policy    string     `json:"policy"`
	Decision  Decision   `json:"decision"`
}

// Explain decides, and asks the same for every principal, to say who could. It leaves the cache alone.
func (e *Engine) Explain(ctx context.Context, r Request) Explanation {
	s := e.current.Load()
	d := s.decision(s.ask(ctx, r.place()))
	x := Explanation{Principal: r.Caller, Action: r.Action, Path: r.Path, Effect: d.Effect.String(), Rules: d.Rules, Cause: d.Cause,
		Notes: []RuleNote{}, MayDo: []string{}, MayAsk: []string{}, Policy: d.Revision, Decision: d}
	for _, rule := range d.Rules {
		x.Notes = append(x.Notes, s.note(rule))
	}
	x.others(ctx, s, r)
	if d.Effect != Allow {
		x.Missing = x.missing(r)
	}
	return x
}

// others fills in who may, who may propose, and by which rules.
func (x *Explanation) others(ctx context.Context, s *snapshot, r Request) {
	grants := map[string]bool{}
	for _, id := range s.registry.ids {
		r.Caller = id
		a := s.ask(ctx, r.place())
		switch a.effect {
		case Allow:
			x.MayDo = append(x.MayDo, id)
		case Propose:
			x.MayAsk = append(x.MayAsk, id)
			continue
		default:
			continue
		}
		for _, rule := range a.rules {
			if strings.HasPrefix(rule, "allow/") {
				grants[rule] = true
			}
		}
	}
	if x.Effect == Allow.String() {
		return
	}
	for _, rule := range sortedKeys(grants) {
		x.Grants = append(x.Grants, s.note(rule))
	}
}

// missing says in words what stands between the principal and an allow.
func (x *Explanation) missing(r Request) string {
	for _, rule := range x.Rules {
		if strings.HasPrefix(rule, "deny/") {
			return fmt.Sprintf("%s refuses it, whatever else allows", rule)
		}
	}
	if strings.HasPrefix(x.Cause, "the caller") {
		return fmt.Sprintf("%q must be an enabled principal of identities.yaml", r.Caller)
	}
	var ways []string
	for _, g := range x.Grants {
		if g.Says == "" {
			ways = append(ways, g.Rule)
		} else {
			ways = append(ways, fmt.Sprintf("%s (%s)", strings.TrimSuffix(g.Says, "."), g.Rule))
		}
	}
	said := fmt.Sprintf("a rule that allows %s to %s it", r.Caller, r.Action)
	switch {
	case len(ways) > 0:
		return said + "; others may because: " + strings.Join(ways, "; ")
	case len(x.MayAsk) > 0 && slices.Contains(x.MayAsk, r.Caller):
		return said + "; no principal may directly: propose it, and have it approved"
	case len(x.MayAsk) > 0:
		return said + "; no principal may directly: it takes a proposal of one who may propose, and an approval"
	default:
		return said + "; no principal may: it takes a change of the policy or of identities.yaml"
	}
}
