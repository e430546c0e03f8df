package resources

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine/public"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
)

// Document is the public representation of the resource.
func (r Resource) Document() public.Resource {
	return public.Resource{
		Type: r.Type, ExternalID: r.ExternalID, Attributes: r.Attributes,
		CreatedAt: document.Timestamp(r.CreatedAt), UpdatedAt: document.Timestamp(r.UpdatedAt),
	}
}

// resourceEvent is what events say about a resource. Its times are those of its events.
type resourceEvent struct {
	Resource         resourceData `json:"resource"`
	RelationsDeleted int          `json:"relations_deleted,omitzero"`
}

type resourceData struct {
	Attributes jsontext.Value `json:"attributes,omitempty"`
	public.ResourceRef
}

func resourceCreated(ctx context.Context, o tuplestore.Object, attributes []byte) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceCreated, resourceEvent{Resource: resourceData{attributes, public.RefOf(o)}})
}

func resourceUpdated(ctx context.Context, o tuplestore.Object, attributes []byte) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceUpdated, resourceEvent{Resource: resourceData{attributes, public.RefOf(o)}})
}

func resourceDeleted(ctx context.Context, o tuplestore.Object, relations int) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceDeleted, resourceEvent{resourceData{nil, public.RefOf(o)}, relations})
}
