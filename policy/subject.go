package policy

// subject is a principal with all its grants, by name: true, or in teams the role. Most are nil.
type subject struct {
	Principal
	roles     map[string]any
	owners    map[string]any
	serves    map[string]any
	teams     map[string]any
	projects  map[string]any
	skills    map[string]any
	customers map[string]any
	owns      map[string]any
}

// registry is identities.yaml, validated. Immutable.
type registry struct {
	subjects map[string]*subject
	byUID    map[uint32]*subject
	ids      []string // sorted
}

func (s *subject) grants() []*map[string]any {
	return []*map[string]any{&s.roles, &s.owners, &s.serves, &s.teams, &s.projects, &s.skills, &s.customers, &s.owns}
}

func give(to *map[string]any, name string, what any) {
	if *to == nil {
		*to = map[string]any{}
	}
	(*to)[name] = what
}

// fill takes the principals first, for the rest refers to them.
func (r *registry) fill(f registryYAML) error {
	for _, group := range []struct {
		kind string
		list []principalYAML
	}{{"human", f.Humans}, {"agent", f.Agents}, {"service", f.Services}} {
		for _, p := range group.list {
			if err := r.add(group.kind, p); err != nil {
				return err
			}
		}
	}
	for _, list := range [][]principalYAML{f.Agents, f.Services} {
		for _, p := range list {
			if err := r.relate(p); err != nil {
				return err
			}
		}
	}
	return r.group(f)
}

func (r *registry) add(kind string, p principalYAML) error {
	if err := p.ID.check(kind); err != nil {
		return err
	}
	if other := r.subjects[p.ID.text]; other != nil {
		return p.ID.fail("%s %q: the id is taken by the %s", kind, p.ID.text, other.Kind)
	}
	if kind == "human" && (len(p.Owners) > 0 || len(p.Serves) > 0 || p.OnBehalfOf.text != "") {
		return p.ID.fail("human %q: owners, serves and on_behalf_of are for agents and services", p.ID.text)
	}
	s := &subject{Principal: Principal{ID: p.ID.text, Kind: kind, OnBehalfOf: p.OnBehalfOf.text, Disabled: p.Disabled}}
	for _, role := range p.Roles {
		if err := role.check("role"); err != nil {
			return err
		}
		give(&s.roles, role.text, true)
	}
	r.subjects[p.ID.text] = s
	for _, uid := range p.UIDs {
		if other := r.byUID[uid]; other != nil {
			return p.ID.fail("%s %q: uid %d is %q's", kind, p.ID.text, uid, other.ID)
		}
		if uid == nobodyUID {
			return p.ID.fail("%s %q: uid %d is nobody's", kind, p.ID.text, uid)
		}
		r.byUID[uid] = s
	}
	return nil
}

// relate an agent or service to its humans.
func (r *registry) relate(p principalYAML) error {
	s := r.subjects[p.ID.text]
	for _, owner := range p.Owners {
		h, err := r.human(p.ID.text, "owners", owner)
		if err != nil {
			return err
		}
		give(&s.owners, owner.text, true)
		give(&h.owns, p.ID.text, true)
	}
	for _, user := range p.Serves {
		if _, err := r.human(p.ID.text, "serves", user); err != nil {
			return err
		}
		give(&s.serves, user.text, true)
	}
	if p.OnBehalfOf.text != "" {
		_, err := r.human(p.ID.text, "on_behalf_of", p.OnBehalfOf)
		return err
	}
	return nil
}

func (r *registry) human(id, field string, w word) (*subject, error) {
	h := r.subjects[w.text]
	if h == nil || h.Kind != "human" {
		return nil, w.fail("%q: %s names %q, which is no human of the registry", id, field, w.text)
	}
	return h, nil
}

// group gives out what comes from teams, projects, skills and customers.
func (r *registry) group(f registryYAML) error {
	seen := map[string]bool{}
	for _, t := range f.Teams {
		if err := fresh(seen, "team", t.ID); err != nil {
			return err
		}
		if err := r.grant("team", t.ID, t.Members, func(s *subject) { give(&s.teams, t.ID.text, "member") }); err != nil {
			return err
		}
		if err := r.grant("team", t.ID, t.Maintainers, func(s *subject) { give(&s.teams, t.ID.text, "maintainer") }); err != nil {
			return err
		}
	}
	for _, p := range f.Projects {
		if err := fresh(seen, "project", p.ID); err != nil {
			return err
		}
		if err := r.grant("project", p.ID, p.Members, func(s *subject) { give(&s.projects, p.ID.text, true) }); err != nil {
			return err
		}
	}
	for _, k := range f.Skills {
		if err := fresh(seen, "skill", k.ID); err != nil {
			return err
		}
		if err := r.grant("skill", k.ID, k.Maintainers, func(s *subject) { give(&s.skills, k.ID.text, true) }); err != nil {
			return err
		}
	}
	for _, c := range f.Customers {
		if err := fresh(seen, "customer", c.ID); err != nil {
			return err
		}
		if err := r.customer(c); err != nil {
			return err
		}
	}
	return nil
}

func fresh(seen map[string]bool, kind string, id word) error {
	if err := id.check(kind); err != nil {
		return err
	}
	if seen[kind+"/"+id.text] {
		return id.fail("%s %q is there twice", kind, id.text)
	}
	seen[kind+"/"+id.text] = true
	return nil
}

func (r *registry) grant(kind string, id word, principals []word, do func(*subject)) error {
	for _, p := range principals {
		s := r.subjects[p.text]
		if s == nil {
			return p.fail("%s %q names %q, which the registry does not know", kind, id.text, p.text)
		}
		do(s)
	}
	return nil
}

func (r *registry) customer(c customerYAML) error {
	for _, role := range c.Roles {
		if err := role.check("role"); err != nil {
			return err
		}
		for _, s := range r.subjects {
			if s.roles[role.text] != nil {
				give(&s.customers, c.ID.text, true)
			}
		}
	}
	return nil
}
