package policy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// goldenCase is one row of testdata/decisions/*.yaml; the README there says how to read it.
type goldenCase struct {
	As     string   `yaml:"as"`
	May    []string `yaml:"may"`     // actions that are allowed
	Asks   []string `yaml:"asks"`    // actions that may be proposed
	MayNot []string `yaml:"may_not"` // actions that are denied
	Path   string   `yaml:"path"`
	Target string   `yaml:"target"`
	Eph    bool     `yaml:"ephemeral"`
	Rules  []string `yaml:"rules"` // of every action of the row, if given
}

// The decisions of the default policy on testdata/identities.yaml.
func TestGoldenDecisions(t *testing.T) {
	e := open(t, defaultPolicy(t), filepath.Join("testdata", "identities.yaml"))
	files, err := filepath.Glob(filepath.Join("testdata", "decisions", "*.yaml"))
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(raw))
		dec.KnownFields(true)
		var rows []goldenCase
		if err := dec.Decode(&rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, row := range rows {
			t.Run(fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(file), ".yaml"), i+1), func(t *testing.T) { row.check(t, e) })
		}
	}
}

func (row goldenCase) check(t *testing.T, e *Engine) {
	seen := 0
	for effect, actions := range map[Effect][]string{Allow: row.May, Propose: row.Asks, Deny: row.MayNot} {
		for _, a := range actions {
			seen++
			r := Request{Caller: row.As, Action: Action(a), Path: strings.TrimSuffix(row.Path, "/"), Ephemeral: row.Eph,
				Dir: row.Path == "" || strings.HasSuffix(row.Path, "/"), Target: row.Target}
			for range 2 { // asked, and from the cache
				d := e.Decide(t.Context(), r)
				if d.Effect != effect {
					t.Errorf("%s %s %q: %s by %v (%s), want %s", row.As, a, row.Path, d.Effect, d.Rules, d.Cause, effect)
				}
				if row.Rules != nil && !slices.Equal(d.Rules, row.Rules) {
					t.Errorf("%s %s %q: rules %v, want %v", row.As, a, row.Path, d.Rules, row.Rules)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("the row asks nothing")
	}
}
