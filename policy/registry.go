package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// registryFile is identities.yaml.
type registryFile struct {
	Humans    []principalYAML `yaml:"humans"`
	Agents    []principalYAML `yaml:"agents"`
	Services  []principalYAML `yaml:"services"`
	Teams     []teamYAML      `yaml:"teams"`
	Projects  []projectYAML   `yaml:"projects"`
	Skills    []skillYAML     `yaml:"skills"`
	Customers []customerYAML  `yaml:"customers"`
}

type principalYAML struct {
	ID         string   `yaml:"id"`
	Name       string   `yaml:"name"`
	UIDs       []uint32 `yaml:"uids"`
	Roles      []string `yaml:"roles"`
	Owners     []string `yaml:"owners"`       // of an agent or service: humans
	OnBehalfOf string   `yaml:"on_behalf_of"` // of an agent or service: a human
	Serves     []string `yaml:"serves"`       // of an agent or service: humans
	Disabled   bool     `yaml:"disabled"`
}

type teamYAML struct {
	ID          string   `yaml:"id"`
	Maintainers []string `yaml:"maintainers"`
	Members     []string `yaml:"members"`
}

type projectYAML struct {
	ID      string   `yaml:"id"`
	Members []string `yaml:"members"`
}

type skillYAML struct {
	ID          string   `yaml:"id"`
	Maintainers []string `yaml:"maintainers"`
}

type customerYAML struct {
	ID    string   `yaml:"id"`
	Roles []string `yaml:"roles"` // whoever has one of them
}

// subject is a principal with all its grants, as policy sees it.
type subject struct {
	Principal
	uids      []uint32
	roles     map[string]any
	owners    map[string]any
	serves    map[string]any
	teams     map[string]any
	projects  map[string]any
	skills    map[string]any
	customers map[string]any
	owns      map[string]any
}

