package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/rego"
)

var effects = map[string]Effect{"deny": Deny, "propose": Propose, "allow": Allow}

// String is the word that rules use.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Propose:
		return "propose"
	default:
		return "deny"
	}
}

// fold makes one decision of the set of verdicts: deny over allow over propose over nothing. Anything that is not a set
// of "effect/rule-id" strings is a Deny.
func fold(rs opa.ResultSet) Decision {
	if len(rs) != 1 || len(rs[0].Expressions) != 1 {
		return Decision{Cause: "policy error: the decision is undefined", failed: true}
	}
	set, ok := rs[0].Expressions[0].Value.([]any)
	if !ok {
		return Decision{Cause: fmt.Sprintf("policy error: the decision is a %T, not a set of verdicts", rs[0].Expressions[0].Value), failed: true}
	}
	d := Decision{Rules: make([]string, 0, len(set))}
	denied := false
	for _, v := range set {
		s, _ := v.(string)
		word, rule, ok := strings.Cut(s, "/")
		effect, known := effects[word]
		if !ok || !known || rule == "" {
			return Decision{Cause: fmt.Sprintf("policy error: %q is no verdict", fmt.Sprint(v)), failed: true}
		}
		d.Rules = append(d.Rules, s)
		denied = denied || effect == Deny
		d.Effect = max(d.Effect, effect)
	}
	slices.Sort(d.Rules)
	switch {
	case denied:
		d.Effect = Deny
	case len(d.Rules) == 0:
		d.Cause = "no rule allows it"
	}
	return d
}

// set reads the obligations; what is not of the documented shape is an error.
func (o *Obligations) set(rs opa.ResultSet) error {
	if len(rs) == 0 {
		return nil // no obligations are defined
	}
	if len(rs) != 1 || len(rs[0].Expressions) != 1 {
		return fmt.Errorf("obligations are undefined")
	}
	m, ok := rs[0].Expressions[0].Value.(map[string]any)
	if !ok {
		return fmt.Errorf("obligations are a %T, not an object", rs[0].Expressions[0].Value)
	}
	for key, v := range m {
		ok := false
		switch key {
		case "reason":
			o.Reason, ok = v.(bool)
		case "audit_read":
			o.AuditRead, ok = v.(bool)
		case "fresh_base":
			o.FreshBase, ok = v.(bool)
		case "max_bytes":
			n, isNumber := v.(json.Number)
			if isNumber {
				var err error
				o.MaxBytes, err = n.Int64()
				ok = err == nil && o.MaxBytes >= 0
			}
		}
		if !ok {
			return fmt.Errorf("obligation %q: %v", key, v)
		}
	}
	return nil
}
