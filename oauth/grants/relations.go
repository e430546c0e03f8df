package grants

import (
	"context"
	"fmt"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// Relations is the part of [engine.Engine] that decides about token exchange.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
}

// question asks whether a subject has some relations; all are asked at one revision.
type question struct {
	subject tuplestore.Subject
	queries []engine.Query
}

// ask answers questions at one revision, each with one answer a query. A query without an
// answer is denied. until is when the first of the relations that prove the answers expires;
// zero if none does.
func (s *Service) ask(ctx context.Context, tenantID string, questions []question) (answers [][]bool, until time.Time, err error) {
	var at engine.Consistency
	for _, q := range questions {
		var allowed []bool
		if len(q.queries) > 0 {
			res, err := s.relations.Check(ctx, tenantID, engine.CheckRequest{Subject: q.subject, Queries: q.queries, Consistency: at, Reasons: true})
			if err != nil {
				return nil, until, fmt.Errorf("ask about token exchange: %w", err)
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
