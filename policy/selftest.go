package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
)

// TestResult is one rule of the policy's own tests.
type TestResult struct {
	Name     string        `json:"name"`
	Location string        `json:"location"`
	Pass     bool          `json:"pass"`
	Skip     bool          `json:"skip,omitempty"` // a todo_test_ rule: neither
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
	ch, err := tester.NewRunner().SetCompiler(c).SetStore(store(s.registry.terms())).SetTimeout(testTimeout).RaiseBuiltinErrors(true).
		SetDefaultRegoVersion(ast.RegoV1).SetModules(s.copies(true)).RunTests(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTestsFail, err)
	}
	var out []TestResult
	for r := range ch {
		t := TestResult{Name: r.Package + "." + r.Name, Pass: r.Pass(), Skip: r.Skip, Duration: r.Duration}
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

func failed(results []TestResult) error {
	for _, r := range results {
		if !r.Pass && !r.Skip {
			return fmt.Errorf("%w: %s at %s %s", ErrTestsFail, r.Name, r.Location, r.Error)
		}
	}
	return nil
}
