package engine

import (
	"context"
	"errors"

	"stonetown/internal/text"
	"stonetown/tuplestore"
)

const (
	// allowedTogether is how many questions of [Engine.AllowedAt] are one check.
	allowedTogether = 500
	// allowedApart divides the number of questions of a check that exceeds the budget.
	allowedApart = 16
)

// AllowedAt reports which of some resources a subject may perform an action on, at a revision of
// the tenant. It may answer only the first ones, at least one, so that the work of a call is
// bounded by a few budgets. A question that has no answer, because the type has no such action,
// the subject is not valid, a condition lacks a value, or the work exceeds the budget, is
// answered with no. If the state at the revision is no longer retained or cannot be read, the
// answers are those of the newest one. An error means that the same questions can be asked again.
func (e *Engine) AllowedAt(ctx context.Context, tenantID string, revision int64, subject tuplestore.Subject, action string, resources []tuplestore.Object) ([]bool, error) {
	beforeAll := revision <= 0 // before the first relation
	if beforeAll || !areText(subject.Type, subject.ID, subject.Relation, action) {
		return make([]bool, len(resources)), nil
	}
	at, err := e.exactly(ctx, tenantID, tuplestore.Revision(revision))
	if err != nil {
		return nil, err
	}
	resources = resources[:min(len(resources), allowedTogether)]
	answers, err := e.allowed(ctx, tenantID, at, subject, action, resources)
	if errors.Is(err, ErrTokenUnknown) {
		// The notice of a commit can arrive before its writer has published the new head, which
		// the store then finds by reading.
		head, _, failed := e.store.Latest(ctx, tenantID)
		if failed != nil {
			return nil, failed
		}
		if head.Revision >= tuplestore.Revision(revision) {
			answers, err = e.allowed(ctx, tenantID, at, subject, action, resources)
		}
	}
	if errors.Is(err, ErrTokenExpired) || errors.Is(err, ErrTokenUnknown) || errors.Is(err, errStoredSchema) {
		answers, err = e.allowed(ctx, tenantID, Consistency{}, subject, action, resources)
	}
	return answers, err
}

// exactly returns the consistency of a revision in the present history of a tenant.
func (e *Engine) exactly(ctx context.Context, tenantID string, rev tuplestore.Revision) (Consistency, error) {
	t := e.tenant(tenantID)
	t.mu.RLock()
	known, epoch := t.position.known, t.position.epoch
	t.mu.RUnlock()
	if !known {
		if _, err := t.rlock(ctx, Consistency{}); err != nil {
			return Consistency{}, err
		}
		epoch = t.position.epoch
		t.mu.RUnlock()
	}
	return Consistency{Mode: Exactly, Token: encodeToken(tenantID, epoch, rev)}, nil
}

// allowed answers one check, or the first questions of one that exceeds the budget.
func (e *Engine) allowed(ctx context.Context, tenantID string, at Consistency, subject tuplestore.Subject, action string, resources []tuplestore.Object) ([]bool, error) {
	for {
		answers, err := e.allowedOf(ctx, tenantID, at, subject, action, resources)
		_, invalid := errors.AsType[*InvalidSubjectError](err)
		_, exceeds := errors.AsType[*BudgetError](err)
		switch {
		case invalid, exceeds && len(resources) == 1:
			return make([]bool, len(resources)), nil
		case !exceeds:
			return answers, err
		}
		resources = resources[:max(1, len(resources)/allowedApart)]
	}
}

// allowedOf makes one check. A decision with an error is a no.
func (e *Engine) allowedOf(ctx context.Context, tenantID string, at Consistency, subject tuplestore.Subject, action string, resources []tuplestore.Object) ([]bool, error) {
	req := CheckRequest{Subject: subject, Consistency: at}
	var asked []int
	for i, o := range resources {
		if areText(o.Type, o.ID) {
			asked = append(asked, i)
			req.Queries = append(req.Queries, Query{Resource: o, Action: action})
		}
	}
	res, err := e.Check(ctx, tenantID, req)
	if err != nil {
		return nil, err
	}
	answers := make([]bool, len(resources))
	for i, d := range res.Decisions {
		answers[asked[i]] = d.Allowed
	}
	return answers, nil
}

// areText reports whether names can be stored. PostgreSQL fails when it is asked for others.
func areText(names ...string) bool {
	for _, name := range names {
		if !text.IsStorable(name) {
			return false
		}
	}
	return true
}
