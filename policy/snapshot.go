package policy

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// snapshot is one policy with one registry, ready to decide. Immutable but for its cache.
type snapshot struct {
	revision string
	registry *registry
	notes    map[string]RuleNote // by verdict
	reads    reads
	duties   duties
	timeout  time.Duration // of one decision

	compiler      *ast.Compiler
	queryCompiler ast.QueryCompiler
	query         ast.Body
	store         storage.Store
	txn           storage.Transaction  // for reading, as long as the snapshot lives
	principals    map[string]*ast.Term // by id

	cache  *cache
	number *atomic.Uint64 // of decisions, over all snapshots of the engine
}

// build makes and checks a snapshot; see the package's second invariant.
func build(ctx context.Context, src *source, timeout time.Duration, number *atomic.Uint64) (*snapshot, error) {
	s, err := assemble(ctx, src)
	if err != nil {
		return nil, err
	}
	s.timeout, s.number = timeout, number
	results, err := src.test(ctx)
	if err != nil {
		return nil, err
	}
	if err := failed(results); err != nil {
		return nil, err
	}
	return s, s.probe(ctx)
}

// assemble compiles, and checks all that can be seen without asking the policy.
func assemble(ctx context.Context, src *source) (*snapshot, error) {
	c, err := src.compile(false)
	if err != nil {
		return nil, err
	}
	s := &snapshot{revision: src.revision, registry: src.registry, notes: src.notes(), compiler: c, principals: src.registry.terms(), cache: newCache()}
	s.store = store(s.principals)
	if s.reads, s.duties, err = analyse(c); err != nil {
		return nil, err
	}
	if s.txn, err = s.store.NewTransaction(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	s.queryCompiler = c.QueryCompiler()
	if s.query, err = s.queryCompiler.Compile(query(s.duties)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return s, nil
}
