package resources

import (
	"context"
	"fmt"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

const (
	defaultDepth = 1
	maxDepth     = 50
)

// Expand returns the derivation of a set of subjects.
func (h *Handlers) Expand(ctx context.Context, request ExpandRequestObject) (ExpandResponseObject, error) {
	body, err := h.expansion(ctx, request.Body, premise{})
	return Expand200JSONResponse{Body: body}, err
}

func (h *Handlers) expansion(ctx context.Context, in *ExpandInput, p premise) (body ExpandAnswer, err error) {
	info := web.InfoOf(ctx)
	var v validation
	req := engine.ExpandRequest{
		Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action, Depth: defaultDepth,
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken, in.At),
	}
	v.Text("", "action", in.Action)
	if in.Depth != nil {
		if req.Depth = *in.Depth; req.Depth < 0 || req.Depth > maxDepth {
			v.Add("depth", "out_of_range", fmt.Sprintf("must be between 0 and %d", maxDepth))
		}
	}
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return body, err
	}
	if err := v.Err(); err != nil {
		return body, err
	}
	req.Consistency.Assume = p.assume
	tree, err := h.Engine.Expand(ctx, info.Tenant.ID, req)
	if err != nil {
		return body, err
	}
	return ExpandAnswer{Data: wireTree(tree.Root), Meta: tokenMeta(info, tree.Token)}, nil
}

func wireTree(n *engine.ExpansionNode) ExpandNode {
	out := ExpandNode{
		Kind: string(n.Kind), Resource: engine.RefTo(n.Resource), Relation: n.Relation, Tupleset: n.Tupleset, Cut: string(n.Cut),
	}
	if n.All {
		out.Mode = string(schema.All)
	}
	out.Subjects, out.Links = wireFacts(n.Subjects), wireFacts(n.Links)
	for _, c := range n.Children {
		out.Children = append(out.Children, wireTree(c))
	}
	return out
}

func wireFacts(facts []tuplestore.Fact) []ExpandSubject {
	var out []ExpandSubject
	for _, f := range facts {
		s := ExpandSubject{Subject: engine.SubjectDocumentOf(f.Subject)}
		s.ExpiresAt, s.Condition = engine.QualifierDocument(f.Qualifier)
		out = append(out, s)
	}
	return out
}
