package engine

import (
	"context"

	"stonetown/engine/internal/denial"
	"stonetown/engine/internal/eval"
)

// explainDenials explains the decisions that deny, apart from the path that all checks take.
func (c *check) explainDenials(ctx context.Context) error {
	c.view.Budget = denial.Budget(ctx, c.limits)
	for i := range c.response.Decisions {
		d := &c.response.Decisions[i]
		if d.Allowed || d.Err != nil {
			continue
		}
		query := &c.req.Queries[i]
		q := eval.Question{Query: i}
		if d.Err = c.resolve(&q); d.Err != nil {
			continue
		}
		subject := c.req.Subject
		if query.Subject != nil {
			subject = *query.Subject
		}
		subject, err := checkedSubject(c.at.compiled, subject)
		if err != nil {
			return err
		}
		d.Denial, err = denial.Find(ctx, denial.Question{
			View: &c.view, Resource: query.Resource, Rule: q.Rule, Subject: subject, Contextual: c.contextual,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
