package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// TestHistoriesOfDecisions compares the changes of random decisions with an evaluation at every
// revision and every expiry.
func TestHistoriesOfDecisions(t *testing.T) {
	residentAndCold(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			causes := map[engine.ChangeCause]int{}
			lacks := func() bool {
				return causes[engine.CausedByWrite] == 0 || causes[engine.CausedByExpiry] == 0 || causes[engine.CausedByTypes] == 0
			}
			for round := range untilShown(max(3, *rounds/13), lacks) {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				w.soon = true
				for range 30 {
					if r.IntN(6) == 0 {
						w.changeTypes(ctx, t)
					} else {
						w.write(ctx, t)
					}
				}
				commits, err := s.Changes(ctx, w.tenant, 0, 1000)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond) // until relations have expired
				end := time.Now().Truncate(time.Millisecond)
				u := w.universe
				var expired []tuplestore.Tuple
				for _, c := range commits {
					for _, change := range c.Changes {
						if at := time.UnixMicro(change.Qualifier.ExpiresAt); at.After(c.At) && at.Before(end) {
							expired = append(expired, change.Tuple)
						}
					}
				}
				for range 20 {
					n, subject := u.node(), u.subject()
					if len(expired) > 0 && r.IntN(2) == 0 {
						tuple := pick(r, expired)
						n, subject = tuple.Node(), tuple.Subject
					}
					req := engine.HistoryRequest{
						Subject: subject, Query: engine.Query{Resource: n.Object, Action: n.Relation}, Context: u.values(),
						Consistency: engine.Consistency{Mode: engine.AsOf, Instant: end}, Limit: 1 + r.IntN(5),
					}
					want := w.replayed(ctx, t, req, commits)
					var got []engine.CheckChange
					for {
						h, err := e.CheckHistory(ctx, w.tenant, req)
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, h.Changes...)
						if h.Next == nil || h.Collected {
							break
						}
						req.After = h.Next
					}
					for _, c := range got {
						causes[c.Cause]++
						if c.Cause == engine.CausedByWrite && len(c.Changes) == 0 || c.Cause != engine.CausedByExpiry && c.Actor != by.Actor {
							t.Errorf("a change without its write: %+v", c)
						}
					}
					short := func(c engine.CheckChange) string {
						return fmt.Sprintf("%v %v %T %s %s", c.At.UTC(), c.Allowed, c.Err, c.Cause, c.Token)
					}
					var a, b []string
					for _, c := range got {
						a = append(a, short(c))
					}
					for _, c := range want {
						b = append(b, short(c))
					}
					if !slices.Equal(a, b) {
						t.Fatalf("history of %+v:\n%q\nwant\n%q", req, a, b)
					}
				}
			}
			t.Logf("%v", causes)
			if lacks() {
				t.Error("this shows too little")
			}
		})
	})
}

// replayed returns the changes of a decision by an evaluation at every revision and every expiry.
func (w *writer) replayed(ctx context.Context, t *testing.T, req engine.HistoryRequest, commits []tuplestore.Commit) []engine.CheckChange {
	t.Helper()
	type boundary struct {
		at    time.Time
		rev   tuplestore.Revision // after it
		cause engine.ChangeCause
	}
	end := req.Consistency.Instant.Add(time.Millisecond - time.Microsecond)
	var all []boundary
	expiries := map[int64]bool{}
	for _, c := range commits {
		cause := engine.CausedByWrite
		if c.Schema != nil {
			cause = engine.CausedByTypes
		}
		all = append(all, boundary{c.At, c.Revision, cause})
		for _, change := range c.Changes {
			if at := change.Qualifier.ExpiresAt; at != 0 && at <= end.UnixMicro() {
				expiries[at] = true
			}
		}
	}
	for at := range expiries {
		instant := time.UnixMicro(at).UTC()
		var rev tuplestore.Revision
		for _, c := range commits {
			if c.At.Before(instant) {
				rev = c.Revision
			}
		}
		all = append(all, boundary{instant, rev, engine.CausedByExpiry})
	}
	slices.SortFunc(all, func(a, b boundary) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		if (a.cause == engine.CausedByExpiry) != (b.cause == engine.CausedByExpiry) {
			if a.cause == engine.CausedByExpiry {
				return -1
			}
			return 1
		}
		return int(a.rev - b.rev)
	})
	var changes []engine.CheckChange
	before := w.decisionAt(ctx, t, req, 0, time.Time{})
	for _, b := range all {
		after := w.decisionAt(ctx, t, req, b.rev, b.at)
		if before.Allowed != after.Allowed || fmt.Sprintf("%T", before.Err) != fmt.Sprintf("%T", after.Err) {
			changes = append(changes, engine.CheckChange{
				Decision: after, At: b.at, Cause: b.cause, Token: withRevision(w.newest.Load().(string), b.rev),
			})
		}
		before = after
	}
	slices.Reverse(changes)
	return changes
}

// decisionAt evaluates a check at a revision, by which tuples have expired at an instant.
func (w *writer) decisionAt(ctx context.Context, t *testing.T, req engine.HistoryRequest, rev tuplestore.Revision, at time.Time) engine.Decision {
	t.Helper()
	assume := engine.Assumption{Instant: at}
	res, err := w.engine.Check(ctx, w.tenant, engine.CheckRequest{
		Subject: req.Subject, Queries: []engine.Query{req.Query}, Context: req.Context,
		Consistency: engine.Consistency{Mode: engine.Exactly, Token: withRevision(w.newest.Load().(string), rev), Assume: &assume},
	})
	if err != nil {
		if _, invalid := err.(interface{ Unwrap() error }); !invalid {
			t.Fatal(err)
		}
		return engine.Decision{Err: &engine.InvalidSubjectError{}}
	}
	return res.Decisions[0]
}
