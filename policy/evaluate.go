package policy

import (
	"context"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// The variables of the query.
const (
	verdictsVar    = ast.Var("verdicts")
	obligationsVar = ast.Var("obligations")
)

// query asks for both documents in one evaluation, which shares what rules have in common. A policy without obligations
// is not asked for them; an object of obligations that is undefined makes the whole undefined, which is a denial.
//
//	verdicts = data.memory.authz.verdicts; obligations = data.memory.authz.obligations
//	verdicts = data.memory.authz.verdicts; obligations = {"reason": [v | v = data.memory.authz.obligations.reason], …}
func query(d duties) ast.Body {
	body := ast.NewBody(ast.Equality.Expr(ast.NewTerm(verdictsVar), ast.NewTerm(verdictsRef())))
	switch {
	case d.whole:
		body.Append(ast.Equality.Expr(ast.NewTerm(obligationsVar), ast.NewTerm(obligationsRef())))
	case len(d.keys) > 0:
		var items [][2]*ast.Term
		for _, key := range d.keys {
			v := ast.VarTerm("v")
			ref := obligationsRef().Append(ast.StringTerm(key))
			items = append(items, ast.Item(ast.StringTerm(key),
				ast.ArrayComprehensionTerm(v, ast.NewBody(ast.Equality.Expr(v, ast.NewTerm(ref))))))
		}
		body.Append(ast.Equality.Expr(ast.NewTerm(obligationsVar), ast.ObjectTerm(items...)))
	}
	return body
}

// evaluate asks the policy. Whatever goes wrong, a panic in the evaluator included, is a denial.
func (s *snapshot) evaluate(ctx context.Context, input ast.Value, timeout time.Duration) (a *answer) {
	defer func() {
		if p := recover(); p != nil {
			a = failure("the evaluator panicked: %v", p)
		}
	}()
	// The cancel is the deadline: a context with one costs a goroutine a decision.
	cancel := topdown.NewCancel()
	timer := time.AfterFunc(timeout, cancel.Cancel)
	defer timer.Stop()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, cancel.Cancel)()
	}
	var verdicts, obligations ast.Value
	err := topdown.NewQuery(s.query).WithQueryCompiler(s.queryCompiler).WithCompiler(s.compiler).WithStore(s.store).
		WithTransaction(s.txn).WithMetrics(metrics.NoOp()).WithCancel(cancel).WithStrictBuiltinErrors(true).
		WithInput(ast.NewTerm(input)).
		Iter(context.WithoutCancel(ctx), func(qr topdown.QueryResult) error {
			verdicts = value(qr[verdictsVar])
			obligations = value(qr[obligationsVar])
			return nil
		})
	switch {
	case err != nil && ctx.Err() != nil:
		return failure("the caller gave up: %v", ctx.Err())
	case topdown.IsCancel(err):
		return failure("no decision within %v", timeout)
	case err != nil:
		return failure("%v", err)
	case verdicts == nil:
		return failure("the decision, or its obligations, are undefined")
	}
	a = fold(verdicts)
	if a.effect == Allow && obligations != nil {
		if err := a.obligations.set(obligations, !s.duties.whole); err != nil {
			return failure("%v", err)
		}
	}
	return a
}

func value(t *ast.Term) ast.Value {
	if t == nil {
		return nil
	}
	return t.Value
}
