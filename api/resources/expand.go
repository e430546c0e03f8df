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
	info, in := web.InfoOf(ctx), request.Body
	var v validation
	req := engine.ExpandRequest{
		Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action, Depth: defaultDepth,
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken),
	}
	v.Text("", "action", in.Action)
	if in.Depth != nil {
		if req.Depth = *in.Depth; req.Depth < 0 || req.Depth > maxDepth {
			v.Add("depth", "out_of_range", fmt.Sprintf("must be between 0 and %d", maxDepth))
		}
	}
	var err error
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return nil, err
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	tree, err := h.Engine.Expand(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	if u := h.uses(info); u.any() {
		u.action(req.Resource.Type, req.Action)
		u.relations(req.Contextual)
		u.warn(info)
	}
	return Expand200JSONResponse{Body: ExpandAnswer{Data: wireTree(tree.Root), Meta: tokenMeta(info, tree.Token)}}, nil
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
