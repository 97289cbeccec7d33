package policy

import (
	"context"
	"sync/atomic"
)

// CheckReport says what a policy directory and a registry would load as.
type CheckReport struct {
	Revision   string       `json:"revision"`
	Principals int          `json:"principals"`
	Rules      []RuleNote   `json:"rules"` // those with a constant verdict
	Tests      []TestResult `json:"tests"`
}

// Check does everything that a load does, and serves nothing. Its errors name file and line.
func Check(ctx context.Context, dir, registryFile string) (CheckReport, error) {
	src, err := read(dir, registryFile)
	if err != nil {
		return CheckReport{}, err
	}
	report := CheckReport{Revision: src.revision, Principals: len(src.registry.ids), Rules: []RuleNote{}, Tests: []TestResult{}}
	notes := src.notes()
	for _, verdict := range sortedKeys(notes) {
		report.Rules = append(report.Rules, notes[verdict])
	}
	s, err := assemble(ctx, src)
	if err != nil {
		return report, err
	}
	s.timeout, s.number = defaultTimeout, &atomic.Uint64{}
	if report.Tests, err = src.test(ctx); err != nil {
		return report, err
	}
	if err := failed(report.Tests); err != nil {
		return report, err
	}
	return report, s.probe(ctx)
}

// Test runs a policy's own tests. ErrTestsFail names the first that fails; the results are there all the same.
func Test(ctx context.Context, dir, registryFile string) ([]TestResult, error) {
	src, err := read(dir, registryFile)
	if err != nil {
		return nil, err
	}
	results, err := src.test(ctx)
	if err != nil {
		return results, err
	}
	return results, failed(results)
}
