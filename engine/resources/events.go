package resources

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
)

// resourceEvent is the data of events of resources. It has no times, because the events
// have.
type resourceEvent struct {
	Resource         resourceData `json:"resource"`
	RelationsDeleted int          `json:"relations_deleted,omitzero"`
}

type resourceData struct {
	Attributes jsontext.Value `json:"attributes,omitempty"`
	engine.ResourceRef
}

func resourceCreated(ctx context.Context, o tuplestore.Object, attributes []byte) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceCreated, resourceEvent{Resource: resourceData{attributes, engine.RefTo(o)}})
}

func resourceUpdated(ctx context.Context, o tuplestore.Object, attributes []byte) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceUpdated, resourceEvent{Resource: resourceData{attributes, engine.RefTo(o)}})
}

func resourceDeleted(ctx context.Context, o tuplestore.Object, relations int) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ResourceDeleted, resourceEvent{resourceData{nil, engine.RefTo(o)}, relations})
}
