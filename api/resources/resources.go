// Package resources has the operations of relationship-based access control: resource types,
// resources, relations and checks.
//
// Types and routing are generated from the OpenAPI document. Each method of [Handlers] is
// one operation: it decodes the request, calls the engine and encodes the response. It
// validates only what the engine does not, such as text that a database cannot store; all
// other errors come from the engine, and [translate] maps them to responses.
package resources

import (
	"context"
	"net/http"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/engine/resources"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Engine is the part of [audit.Engine] that the operations use.
type Engine interface {
	CheckInto(ctx context.Context, tenant string, req *engine.CheckRequest, res *engine.CheckResponse) error
	ListAllowed(ctx context.Context, tenant string, req engine.ListAllowedRequest) (*engine.AllowedList, error)
	ListActions(ctx context.Context, tenant string, req engine.ListActionsRequest) (*engine.ActionList, error)
	ListProofs(ctx context.Context, tenant string, req engine.ListProofsRequest) (*engine.ProofList, error)
	ListSubjects(ctx context.Context, tenant string, req engine.ListSubjectsRequest) (*engine.SubjectList, error)
	Expand(ctx context.Context, tenant string, req engine.ExpandRequest) (*engine.Expansion, error)
	CheckHistory(ctx context.Context, tenant string, req engine.HistoryRequest) (*engine.DecisionHistory, error)
	Watch(ctx context.Context, tenant string, req engine.WatchRequest, emit func(engine.WatchEvent) error) error
	Write(ctx context.Context, tenant string, req engine.WriteRequest) (engine.WriteResponse, error)
	WriteRelation(ctx context.Context, tenant string, op engine.WriteOp, origin engine.Origin) (engine.WriteResponse, error)
	Import(ctx context.Context, tenant string, req engine.WriteRequest, firstLine, lastLine int64) (engine.WriteResponse, error)
	Relations(ctx context.Context, tenant string, resource tuplestore.Object, relation string, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error)
	FindRelations(ctx context.Context, tenant string, f engine.RelationFilter, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error)
	DeleteRelations(ctx context.Context, tenant string, d engine.RelationDeletion) (engine.RelationsDeleted, error)

	Deprecating(tenant string) *schema.Compiled
	Types(ctx context.Context, tenant string) ([]schema.Type, error)
	Type(ctx context.Context, tenant, name string) (schema.Type, error)
	PutType(ctx context.Context, tenant string, t schema.Type, origin engine.Origin) (stored schema.Type, created bool, token string, err error)
	DeleteType(ctx context.Context, tenant, name string, origin engine.Origin) (token string, err error)
	Heavy(ctx context.Context, tenant string, do func() error) error
	PlanTypes(ctx context.Context, tenant string, req engine.PlanRequest) (*engine.TypesPlan, error)
	ApplyTypes(ctx context.Context, tenant string, change engine.TypesChange, origin engine.Origin) (engine.TypesApplied, error)
}

// Store is the part of [resources.Store] that the operations use.
type Store interface {
	Put(ctx context.Context, tenant string, r resources.Resource, origin engine.Origin) (stored resources.Resource, created bool, token string, err error)
	Get(ctx context.Context, tenant, typ, externalID string) (resources.Resource, error)
	Patch(ctx context.Context, tenant, typ, externalID string, attributes []byte, origin engine.Origin) (resources.Resource, string, error)
	List(ctx context.Context, tenant, typ string, after *tuplestore.Record, limit int) ([]resources.Resource, *tuplestore.Record, error)
	Delete(ctx context.Context, tenant, typ, externalID string, origin engine.Origin) (token string, err error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Engine     Engine
	Store      Store
	Assertions Assertions
	Cursors    *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}
