package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
)

// The kinds of lines in an export.
const (
	KindResourceType = "resource_type"
	KindResource     = "resource"
	KindRelation     = "relation"
	KindEnd          = "end"
)

// End is the last line of an export, by which a complete export is recognized.
type End struct {
	Kind          string `json:"kind"`
	ResourceTypes int    `json:"resource_types"`
	Resources     int    `json:"resources"`
	Relations     int    `json:"relations"`
}

// readsInFlight is the number of resources that are read concurrently.
const readsInFlight = 8

// Export writes the data of a tenant as lines of JSON: the objects of the API with their kind,
// types first, then resources, then relations, then an [End].
//
// The API has no snapshot of a tenant and lists relations by resource only. Changes during an
// export are therefore part of it or not, and it takes a request for each resource.
type Export struct {
	Client   *Client
	Progress func(lines int) // called with the number of further lines; may be nil
	// Omit, if not nil, reports whether a resource or, with a relation, its tuples of that relation are
	// left out, because the destination makes them itself.
	Omit func(resource Ref, relation string) bool

	w   io.Writer
	end End
}

// Write writes the export. After an error the export has no last line.
func (e *Export) Write(ctx context.Context, w io.Writer) error {
	e.w, e.end = w, End{Kind: KindEnd}
	// The oldest type is first, which is nearer to an order in which they can be created.
	var types []Stored[Type]
	for t, err := range e.Client.Types(ctx) {
		if err != nil {
			return fmt.Errorf("export resource types: %w", err)
		}
		types = append(types, t)
	}
	var names []string
	for i := len(types) - 1; i >= 0; i-- {
		if err := e.line(KindResourceType, types[i].JSON, &e.end.ResourceTypes); err != nil {
			return err
		}
		names = append(names, types[i].Value.Name)
	}
	names = append(names, BuiltinTypes...)
	for _, name := range names {
		if err := e.resources(ctx, name); err != nil {
			return fmt.Errorf("export resources of type %s: %w", name, err)
		}
	}
	for _, name := range names {
		if err := e.relations(ctx, name); err != nil {
			return fmt.Errorf("export relations of type %s: %w", name, err)
		}
	}
	return json.NewEncoder(w).Encode(e.end)
}

func (e *Export) resources(ctx context.Context, typ string) error {
	for r, err := range e.Client.Resources(ctx, typ) {
		if isNotFound(err) { // the type was deleted meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		if e.omits(r.Value.Ref, "") {
			continue
		}
		if err := e.line(KindResource, r.JSON, &e.end.Resources); err != nil {
			return err
		}
	}
	return nil
}

func (e *Export) omits(resource Ref, relation string) bool {
	return e.Omit != nil && e.Omit(resource, relation)
}

// relations lists the resources again instead of storing all of them.
func (e *Export) relations(ctx context.Context, typ string) error {
	for cursor := ""; ; {
		p, err := e.Client.ResourcesPage(ctx, typ, cursor)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		p.Items = slices.DeleteFunc(p.Items, func(r Stored[Resource]) bool { return e.omits(r.Value.Ref, "") })
		if err := e.relationsOf(ctx, p.Items); err != nil {
			return err
		}
		if cursor = p.Next; cursor == "" {
			return nil
		}
	}
}

// relationsOf reads the first pages of relations concurrently and the further pages one after
// another, so that memory is bounded and the order is stable.
func (e *Export) relationsOf(ctx context.Context, resources []Stored[Resource]) error {
	first := make([]Page[Tuple], len(resources))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readsInFlight)
	for i, r := range resources {
		group.Go(func() (err error) {
			first[i], err = e.page(groupCtx, r.Value.Ref, "")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, p := range first {
		for {
			for _, t := range p.Items {
				if e.omits(resources[i].Value.Ref, t.Value.Relation) {
					continue
				}
				if err := e.line(KindRelation, t.JSON, &e.end.Relations); err != nil {
					return err
				}
			}
			if p.Next == "" {
				break
			}
			var err error
			if p, err = e.page(ctx, resources[i].Value.Ref, p.Next); err != nil {
				return err
			}
		}
		first[i] = Page[Tuple]{}
	}
	return nil
}

// page is empty for a resource that was deleted meanwhile.
func (e *Export) page(ctx context.Context, r Ref, cursor string) (Page[Tuple], error) {
	p, err := e.Client.RelationsPage(ctx, r, "", cursor)
	if isNotFound(err) {
		return Page[Tuple]{}, nil
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", r, err)
	}
	return p, nil
}

func (e *Export) line(kind string, object json.RawMessage, count *int) error {
	var b bytes.Buffer
	b.WriteString(`{"kind":"` + kind + `",`)
	start := b.Len()
	if err := json.Compact(&b, object); err != nil {
		return err
	}
	text := b.Bytes()
	if text[start] != '{' || text[start+1] == '}' {
		return fmt.Errorf("the server sent a %s as %.100s", kind, object)
	}
	// The opening brace of the object is replaced by the one before the kind.
	text = append(text[:start], text[start+1:]...)
	if _, err := e.w.Write(append(text, '\n')); err != nil {
		return err
	}
	*count++
	if e.Progress != nil {
		e.Progress(1)
	}
	return nil
}

// isNotFound reports a missing type or resource. A missing tenant is an error.
func isNotFound(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Status == http.StatusNotFound && (refused.Code == "resource_type_not_found" || refused.Code == "resource_not_found")
}
