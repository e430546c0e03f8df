package engine

import (
	"context"

	"stonetown/engine/internal/eval"
	"stonetown/tuplestore"
)

// isAboutSeveral reports whether queries have subjects of their own.
func (c *check) isAboutSeveral() bool {
	for i := range c.req.Queries {
		if c.req.Queries[i].Subject != nil {
			return true
		}
	}
	return false
}

// subjectQueries are the queries of a request about one subject.
type subjectQueries struct {
	subject tuplestore.Subject
	queries []int
}

// answerAboutSeveral fills in the decisions of a request whose queries have subjects of
// their own. The queries of each subject share their work, and all share the view. On a
// tenant that is not resident all subjects are evaluated together, so that there is one read
// per level for the whole batch.
func (c *check) answerAboutSeveral(ctx context.Context) error {
	groups, err := c.bySubject()
	if err != nil {
		return err
	}
	if err := c.addContextual(c.req.Contextual); err != nil {
		return err
	}
	c.start(ctx, c.req.Context)
	c.findAll()
	if c.view.Reader == nil {
		for _, g := range groups {
			questions, err := c.askAbout(g, &c.eval)
			if err != nil {
				return err
			}
			if err := c.eval.Run(ctx, questions); err != nil {
				return err
			}
			c.decide(&c.eval, questions)
		}
		return nil
	}
	evaluations, questions := make([]*eval.Evaluation, len(groups)), make([][]eval.Question, len(groups))
	for i, g := range groups {
		evaluations[i] = new(eval.Evaluation)
		if questions[i], err = c.askAbout(g, evaluations[i]); err != nil {
			return err
		}
	}
	if err := eval.RunTogether(ctx, evaluations, questions); err != nil {
		return err
	}
	for i, e := range evaluations {
		c.decide(e, questions[i])
	}
	return nil
}

// askAbout asks the queries about one subject, and returns those that are not decided.
func (c *check) askAbout(g *subjectQueries, e *eval.Evaluation) ([]eval.Question, error) {
	s := c.about(g.subject)
	c.reach.Begin(&c.view, s)
	e.Begin(&c.view, s)
	e.Explain = c.req.Reasons
	var questions []eval.Question
	tryReachability := c.mayReach(s)
	for _, i := range g.queries {
		q := eval.Question{Query: i}
		open, err := c.ask(&q, e, tryReachability)
		if err != nil {
			return nil, err
		}
		if open {
			questions = append(questions, q)
		}
	}
	return questions, nil
}

// bySubject groups the queries by subject. A query whose own subject is not valid gets an
// error. The subject of the request must be valid if it is set, or needed.
func (c *check) bySubject() ([]*subjectQueries, error) {
	common := c.req.Subject
	needed := common != tuplestore.Subject{}
	for i := range c.req.Queries {
		needed = needed || c.req.Queries[i].Subject == nil
	}
	var err error
	if needed {
		if common, err = checkedSubject(c.at.compiled, common); err != nil {
			return nil, err
		}
	}
	var groups []*subjectQueries
	found := map[tuplestore.Subject]*subjectQueries{}
	for i := range c.req.Queries {
		subject := common
		if own := c.req.Queries[i].Subject; own != nil {
			if subject, err = checkedSubject(c.at.compiled, *own); err != nil {
				c.response.Decisions[i].Err = err
				continue
			}
		}
		g := found[subject]
		if g == nil {
			g = &subjectQueries{subject: subject}
			found[subject] = g
			groups = append(groups, g)
		}
		g.queries = append(g.queries, i)
	}
	return groups, nil
}
