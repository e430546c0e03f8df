// Package resources is the relationship-based access control surface of the
// HTTP interface: resource types, resources, relations and permission checks.
//
// Types and routing are generated from the OpenAPI document; a method of
// [Surface] is one operation: it states the request in the engine's terms, calls
// the engine, and states the answer on the wire. What the engine would not
// notice, or what would reach a database that cannot take it, is refused here;
// everything else that can be wrong with a request is the engine's to say, and
// [translate] to put into words.
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

// Engine is what the surface needs of [audit.Engine].
type Engine interface {
	CheckInto(ctx context.Context, tenant string, req *engine.CheckRequest, res *engine.CheckResponse) error
	ListResources(ctx context.Context, tenant string, req engine.ListResourcesRequest) (*engine.ResourceList, error)
	ListSubjects(ctx context.Context, tenant string, req engine.ListSubjectsRequest) (*engine.SubjectList, error)
	Expand(ctx context.Context, tenant string, req engine.ExpandRequest) (*engine.Expansion, error)
	Watch(ctx context.Context, tenant string, req engine.WatchRequest, emit func(engine.WatchEvent) error) error
	Write(ctx context.Context, tenant string, req engine.WriteRequest) (engine.WriteResponse, error)
	WriteRelation(ctx context.Context, tenant string, op engine.WriteOp, origin engine.Origin) (engine.WriteResponse, error)
	Relations(ctx context.Context, tenant string, resource tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	SubjectRelations(ctx context.Context, tenant string, f engine.SubjectFilter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	DeleteSubjectRelations(ctx context.Context, tenant string, d engine.SubjectDeletion) (engine.SubjectDeleted, error)

	Types(ctx context.Context, tenant string) ([]schema.Type, error)
	Type(ctx context.Context, tenant, name string) (schema.Type, error)
	PutType(ctx context.Context, tenant string, t schema.Type, origin engine.Origin) (stored schema.Type, created bool, token string, err error)
	DeleteType(ctx context.Context, tenant, name string, origin engine.Origin) (token string, err error)
}

// Store is what the surface needs of [resources.Store].
type Store interface {
	Put(ctx context.Context, tenant string, r resources.Resource, origin engine.Origin) (stored resources.Resource, created bool, token string, err error)
	Get(ctx context.Context, tenant, typ, externalID string) (resources.Resource, error)
	Patch(ctx context.Context, tenant, typ, externalID string, attributes []byte, origin engine.Origin) (resources.Resource, string, error)
	List(ctx context.Context, tenant, typ string, after *tuplestore.Record, limit int) ([]resources.Resource, *tuplestore.Record, error)
	Delete(ctx context.Context, tenant, typ, externalID string, origin engine.Origin) (token string, err error)
}

// Surface implements the operations. It is safe for concurrent use.
type Surface struct {
	Engine  Engine
	Store   Store
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Surface)(nil)

// Errors is how the surface speaks of errors.
var Errors = web.Surface{Translate: translate}

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (s *Surface) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(s, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}
