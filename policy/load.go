package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// source is a policy directory and a registry, read and parsed.
type source struct {
	modules  map[string]*ast.Module // by file name, tests included
	registry *registry
	revision string // hash of all bytes
}

const testSuffix = "_test.rego"

// read parses every *.rego of dir (no subdirectories) and the registry.
func read(dir, registryFile string) (*source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPolicy, err)
	}
	s := &source{modules: map[string]*ast.Module{}}
	sum := sha256.New()
	rules := false
	for _, e := range entries { // sorted by name
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".rego") {
			continue
		}
		file := filepath.Join(dir, e.Name())
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
		}
		m, err := ast.ParseModuleWithOpts(file, string(raw), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
		}
		if m == nil {
			continue // only comments
		}
		s.modules[file] = m
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(raw), raw)
		rules = rules || !strings.HasSuffix(e.Name(), testSuffix)
	}
	if !rules {
		return nil, fmt.Errorf("%w: no .rego file in %s", ErrNoPolicy, dir)
	}
	var raw []byte
	if s.registry, raw, err = loadRegistry(registryFile); err != nil {
		return nil, err
	}
	sum.Write(raw)
	s.revision = hex.EncodeToString(sum.Sum(nil))[:16]
	return s, nil
}

// capabilities are those of this OPA, without the builtins whose answer depends on more than their arguments, and
// without the network.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Nondeterministic || b.Name == "opa.runtime" || b.Name == "http.send" || strings.HasPrefix(b.Name, "net.lookup")
	})
	c.AllowNet = []string{}
	return c
}

// compile compiles strictly; the tests only with the tests, so that no rule can lean on them.
func (s *source) compile(withTests bool) (*ast.Compiler, error) {
	mods := map[string]*ast.Module{}
	for file, m := range s.modules {
		if withTests || !strings.HasSuffix(file, testSuffix) {
			mods[file] = m.Copy()
		}
	}
	c := ast.NewCompiler().WithStrict(!withTests).WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1)
	if c.Compile(mods); c.Failed() {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, c.Errors)
	}
	return c, nil
}

// store holds the registry as data.identities.
func (s *source) store() storage.Store {
	return inmem.NewFromObjectWithOpts(map[string]any{"identities": s.registry.data()},
		inmem.OptRoundTripOnWrite(true), inmem.OptReturnASTValuesOnRead(true))
}

// TestResult is one rule of the policy's own tests.
type TestResult struct {
	Name     string        `json:"name"`
	Location string        `json:"location"`
	Pass     bool          `json:"pass"`
	Error    string        `json:"error,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

const testTimeout = 10 * time.Second // of one test

// test runs the policy's own tests.
func (s *source) test(ctx context.Context) ([]TestResult, error) {
	c, err := s.compile(true)
	if err != nil {
		return nil, err
	}
	ch, err := tester.NewRunner().SetCompiler(c).SetStore(s.store()).SetTimeout(testTimeout).RaiseBuiltinErrors(true).
		SetDefaultRegoVersion(ast.RegoV1).SetModules(s.copies()).RunTests(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTestsFail, err)
	}
	var out []TestResult
	for r := range ch {
		t := TestResult{Name: r.Package + "." + r.Name, Pass: r.Pass(), Duration: r.Duration}
		if r.Location != nil {
			t.Location = fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)
		}
		if r.Error != nil {
			t.Error = r.Error.Error()
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b TestResult) int { return strings.Compare(a.Name, b.Name) })
	return out, ctx.Err()
}

func (s *source) copies() map[string]*ast.Module {
	mods := make(map[string]*ast.Module, len(s.modules))
	for file, m := range s.modules {
		mods[file] = m.Copy()
	}
	return mods
}

func failed(results []TestResult) error {
	for _, r := range results {
		if !r.Pass {
			return fmt.Errorf("%w: %s at %s %s", ErrTestsFail, r.Name, r.Location, r.Error)
		}
	}
	return nil
}
