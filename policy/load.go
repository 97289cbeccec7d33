package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// source is a policy directory and a registry, read and parsed.
type source struct {
	modules  map[string]*ast.Module // by file name, tests included
	registry *registry
	revision string // hash of all bytes
}

const (
	testSuffix      = "_test.rego"
	maxPolicyFile   = 4 << 20  // bytes
	maxRegistryFile = 64 << 20 // bytes
)

// read parses every *.rego of dir and the registry. Names that begin with a dot are an editor's, and left out. A policy in
// a subdirectory would not be obeyed, so it is refused rather than overlooked.
func read(dir, registryFile string) (*source, error) {
	s := &source{modules: map[string]*ast.Module{}}
	sum := sha256.New()
	rules := false
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file == dir:
			return nil
		case strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(e.Name(), ".rego"):
			return nil
		case filepath.Dir(file) != filepath.Clean(dir):
			return fmt.Errorf("%w: %s: policies in subdirectories are not read; move it up, or rename it", ErrPolicy, file)
		}
		raw, err := readRegular(file, maxPolicyFile)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPolicy, err)
		}
		m, err := ast.ParseModuleWithOpts(file, string(raw), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPolicy, err)
		}
		s.modules[file] = m
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(raw), raw)
		rules = rules || !strings.HasSuffix(file, testSuffix)
		return nil
	})
	switch {
	case errors.Is(err, ErrPolicy):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoPolicy, err)
	case !rules:
		return nil, fmt.Errorf("%w: no .rego file in %s", ErrNoPolicy, dir)
	}
	var raw []byte
	if s.registry, raw, err = loadRegistry(registryFile); err != nil {
		return nil, err
	}
	_, _ = sum.Write(raw)
	s.revision = hex.EncodeToString(sum.Sum(nil))[:16]
	return s, nil
}

// readRegular reads a file, and never waits for one that is a pipe.
func readRegular(file string, limit int64) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", file)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s: %d bytes, more than %d", file, info.Size(), limit)
	}
	return os.ReadFile(file)
}

// compile compiles strictly; the tests only with the tests, so that no rule can lean on them.
func (s *source) compile(withTests bool) (*ast.Compiler, error) {
	mods := s.copies(withTests)
	if err := checkBuiltins(mods); err != nil {
		return nil, err
	}
	c := ast.NewCompiler().WithStrict(!withTests).WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1)
	if c.Compile(mods); c.Failed() {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, c.Errors)
	}
	return c, nil
}

// copies are modules for a compiler, which changes them.
func (s *source) copies(withTests bool) map[string]*ast.Module {
	mods := make(map[string]*ast.Module, len(s.modules))
	for file, m := range s.modules {
		if withTests || !strings.HasSuffix(file, testSuffix) {
			mods[file] = m.Copy()
		}
	}
	return mods
}

// store holds the registry as data.identities.
func store(principals map[string]*ast.Term) storage.Store {
	items := make([][2]*ast.Term, 0, len(principals))
	for id, p := range principals {
		items = append(items, ast.Item(ast.StringTerm(id), p))
	}
	return inmem.NewFromObjectWithOpts(map[string]any{"identities": ast.NewObject(items...)},
		inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
}
