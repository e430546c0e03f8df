package engine

import (
	"context"
	"fmt"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/proof"
	"stonetown/engine/internal/work"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
)

// ListProofsRequest asks for all proofs that a subject may perform an action on a resource.
type ListProofsRequest struct {
	Subject  tuplestore.Subject
	Resource tuplestore.Object
	Action   string // mapped to a relation as for a check
	// Context and Contextual are as for a check.
	Context     map[string]any
	Contextual  []WriteOp
	Consistency Consistency
	// From continues the list of an earlier answer at the same revision; nil: from the start.
	From  ProofPosition
	Limit int // the maximum number of proofs, at least 1
}

// The proofs of a check.
type (
	Proof         = proof.Proof
	ProofPosition = proof.Position
)

// MaxProofSets is the number of sets that a listed proof may derive.
const MaxProofSets = proof.MaxSets

// ProofList is the answer to a [ListProofsRequest]: none if the check is denied. A list can
// be shorter than its limit although there are more proofs.
type ProofList struct {
	Proofs []Proof
	Next   ProofPosition // nil: there are no more
	// Truncated: a proof that derives more than [MaxProofSets] sets was left out.
	Truncated bool
	Token     string // names the revision that the list reflects
}

// ListProofs lists the proofs of a check that is allowed: its derivations, each with the steps
// of [Decision.Reasons]. Errors are those of [Engine.Check] and of its decisions. With a
// condition that cannot be decided, it lists the proofs that do not depend on it.
func (e *Engine) ListProofs(ctx context.Context, tenantID string, req ListProofsRequest) (answer *ProofList, err error) {
	ctx, span := tracing.Start(ctx, "engine.list_proofs")
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		answer, err = e.listProofsWithin(ctx, tenantID, &req, l)
		return err
	})
	span.End(err)
	return answer, err
}

func (e *Engine) listProofsWithin(ctx context.Context, tenantID string, req *ListProofsRequest, l work.Limits) (*ProofList, error) {
	v, err := e.readView(ctx, tenantID, req.Consistency, l)
	if err != nil {
		return nil, fmt.Errorf("list proofs: %w", err)
	}
	defer v.leave()
	page, err := v.listProofs(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list proofs: %w", err)
	}
	return &ProofList{Proofs: page.Proofs, Next: page.Next, Truncated: page.Truncated, Token: v.at.token}, nil
}

func (v *readView) listProofs(ctx context.Context, req *ListProofsRequest) (*proof.Page, error) {
	subject, err := checkedSubject(v.at.compiled, req.Subject)
	if err != nil {
		return nil, err
	}
	target := resolve(v.at.compiled, req.Resource.Type, req.Action)
	if target.err != nil {
		return nil, target.err
	}
	if err := v.addContextual(req.Contextual); err != nil {
		return nil, err
	}
	s := v.begin(ctx, subject, req.Context)
	q := eval.Question{Rule: target.rule}
	var ok bool
	if q.Object, ok = v.view.Resource(req.Resource); !ok {
		return nil, &ResourceNotFoundError{Resource: req.Resource}
	}
	v.eval.Ask(&q)
	questions := []eval.Question{q}
	if err := v.eval.Run(ctx, questions); err != nil {
		return nil, err
	}
	if !v.view.IsRegistered(q.Object) {
		return nil, &ResourceNotFoundError{Resource: req.Resource}
	}
	allowed, err := v.eval.Answer(questions[0])
	if err != nil || !allowed {
		return new(proof.Page), err
	}
	return proof.Find(ctx, &v.view, s, q.Object, q.Rule, req.From, req.Limit)
}
