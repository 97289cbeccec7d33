package policy

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	e := open(t, defaultPolicy(t), filepath.Join("testdata", "identities.yaml"))
	for name, tc := range map[string]struct {
		ask     Request
		effect  string
		notes   string // of the first rule that spoke
		missing string
		mayDo   []string
		mayAsk  []string
	}{
		"allowed": {Request{Caller: "leo", Action: ActionRead, Path: "teams/engineering/a.md"}, "allow",
			"Members of a team read its directory; nobody else knows of it.", "", []string{"agent-104", "leo", "mia"}, []string{}},
		"may propose": {Request{Caller: "leo", Action: ActionWrite, Path: "teams/engineering/a.md"}, "propose",
			"Members of a team propose changes in it.", "Maintainers of a team write in its directory (allow/team-maintainer-write)",
			[]string{"mia"}, []string{"agent-104", "leo"}},
		"nobody directly": {Request{Caller: "zoe", Action: ActionWrite, Path: "organization/a.md"}, "propose",
			"Everyone known proposes", "propose it, and have it approved", []string{},
			[]string{"agent-104", "agent-205", "importer", "leo", "mia", "zoe"}},
		"not in the team": {Request{Caller: "zoe", Action: ActionRead, Path: "teams/engineering/a.md"}, "deny", "",
			"Members of a team read its directory", []string{"agent-104", "leo", "mia"}, []string{}},
		"nobody at all": {Request{Caller: "mia", Action: ActionDelete, Path: "agents/agent-104", Dir: true}, "deny", "",
			"it takes a change of the policy", []string{}, []string{}},
		"disabled": {Request{Caller: "dora", Action: ActionRead, Path: "organization/a.md"}, "deny", "",
			"enabled principal", nil, nil},
		"unknown": {Request{Caller: "ghost", Action: ActionRead, Path: "organization/a.md"}, "deny", "",
			"enabled principal", nil, nil},
		"denied by a rule": {Request{Caller: "mia", Action: ActionMount, Target: "agent-old"}, "deny",
			"A human mounts as an agent", "deny/mount-disabled refuses it", []string{}, []string{}},
		"scratch": {Request{Caller: "leo", Action: ActionWrite, Path: "teams/engineering/.a.swp", Ephemeral: true}, "allow",
			"Members of a team read", "", []string{"agent-104", "leo", "mia"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			x := e.Explain(t.Context(), tc.ask)
			if x.Effect != tc.effect || !strings.Contains(x.Missing, tc.missing) || tc.missing == "" && x.Missing != "" {
				t.Errorf("%+v", x)
			}
			if tc.notes != "" && (len(x.Notes) == 0 || !strings.HasPrefix(x.Notes[0].Says, tc.notes) || !strings.Contains(x.Notes[0].Where, ".rego:")) {
				t.Errorf("notes %+v", x.Notes)
			}
			if tc.mayDo != nil && (!slices.Equal(x.MayDo, tc.mayDo) || !slices.Equal(x.MayAsk, tc.mayAsk)) {
				t.Errorf("may %v, may propose %v", x.MayDo, x.MayAsk)
			}
			if _, err := json.Marshal(x); err != nil {
				t.Error(err)
			}
		})
	}
	if n := cached(e.current.Load()); n != 0 {
		t.Errorf("explaining left %d entries in the cache", n)
	}
}

func TestRuleNotes(t *testing.T) {
	dir := policyOf(t, header+`
# METADATA
# title: The title
# description: |
#   What it is for,
#   in two lines.
verdicts contains "allow/described" if input.caller.known

# METADATA
# title: The title
verdicts contains "allow/titled" if input.caller.known

# A comment
# of two lines.
verdicts contains "allow/commented" if input.caller.known

# Not of the rule below.

verdicts contains "allow/bare" if input.caller.known

# The computed one has no constant id.
verdicts contains v if { input.caller.known; v := concat("/", ["allow", "computed"]) }
`)
	e := open(t, dir, sampleRegistry(t))
	x := e.Explain(t.Context(), readA)
	want := map[string]string{"allow/described": "What it is for, in two lines.", "allow/titled": "The title",
		"allow/commented": "A comment of two lines.", "allow/bare": "", "allow/computed": ""}
	if len(x.Notes) != len(want) {
		t.Fatalf("%+v", x.Notes)
	}
	for _, n := range x.Notes {
		if n.Says != want[n.Rule] {
			t.Errorf("%s says %q, want %q", n.Rule, n.Says, want[n.Rule])
		}
	}
}
