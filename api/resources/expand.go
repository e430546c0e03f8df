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
	maxExpanded  = 1000
)

// expandPosition is where the expansion of a node continues, and the revision that it reflects.
type expandPosition struct {
	Token string                `json:"t"`
	Place engine.ExpansionPlace `json:"p"`
}

// Expand returns the derivation of a set of subjects.
func (h *Handlers) Expand(ctx context.Context, request ExpandRequestObject) (ExpandResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
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
	if in.Limit != nil {
		if req.Limit = *in.Limit; req.Limit < 1 || req.Limit > maxExpanded {
			v.Add("limit", "out_of_range", fmt.Sprintf("must be between 1 and %d", maxExpanded))
		}
	} else if in.Cursor != "" {
		v.Add("limit", "required", "must be present with a cursor")
	}
	var err error
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return nil, err
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	bound := *in
	bound.Cursor, bound.Limit = "", nil
	list := filters("expand", bound)
	if in.Cursor != "" {
		var at expandPosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, in.Cursor, &at); err != nil {
			return nil, err
		}
		req.From, req.Consistency = &at.Place, req.Consistency.Following(at.Token)
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
	body := ExpandAnswer{Meta: tokenMeta(info, tree.Token)}
	body.Data, err = wireTree(tree.Root, func(next *engine.ExpansionPlace) (string, error) {
		return h.Cursors.Next(info.Tenant.ID, list, expandPosition{tree.Token, *next})
	})
	if err != nil {
		return nil, err
	}
	return Expand200JSONResponse{Body: body}, nil
}

// wireTree represents a node; cursor encodes where one continues.
func wireTree(n *engine.ExpansionNode, cursor func(*engine.ExpansionPlace) (string, error)) (ExpandNode, error) {
	out := ExpandNode{
		Kind: string(n.Kind), Resource: engine.RefTo(n.Resource), Relation: n.Relation, Tupleset: n.Tupleset, Cut: string(n.Cut),
	}
	if n.All {
		out.Mode = string(schema.All)
	}
	out.Subjects, out.Links = wireFacts(n.Subjects), wireFacts(n.Links)
	var err error
	if n.Next != nil {
		if out.NextCursor, err = cursor(n.Next); err != nil {
			return out, err
		}
	}
	for _, c := range n.Children {
		child, err := wireTree(c, cursor)
		if err != nil {
			return out, err
		}
		out.Children = append(out.Children, child)
	}
	return out, nil
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
