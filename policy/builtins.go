package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// barred tells why a builtin is not for policies; "" if it is. A decision follows from its input alone, or the cache
// and the audit would lie, and it never leaves the process.
func barred(b *ast.Builtin) string {
	switch {
	case b.Name == "http.send", strings.HasPrefix(b.Name, "net."):
		return "policies have no network"
	case b.Name == "opa.runtime", strings.HasPrefix(b.Name, "rego."):
		return "policies do not look at what runs them"
	case b.Name == "crypto.x509.parse_and_verify_certificates", b.Name == "crypto.x509.parse_and_verify_certificates_with_options",
		b.Nondeterministic: // the first two look at the clock, and are not marked so
		return "its answer does not follow from its arguments alone"
	default:
		return ""
	}
}

// capabilities are those of this OPA without what is barred, and without hosts to fetch schemas from.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool { return barred(b) != "" })
	c.AllowNet = []string{}
	return c
}

// checkBuiltins names the calls of barred builtins in words; without it the compiler would call them undefined.
func checkBuiltins(modules map[string]*ast.Module) error {
	why := map[string]string{}
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		if reason := barred(b); reason != "" {
			why[b.Name] = reason
		}
	}
	var errs []error
	for _, file := range sortedKeys(modules) {
		ast.WalkTerms(modules[file], func(t *ast.Term) bool {
			if ref, ok := t.Value.(ast.Ref); ok && why[ref.String()] != "" {
				errs = append(errs, fmt.Errorf("%w: %s: %s: %s", ErrPolicy, t.Loc(), ref, why[ref.String()]))
			}
			return false
		})
	}
	return errors.Join(errs...)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
