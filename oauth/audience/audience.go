// Package audience decides for which resources tokens are issued (RFC 8707).
//
// A request names resources by the parameter resource, or audience. The audience of an
// application and the address of the tenant are its own resources, and need no permission. Every
// other resource is an object of the system type audience, which the tenant makes known by its
// callers: a token is issued if the application, and the user for whom it acts, are callers. The
// engine is asked when a user has agreed, and for each token, so a deleted relation ends the
// renewal of tokens, and a token expires no later than the relations that permitted it.
package audience

import (
	"context"
	"fmt"
	"time"

	"stonetown/engine"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Relations is the part of [engine.Engine] that decides about resources.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
}

// Checker decides about resources. It is safe for concurrent use.
type Checker struct{ relations Relations }

// NewChecker returns a checker that asks an engine.
func NewChecker(relations Relations) *Checker { return &Checker{relations} }

// Application returns the application as a subject of relations.
func Application(app client.Application) tuplestore.Subject {
	return tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID}
}

// Refused is the refusal of a resource.
var Refused = protocol.NewError(protocol.InvalidTarget, "a resource is unknown, or not one for which the application can get tokens")

// Check refuses resources unless every subject is a caller of each. Resources of the application
// itself are always permitted. until is the first expiry of the relations that permit them; zero
// if none expires. It fails with [Refused].
func (c *Checker) Check(ctx context.Context, tenant protocol.Tenant, app client.Application, requested []string, subjects ...tuplestore.Subject) (until time.Time, err error) {
	var at engine.Consistency
	var queries []engine.Query
	for _, resource := range client.Others(tenant, app, requested) {
		queries = append(queries, engine.Query{Resource: client.AudienceObject(resource), Action: schema.AudienceCaller})
	}
	if len(queries) == 0 {
		return until, nil
	}
	for _, subject := range subjects {
		res, err := c.relations.Check(ctx, tenant.ID, engine.CheckRequest{Subject: subject, Queries: queries, Consistency: at, Reasons: true})
		if err != nil {
			return until, fmt.Errorf("ask about resources: %w", err)
		}
		at = engine.Consistency{Mode: engine.Exactly, Token: res.Token}
		for _, d := range res.Decisions {
			if !d.Allowed || d.Err != nil {
				return until, Refused
			}
			if !d.Until.IsZero() && (until.IsZero() || d.Until.Before(until)) {
				until = d.Until
			}
		}
	}
	return until, nil
}
