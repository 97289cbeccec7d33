package policy

import (
	"context"
	"sync/atomic"
)

// CheckReport says what a policy directory and a registry would load as.
type CheckReport struct {
	Revision   string       `json:"revision"`
	Principals int          `json:"principals"`
	Tests      []TestResult `json:"tests"`
}

// Check does everything that a load does, and serves nothing.
func Check(ctx context.Context, dir, registryFile string) (CheckReport, error) {
	src, err := read(dir, registryFile)
	if err != nil {
		return CheckReport{}, err
	}
	report := CheckReport{Revision: src.revision, Principals: len(src.registry.ids)}
	if report.Tests, err = src.test(ctx); err != nil {
		return report, err
	}
	_, err = build(ctx, src, defaultTimeout, &atomic.Uint64{})
	return report, err
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
