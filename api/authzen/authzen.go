// Package authzen is the Authorization API 1.0 of OpenID AuthZEN over the same
// engine as package resources: evaluation of one or many requests, search for subjects,
// resources and actions, and metadata.
//
// An action is a relation or permission, as in a check. Unknown subjects, resources or
// actions and missing values do not fail a request: the decision is false, with an error in
// its context. Only malformed requests are refused.
package authzen

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/resources"
	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// Engine is the part of [engine.Engine] that the operations use.
type Engine interface {
	Check(ctx context.Context, tenant string, req engine.CheckRequest) (*engine.CheckResponse, error)
	ListResources(ctx context.Context, tenant string, req engine.ListResourcesRequest) (*engine.ResourceList, error)
	ListSubjects(ctx context.Context, tenant string, req engine.ListSubjectsRequest) (*engine.SubjectList, error)
	ListActions(ctx context.Context, tenant string, req engine.ListActionsRequest) (*engine.ActionList, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Engine  Engine
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: resources.Errors.Translate, EchoRequestID: true}

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerFromMux(NewStrictHandler(h, fail), router)
	router.HandleFunc("/.well-known/authzen-configuration", serveConfiguration).Methods(http.MethodGet)
}

// configuration is the metadata (AuthZEN §9).
type configuration struct {
	PolicyDecisionPoint string `json:"policy_decision_point"`
	Evaluation          string `json:"access_evaluation_endpoint"`
	Evaluations         string `json:"access_evaluations_endpoint"`
	SearchSubject       string `json:"search_subject_endpoint"`
	SearchResource      string `json:"search_resource_endpoint"`
	SearchAction        string `json:"search_action_endpoint"`
}

func serveConfiguration(w http.ResponseWriter, r *http.Request) {
	base := web.InfoOf(r.Context()).Tenant.BaseURL
	text, err := json.Marshal(configuration{
		PolicyDecisionPoint: base,
		Evaluation:          base + "/access/v1/evaluation",
		Evaluations:         base + "/access/v1/evaluations",
		SearchSubject:       base + "/access/v1/search/subject",
		SearchResource:      base + "/access/v1/search/resource",
		SearchAction:        base + "/access/v1/search/action",
	})
	if err != nil {
		panic("authzen: encode strings: " + err.Error())
	}
	web.Document{Body: text, MediaType: "application/json", CacheControl: "public, max-age=300"}.Serve(w, r)
}

// entities are the parts of a request in the engine's types.
type entities struct {
	subject  tuplestore.Subject
	action   string
	resource tuplestore.Object
	values   map[string]any
}

// parts are the required parts of a request.
type parts struct{ subjectID, action, resourceID bool }

// entitiesOf converts a request. The required parts must be present.
func entitiesOf(v *web.Validation, path string, in AuthZENEvaluation, must parts) entities {
	if in.Subject == nil {
		in.Subject = new(AuthZENSubject)
	}
	if in.Action == nil {
		in.Action = new(AuthZENAction)
	}
	if in.Resource == nil {
		in.Resource = new(AuthZENResource)
	}
	e := entities{
		subject:  tuplestore.Subject{Type: in.Subject.Type, ID: in.Subject.ID},
		action:   in.Action.Name,
		resource: tuplestore.Object{Type: in.Resource.Type, ID: in.Resource.ID},
		values:   v.Values(path+"context", in.Context, condition.MaxContext),
	}
	v.Text(path, "subject/type", e.subject.Type)
	v.Text(path, "resource/type", e.resource.Type)
	if must.subjectID {
		v.Text(path, "subject/id", e.subject.ID)
	}
	if must.action {
		v.Text(path, "action/name", e.action)
	}
	if must.resourceID {
		v.Text(path, "resource/id", e.resource.ID)
	}
	for entity, properties := range map[string]jsontext.Value{
		"subject": in.Subject.Properties, "action": in.Action.Properties, "resource": in.Resource.Properties,
	} {
		for name, value := range v.Values(path+entity+"/properties", properties, condition.MaxContext) {
			if e.values == nil {
				e.values = map[string]any{}
			}
			if _, given := e.values[entity+"_"+name]; !given { // the context takes precedence
				e.values[entity+"_"+name] = value
			}
		}
	}
	return e
}
