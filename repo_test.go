// Package memoryfs holds what is true of the whole repository: the direction of imports, and who imports what.
package memoryfs

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// rooms are the packages, with what of this module each may import. A test package may import what it needs.
var rooms = map[string][]string{
	"":                    {},
	"cmd/memoryfs":        {"control", "fusefs", "backend", "backend/store", "backend/kv", "backend/kv/badgerkv", "policy", "audit", "rego"},
	"fusefs":              {"backend", "backend/store", "policy"},
	"fusefs/scenario":     {},
	"control":             {"backend", "backend/store", "policy", "audit"},
	"backend":             {"policy", "audit", "backend/store", "backend/text", "backend/kv", "backend/kv/badgerkv"},
	"backend/store":       {"backend/kv"},
	"backend/text":        {},
	"backend/kv":          {},
	"backend/kv/kvtest":   {"backend/kv"},
	"backend/kv/badgerkv": {"backend/kv"},
	"policy":              {"rego"},
	"audit":               {},
	"rego":                {},
}

// only names the packages that alone may import a library.
var only = map[string][]string{
	"github.com/hanwen/go-fuse":        {"fusefs"},
	"github.com/open-policy-agent/opa": {"policy"},
	"github.com/dgraph-io/badger":      {"backend/kv/badgerkv"},
	"github.com/spf13/cobra":           {"cmd/memoryfs"},
	"github.com/aymanbagabas/go-udiff": {"backend/text"},
	"github.com/dgraph-io/ristretto":   {},
}

func load(t *testing.T) []*packages.Package {
	t.Helper()
	all, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedFiles | packages.NeedSyntax | packages.NeedCompiledGoFiles | packages.NeedTypes}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func room(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "memoryfs"), "/")
}

// TestImportDirection: front ends on backend, backend on policy, audit and store, store on kv; siblings never meet.
func TestImportDirection(t *testing.T) {
	for _, p := range load(t) {
		may, known := rooms[room(p.PkgPath)]
		if !known {
			t.Errorf("%s is no room of DESIGN's layout: name it here with what it may import", p.PkgPath)
			continue
		}
		for path := range p.Imports {
			if path != "memoryfs" && !strings.HasPrefix(path, "memoryfs/") {
				continue
			}
			ok := false
			for _, m := range may {
				ok = ok || m == room(path)
			}
			if !ok {
				t.Errorf("%s may not import %s", p.PkgPath, path)
			}
		}
	}
}

// TestOnlyImporters: a library has one room that knows it.
func TestOnlyImporters(t *testing.T) {
	for _, p := range load(t) {
		for path := range p.Imports {
			for lib, who := range only {
				if !strings.HasPrefix(path, lib) {
					continue
				}
				ok := false
				for _, w := range who {
					ok = ok || w == room(p.PkgPath)
				}
				if !ok {
					t.Errorf("%s may not import %s", p.PkgPath, path)
				}
			}
		}
	}
}

// TestPackageDocs: every package says what it is for, once.
func TestPackageDocs(t *testing.T) {
	for _, p := range load(t) {
		docs := 0
		for _, f := range p.Syntax {
			if f.Doc != nil {
				docs++
			}
		}
		if docs != 1 && room(p.PkgPath) != "" {
			t.Errorf("%s has %d package comments, one is wanted", p.PkgPath, docs)
		}
	}
}
