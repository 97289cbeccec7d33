package policy

import (
	"context"
	"fmt"
)

// Explanation of a decision for a person.
type Explanation struct {
	Principal string   `json:"principal"`
	Action    Action   `json:"action"`
	Path      string   `json:"path"`
	Effect    string   `json:"effect"`
	Rules     []string `json:"rules"`
	Cause     string   `json:"cause,omitempty"`
	Missing   string   `json:"missing,omitempty"` // what would have to be granted
	MayDo     []string `json:"may_do"`            // principals that are allowed to do it
	MayAsk    []string `json:"may_propose"`       // principals that may propose it
	Policy    string   `json:"policy"`
}

// Explain decides, and asks the same for every principal, to say who could.
func (e *Engine) Explain(ctx context.Context, r Request) Explanation {
	s := e.current.Load()
	d := s.decide(ctx, r)
	x := Explanation{Principal: r.Caller, Action: r.Action, Path: r.Path, Effect: d.Effect.String(), Rules: d.Rules, Cause: d.Cause,
		Policy: d.Revision, MayDo: []string{}, MayAsk: []string{}}
	for _, id := range s.registry.ids {
		other := r
		other.Caller = id
		switch s.decide(ctx, other).Effect {
		case Allow:
			x.MayDo = append(x.MayDo, id)
		case Propose:
			x.MayAsk = append(x.MayAsk, id)
		}
	}
	if d.Effect != Allow {
		x.Missing = fmt.Sprintf("a rule that allows %s to %s it", r.Caller, r.Action)
		if len(x.MayDo) == 0 {
			x.Missing += "; today no principal may: it takes a proposal and an approval, or a change of the policy"
		}
	}
	return x
}
