package policy

import "github.com/open-policy-agent/opa/v1/ast"

// terms makes one term of each principal, which serves as caller, as target and in data.identities: a registry of 1,000
// costs a few MB.
func (r *registry) terms() map[string]*ast.Term {
	none := ast.ObjectTerm()
	out := make(map[string]*ast.Term, len(r.subjects))
	for id, s := range r.subjects {
		out[id] = s.term(none)
	}
	return out
}

// term is the principal as Rego sees it. none is an empty object, to share.
func (s *subject) term(none *ast.Term) *ast.Term {
	return ast.ObjectTerm(
		ast.Item(ast.InternedTerm("id"), ast.StringTerm(s.ID)),
		ast.Item(ast.InternedTerm("kind"), ast.InternedTerm(s.Kind)),
		ast.Item(ast.InternedTerm("known"), ast.InternedTerm(!s.Disabled)),
		ast.Item(ast.InternedTerm("disabled"), ast.InternedTerm(s.Disabled)),
		ast.Item(ast.InternedTerm("on_behalf_of"), ast.StringTerm(s.OnBehalfOf)),
		ast.Item(ast.InternedTerm("roles"), names(s.roles, none)),
		ast.Item(ast.InternedTerm("owners"), names(s.owners, none)),
		ast.Item(ast.InternedTerm("owns"), names(s.owns, none)),
		ast.Item(ast.InternedTerm("serves"), names(s.serves, none)),
		ast.Item(ast.InternedTerm("teams"), names(s.teams, none)),
		ast.Item(ast.InternedTerm("projects"), names(s.projects, none)),
		ast.Item(ast.InternedTerm("skills"), names(s.skills, none)),
		ast.Item(ast.InternedTerm("customers"), names(s.customers, none)),
	)
}

// names is a grant as an object: the name to true, or to the role.
func names(grant map[string]any, none *ast.Term) *ast.Term {
	if len(grant) == 0 {
		return none
	}
	items := make([][2]*ast.Term, 0, len(grant))
	for name, what := range grant {
		value := ast.InternedTerm(true)
		if role, ok := what.(string); ok {
			value = ast.InternedTerm(role)
		}
		items = append(items, ast.Item(ast.StringTerm(name), value))
	}
	return ast.ObjectTerm(items...)
}
