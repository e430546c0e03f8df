package grants

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

// Relations is the part of [engine.Engine] that decides about token exchange and workloads.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
}

// readPolicy asks the engine about an exchange: whether the application may exchange tokens,
// and for the audiences; whether the subject may call them; and whether the actor may act as
// the subject.
func (g *tokenExchange) readPolicy(ctx context.Context, tenant protocol.Tenant) error {
	application := tuplestore.Object{Type: schema.ApplicationType, ID: g.app.ClientID}
	ofApplication := question{
		subject: tuplestore.Subject{Type: schema.ApplicationType, ID: g.app.ClientID},
		queries: []engine.Query{{Resource: application, Action: schema.Exchange}},
	}
	ofSubject := question{subject: g.subject.subject}
	for _, audience := range g.audience {
		ofApplication.queries = append(ofApplication.queries, engine.Query{Resource: client.AudienceObject(audience), Action: schema.AudienceExchanger})
		ofSubject.queries = append(ofSubject.queries, engine.Query{Resource: client.AudienceObject(audience), Action: schema.AudienceCaller})
	}
	questions := []question{ofApplication, ofSubject}
	if g.actor != nil {
		questions[0].queries = append(questions[0].queries, engine.Query{Resource: application, Action: client.ActAsRelations[g.subject.subject.Type]})
		questions = append(questions, question{
			subject: g.actor.subject,
			queries: []engine.Query{{Resource: tuplestore.Object{Type: g.subject.subject.Type, ID: g.subject.subject.ID}, Action: schema.ActAs}},
		})
	}
	found, until, err := g.ask(ctx, tenant.ID, questions)
	if err != nil {
		return err
	}
	g.until = until
	g.allowed = answers{exchange: found[0][0], targets: found[0][1 : 1+len(g.audience)], callers: found[1]}
	if g.actor != nil {
		g.allowed.delegates, g.allowed.acts = found[0][1+len(g.audience)], found[2][0]
	}
	return nil
}

// question asks whether a subject has some relations.
type question struct {
	subject tuplestore.Subject
	queries []engine.Query
}

// ask answers questions at one revision, each with one answer for each query. A query that
// fails is denied. until is the first expiry of the relations that prove the answers; zero if
// none expires.
func (s sources) ask(ctx context.Context, tenantID string, questions []question) (answers [][]bool, until time.Time, err error) {
	var at engine.Consistency
	for _, q := range questions {
		var allowed []bool
		if len(q.queries) > 0 {
			res, err := s.relations.Check(ctx, tenantID, engine.CheckRequest{Subject: q.subject, Queries: q.queries, Consistency: at, Reasons: true})
			if err != nil {
				return nil, until, fmt.Errorf("ask about relations: %w", err)
			}
			at = engine.Consistency{Mode: engine.Exactly, Token: res.Token}
			for _, d := range res.Decisions {
				allowed = append(allowed, d.Allowed && d.Err == nil)
				if !d.Until.IsZero() && (until.IsZero() || d.Until.Before(until)) {
					until = d.Until
				}
			}
		}
		answers = append(answers, allowed)
	}
	return answers, until, nil
}
