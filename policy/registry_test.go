package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRegistryRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, want string }{
		"unknown key":            {"humans:\n  - id: a\n    colour: red\n", "line 3: field colour not found"},
		"unknown section":        {"robots: []\n", "line 1: field robots not found"},
		"duplicate key":          {"humans: []\nhumans: []\n", "already defined"},
		"duplicate id":           {"humans:\n  - id: a\nagents:\n  - id: a\n", `line 4: agent "a": the id is taken by the human`},
		"duplicate uid":          {"humans:\n  - {id: a, uids: [5]}\n  - {id: b, uids: [5]}\n", `line 3: human "b": uid 5 is "a"'s`},
		"nobody's uid":           {"humans:\n  - {id: a, uids: [4294967295]}\n", "is nobody's"},
		"negative uid":           {"humans:\n  - {id: a, uids: [-1]}\n", "line 2"},
		"no id":                  {"humans:\n  - name: x\n", "human \"\""},
		"null id":                {"humans:\n  - id: ~\n", "human \"\""},
		"id with a slash":        {"humans:\n  - id: a/b\n", `line 2: human "a/b"`},
		"id dot dot":             {"agents:\n  - id: ..\n", `line 2: agent ".."`},
		"id a list":              {"humans:\n  - id: [a]\n", "line 2: a name is expected"},
		"long id":                {"humans:\n  - id: " + strings.Repeat("a", 129) + "\n", "at most 128"},
		"owner unknown":          {"agents:\n  - id: a\n    owners: [ghost]\n", `line 3: "a": owners names "ghost"`},
		"owner an agent":         {"agents:\n  - id: a\n  - id: b\n    owners: [a]\n", `line 4: "b": owners names "a"`},
		"serves unknown":         {"agents:\n  - id: a\n    serves: [ghost]\n", "line 3"},
		"on behalf of unknown":   {"agents:\n  - id: a\n    on_behalf_of: ghost\n", "line 3"},
		"human with owners":      {"humans:\n  - id: a\n  - id: b\n    owners: [a]\n", "are for agents"},
		"team of unknown":        {"teams:\n  - id: t\n    members: [ghost]\n", `line 3: team "t" names "ghost"`},
		"team twice":             {"teams:\n  - id: t\n  - id: t\n", `line 3: team "t" is there twice`},
		"team with another role": {"humans:\n  - id: a\nteams:\n  - id: t\n    owners: [a]\n", "line 5: field owners not found"},
		"project of unknown":     {"projects:\n  - id: p\n    members: [ghost]\n", "line 3"},
		"project twice":          {"projects:\n  - id: p\n  - id: p\n", "twice"},
		"skill of unknown":       {"skills:\n  - id: s\n    maintainers: [ghost]\n", "line 3"},
		"customer twice":         {"customers:\n  - id: c\n  - id: c\n", "twice"},
		"role with a blank":      {"humans:\n  - id: a\n    roles: [\"a b\"]\n", `line 3: role "a b"`},
		"two documents":          {"humans: []\n---\nhumans: []\n", "more than one document"},
		"empty":                  {"", "it is empty"},
		"not a mapping":          {"- a\n", "line 1"},
		"broken":                 {"humans: [\n", "line"},
		"disabled is not a bool": {"humans:\n  - id: a\n    disabled: perhaps\n", "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseRegistry([]byte(tc.yaml))
			if !errors.Is(err, ErrRegistry) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want ErrRegistry with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "policy.") || strings.Contains(err.Error(), "YAML") {
				t.Fatalf("the error names a Go type: %v", err)
			}
		})
	}
}

func TestRegistryGrants(t *testing.T) {
	r, err := parseRegistry([]byte(`
humans:
  - {id: mia, uids: [1, 2], roles: [admin]}
agents:
  - {id: 007, owners: [mia], serves: [mia], on_behalf_of: mia, roles: [account]}
services:
  - {id: importer, disabled: true}
teams:
  - {id: eng, maintainers: [mia], members: [mia, 007]}
projects:
  - {id: p, members: [007]}
skills:
  - {id: s, maintainers: [mia]}
customers:
  - {id: acme, roles: [account, other]}
`))
	if err != nil {
		t.Fatal(err)
	}
	mia, bond := r.subjects["mia"], r.subjects["007"]
	if mia.teams["eng"] != "maintainer" || bond.teams["eng"] != "member" || mia.owns["007"] != true || bond.serves["mia"] != true ||
		bond.OnBehalfOf != "mia" || bond.projects["p"] != true || mia.skills["s"] != true || bond.customers["acme"] != true ||
		mia.customers["acme"] != nil || r.byUID[2] != mia || !r.subjects["importer"].Disabled {
		t.Fatalf("mia %+v, 007 %+v", mia, bond)
	}
}

func TestRegistryFile(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := loadRegistry(filepath.Join(dir, "none")); !errors.Is(err, ErrRegistry) || !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if _, _, err := loadRegistry(dir); !errors.Is(err, ErrRegistry) {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "identities.yaml")
	put(t, file, "humans:\n  - id: a b\n")
	if _, _, err := loadRegistry(file); err == nil || !strings.HasPrefix(err.Error(), file+":") {
		t.Fatal(err)
	}
}

// Whoever runs init gets a registry that loads, in which they are a human with their uid.
func TestSampleRegistryLoadsForAnyLogin(t *testing.T) {
	for _, login := range []string{"root", "alice.b", "reviewer", "agent-104", "agent-205", "no", "NULL", "true", "007", "1e3", "0x10",
		"DOM\\bob", "", "-", ".hidden", "~", "ütf", "a b", "x: y", "'", `"`, "#", "\n", strings.Repeat("l", 300), "_", "@svc", "\xff"} {
		r, err := parseRegistry(SampleRegistry(login, 0))
		if err != nil {
			t.Errorf("%q: %v", login, err)
			continue
		}
		h := r.byUID[0]
		if h == nil || h.Kind != "human" || len(r.subjects) != 4 || len(h.owns) != 2 || h.roles["admin"] != true ||
			h.teams["engineering"] != "maintainer" || h.teams["support"] != "maintainer" || h.projects["billing-redesign"] != true {
			t.Errorf("%q: %+v", login, h)
		}
		if idPattern.MatchString(login) && len(login) <= 100 && h.ID != login {
			t.Errorf("%q became %q", login, h.ID)
		}
	}
}

func FuzzRegistry(f *testing.F) {
	f.Add([]byte(SampleRegistry("alice", 1000)))
	f.Add([]byte("humans:\n  - &a {id: x}\n  - *a\n"))
	f.Add([]byte("humans: !!binary aGk=\n"))
	f.Add([]byte("agents:\n  - {id: a, owners: [!!null x], <<: {id: b}}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRegistry(raw)
		if err != nil {
			if !errors.Is(err, ErrRegistry) {
				t.Fatal(err)
			}
			return
		}
		for id, s := range r.subjects {
			if s.ID != id || !idPattern.MatchString(id) || s.Kind == "" {
				t.Fatalf("%q: %+v", id, s)
			}
			for owner := range s.owners {
				if r.subjects[owner].owns[id] != true {
					t.Fatalf("%q is not in what %q owns", id, owner)
				}
			}
		}
	})
}
