package policy

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// snapshot is one policy with one registry, ready to decide. Immutable but for its cache.
type snapshot struct {
	revision    string
	registry    *registry
	reads       reads
	timeout     time.Duration
	store       storage.Store
	txn         storage.Transaction
	verdicts    opa.PreparedEvalQuery
	obligations opa.PreparedEvalQuery
	callers     map[string]*ast.Term // by id
	targets     map[string]*ast.Term
	cache       cache
	number      *atomic.Uint64 // of decisions, over all snapshots of the engine
}

// build makes and checks a snapshot; see the package's second invariant.
func build(ctx context.Context, src *source, timeout time.Duration, number *atomic.Uint64) (*snapshot, error) {
	c, err := src.compile(false)
	if err != nil {
		return nil, err
	}
	s := &snapshot{revision: src.revision, registry: src.registry, timeout: timeout, store: src.store(), number: number,
		callers: map[string]*ast.Term{}, targets: map[string]*ast.Term{}}
	s.cache.init()
	if s.reads, err = analyse(c); err != nil {
		return nil, err
	}
	for id, sub := range src.registry.subjects {
		for to, v := range map[*map[string]*ast.Term]any{&s.callers: sub.input(), &s.targets: sub.target()} {
			value, err := ast.InterfaceToValue(v)
			if err != nil {
				return nil, fmt.Errorf("%w: %q: %w", ErrRegistry, id, err)
			}
			(*to)[id] = ast.NewTerm(value)
		}
	}
	if s.txn, err = s.store.NewTransaction(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	for query, to := range map[string]*opa.PreparedEvalQuery{verdictsRef.String(): &s.verdicts, obligationsRef.String(): &s.obligations} {
		*to, err = opa.New(opa.Query(query), opa.Compiler(c), opa.Store(s.store), opa.Transaction(s.txn),
			opa.StrictBuiltinErrors(true), opa.Capabilities(capabilities())).PrepareForEval(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
		}
	}
	results, err := src.test(ctx)
	if err != nil {
		return nil, err
	}
	if err := failed(results); err != nil {
		return nil, err
	}
	return s, s.probe(ctx)
}

// probe: an unknown caller, and one that the registry calls disabled, is allowed nothing anywhere.
func (s *snapshot) probe(ctx context.Context) error {
	disabled := subject{Principal: Principal{ID: "probe", Kind: "agent", Disabled: true}}
	callers := map[string]any{
		"an unknown caller":   map[string]any{"id": "probe", "kind": ""},
		"a caller without id": map[string]any{},
		"a disabled caller":   disabled.input(),
	}
	for who, caller := range callers {
		v, err := ast.InterfaceToValue(caller)
		if err != nil {
			return err
		}
		for _, scope := range append(scopeNames(), "root", "principal", "admin", "unknown") {
			for _, a := range []Action{ActionList, ActionRead, ActionWrite, ActionCreate, ActionDelete, ActionMount, ActionAdmin} {
				for _, path := range []string{scope, scope + "/probe", scope + "/probe/probe.md"} {
					r := Request{Action: a, Path: path}
					d := s.evaluate(ctx, s.input(r, scope, ast.NewTerm(v), ast.NullTerm()))
					if d.Effect == Allow {
						return fmt.Errorf("%w: it allows %s to %s %s by %v", ErrPolicy, who, a, path, d.Rules)
					}
				}
			}
		}
	}
	return nil
}

// evaluate asks for the verdicts, and for the obligations of an allow. It cannot fail but by denying.
func (s *snapshot) evaluate(ctx context.Context, input ast.Value) Decision {
	cancel := topdown.NewCancel()
	timer := time.AfterFunc(s.timeout, cancel.Cancel)
	defer timer.Stop()
	stop := context.AfterFunc(ctx, cancel.Cancel)
	defer stop()
	options := []opa.EvalOption{opa.EvalParsedInput(input), opa.EvalTransaction(s.txn), opa.EvalMetrics(metrics.NoOp()),
		opa.EvalExternalCancel(cancel)}
	// The cancel above is the deadline: a context with one costs a goroutine a decision.
	eval := context.WithoutCancel(ctx)
	rs, err := s.verdicts.Eval(eval, options...)
	if err != nil {
		return failure(err)
	}
	d := fold(rs)
	if d.Effect != Allow {
		return d
	}
	if rs, err = s.obligations.Eval(eval, options...); err != nil {
		return failure(err)
	}
	if err := d.Obligations.set(rs); err != nil {
		return failure(err)
	}
	return d
}

func failure(err error) Decision {
	return Decision{Effect: Deny, Cause: "policy error: " + err.Error(), failed: true}
}