// registry is identities.yaml, validated.
type registry struct {
	subjects map[string]*subject
	byUID    map[uint32]*subject
	ids      []string // sorted
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+-]{0,127}$`)

func loadRegistry(file string) (*registry, []byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	r, err := parseRegistry(raw)
	if err != nil {
		return nil, raw, fmt.Errorf("%s: %w", file, err)
	}
	return r, raw, nil
}

// parseRegistry decodes strictly: unknown keys, duplicate ids and uids, and references to what is not there are refused.
func parseRegistry(raw []byte) (*registry, error) {
	var f registryFile
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	var more any
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more than one document", ErrRegistry)
	}
	r := &registry{subjects: map[string]*subject{}, byUID: map[uint32]*subject{}}
	for _, group := range []struct {
		kind string
		list []principalYAML
	}{{"human", f.Humans}, {"agent", f.Agents}, {"service", f.Services}} {
		for _, p := range group.list {
			if err := r.add(group.kind, p); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
			}
		}
	}
	if err := r.relate(f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	for id := range r.subjects {
		r.ids = append(r.ids, id)
	}
	slices.Sort(r.ids)
	return r, nil
}

func (r *registry) add(kind string, p principalYAML) error {
	if !idPattern.MatchString(p.ID) {
		return fmt.Errorf("%s %q: an id is letters, digits and . _ @ + -, at most 128", kind, p.ID)
	}
	if r.subjects[p.ID] != nil {
		return fmt.Errorf("%s %q: the id is taken", kind, p.ID)
	}
	if kind == "human" && (len(p.Owners) > 0 || len(p.Serves) > 0 || p.OnBehalfOf != "") {
		return fmt.Errorf("human %q: owners, serves and on_behalf_of are for agents and services", p.ID)
	}
	s := &subject{Principal: Principal{ID: p.ID, Kind: kind, OnBehalfOf: p.OnBehalfOf, Disabled: p.Disabled}, uids: p.UIDs,
		roles: set(p.Roles), owners: set(p.Owners), serves: set(p.Serves), teams: map[string]any{}, projects: map[string]any{},
		skills: map[string]any{}, customers: map[string]any{}, owns: map[string]any{}}
	r.subjects[p.ID] = s
	for _, uid := range p.UIDs {
		if other := r.byUID[uid]; other != nil {
			return fmt.Errorf("%s %q: uid %d is %q's", kind, p.ID, uid, other.ID)
		}
		r.byUID[uid] = s
	}
	return nil
}

func set(list []string) map[string]any {
	m := make(map[string]any, len(list))
	for _, x := range list {
		m[x] = true
	}
	return m
}

// relate resolves everything that names something else.
func (r *registry) relate(f registryFile) error {
	for id, s := range r.subjects {
		for _, refs := range []map[string]any{s.owners, s.serves} {
			for human := range refs {
				if err := r.mustBeHuman(id, human); err != nil {
					return err
				}
			}
		}
		if s.OnBehalfOf != "" {
			if err := r.mustBeHuman(id, s.OnBehalfOf); err != nil {
				return err
			}
		}
		for owner := range s.owners {
			r.subjects[owner].owns[id] = true
		}
	}
	seen := map[string]bool{}
	for _, t := range f.Teams {
		if err := r.grant("team", t.ID, t.Members, seen, func(s *subject) { s.teams[t.ID] = "member" }); err != nil {
			return err
		}
		delete(seen, "team/"+t.ID)
		if err := r.grant("team", t.ID, t.Maintainers, seen, func(s *subject) { s.teams[t.ID] = "maintainer" }); err != nil {
			return err
		}
	}
	for _, p := range f.Projects {
		if err := r.grant("project", p.ID, p.Members, seen, func(s *subject) { s.projects[p.ID] = true }); err != nil {
			return err
		}
	}
	for _, k := range f.Skills {
		if err := r.grant("skill", k.ID, k.Maintainers, seen, func(s *subject) { s.skills[k.ID] = true }); err != nil {
			return err
		}
	}
	for _, c := range f.Customers {
		if err := r.grant("customer", c.ID, nil, seen, nil); err != nil {
			return err
		}
		for _, s := range r.subjects {
			for _, role := range c.Roles {
				if s.roles[role] != nil {
					s.customers[c.ID] = true
				}
			}
		}
	}
	return nil
}

func (r *registry) mustBeHuman(id, human string) error {
	if h := r.subjects[human]; h == nil || h.Kind != "human" {
		return fmt.Errorf("%q names %q, which is no human of the registry", id, human)
	}
	return nil
}

func (r *registry) grant(kind, id string, ids []string, seen map[string]bool, do func(*subject)) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("%s %q: an id is letters, digits and . _ @ + -, at most 128", kind, id)
	}
	if seen[kind+"/"+id] {
		return fmt.Errorf("%s %q is there twice", kind, id)
	}
	seen[kind+"/"+id] = true
	for _, p := range ids {
		s := r.subjects[p]
		if s == nil {
			return fmt.Errorf("%s %q names %q, which the registry does not know", kind, id, p)
		}
		do(s)
	}
	return nil
}

// input is the caller as Rego sees it.
func (s *subject) input() map[string]any {
	return map[string]any{"id": s.ID, "kind": s.Kind, "on_behalf_of": s.OnBehalfOf, "disabled": s.Disabled, "teams": s.teams,
		"projects": s.projects, "roles": s.roles, "serves": s.serves, "owns": s.owns, "skills": s.skills, "customers": s.customers}
}

func (s *subject) target() map[string]any {
	return map[string]any{"id": s.ID, "kind": s.Kind, "owners": s.owners, "disabled": s.Disabled}
}

// data is the registry as data.identities.
func (r *registry) data() map[string]any {
	all := make(map[string]any, len(r.subjects))
	for id, s := range r.subjects {
		in := s.input()
		in["owners"] = s.owners
		all[id] = in
	}
	return all
}
