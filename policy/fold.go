package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// answer is a decision before it has an id. Immutable: the cache shares it.
type answer struct {
	effect      Effect
	rules       []string
	cause       string
	obligations Obligations
	failed      bool // an error, not a verdict: never cached
}

func failure(format string, args ...any) *answer {
	return &answer{cause: "policy error: " + fmt.Sprintf(format, args...), failed: true}
}

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

func effectOf(word string) (Effect, bool) {
	switch word {
	case "deny":
		return Deny, true
	case "propose":
		return Propose, true
	case "allow":
		return Allow, true
	default:
		return Deny, false
	}
}

// fold makes one answer of the set of verdicts: deny over allow over propose over nothing. Anything that is not a set of
// "effect/rule-id" strings is a denial.
func fold(v ast.Value) *answer {
	set, ok := v.(ast.Set)
	if !ok {
		return failure("the decision is %s, not a set of verdicts", typeName(v))
	}
	a := &answer{rules: make([]string, 0, set.Len())}
	denied := false
	for _, term := range set.Slice() {
		s, _ := term.Value.(ast.String)
		word, rule, _ := strings.Cut(string(s), "/")
		effect, known := effectOf(word)
		if !known || rule == "" {
			return failure("%s is no verdict", term)
		}
		a.rules = append(a.rules, string(s))
		denied = denied || effect == Deny
		a.effect = max(a.effect, effect)
	}
	slices.Sort(a.rules)
	switch {
	case denied:
		a.effect = Deny
	case len(a.rules) == 0:
		a.cause = "no rule allows it"
	}
	return a
}

func typeName(v ast.Value) string {
	if v == nil {
		return "undefined"
	}
	return "of type " + ast.ValueName(v)
}

// set reads the obligations; what is not of the documented shape is an error. listed: each value is in an array, empty for
// an obligation that is not imposed.
func (o *Obligations) set(v ast.Value, listed bool) error {
	m, ok := v.(ast.Object)
	if !ok {
		return fmt.Errorf("the obligations are %s, not an object", typeName(v))
	}
	return m.Iter(func(key, value *ast.Term) error {
		if list, ok := value.Value.(*ast.Array); ok && listed {
			if list.Len() == 0 {
				return nil
			}
			value = list.Elem(0)
		}
		name, _ := key.Value.(ast.String)
		flag, ok := value.Value.(ast.Boolean)
		switch name {
		case "reason":
			o.Reason = bool(flag)
		case "audit_read":
			o.AuditRead = bool(flag)
		case "fresh_base":
			o.FreshBase = bool(flag)
		case "max_bytes":
			var n ast.Number
			if n, ok = value.Value.(ast.Number); ok {
				var err error
				o.MaxBytes, err = json.Number(n).Int64()
				ok = err == nil && o.MaxBytes >= 0
			}
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("there is no obligation %s of value %s", key, value)
		}
		return nil
	})
}
