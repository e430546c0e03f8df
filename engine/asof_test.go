package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
)

func TestQuestionsAboutThePast(t *testing.T) {
	w := newFixture(t, engine.Config{})
	before := time.Now().Add(-time.Hour)
	w.define("doc\n  viewer [user]")
	first := w.write("doc:1#viewer@user:ann")
	if err := w.remove("doc:1#viewer@user:ann"); err != nil {
		t.Fatal(err)
	}
	req := request("user:ann", "view", "doc:1")
	at := func(c engine.Consistency) (*engine.CheckResponse, error) {
		c.Mode = engine.AsOf
		req.Consistency = c
		return w.engine.Check(t.Context(), tenant, req)
	}
	if res, err := at(engine.Consistency{Token: first}); err != nil || !res.Decisions[0].Allowed || res.Token != first {
		t.Errorf("at its token: %+v, %v", res, err)
	}
	// Without relations, and the types too.
	var unknown *engine.UnknownTypeError
	if res, err := at(engine.Consistency{Instant: before}); err != nil || !errors.As(res.Decisions[0].Err, &unknown) {
		t.Errorf("before the first revision: %+v, %v", res, err)
	}
	now := time.Now()
	if res, err := at(engine.Consistency{Instant: now}); err != nil || res.Decisions[0].Allowed {
		t.Errorf("now: %+v, %v", res, err)
	}
	// A token that was ahead of an instant goes on at its revision.
	if res, err := at(engine.Consistency{Token: first, Instant: now}); err != nil || !res.Decisions[0].Allowed || res.Token != first {
		t.Errorf("the next page: %+v, %v", res, err)
	}
	for name, c := range map[string]struct {
		engine.Consistency
		want error
	}{
		"the future":   {engine.Consistency{Instant: now.Add(time.Minute)}, engine.ErrInstantInFuture},
		"garbage":      {engine.Consistency{Token: "%%%"}, engine.ErrTokenInvalid},
		"from ahead":   {engine.Consistency{Token: tokenOf("v1|tnt_a|%s|999", first, t)}, engine.ErrTokenUnknown},
		"other tenant": {engine.Consistency{Token: tokenOf("v1|tnt_b|%s|1", first, t)}, engine.ErrTokenInvalid},
		"other epoch":  {engine.Consistency{Token: tokenOf("v1|tnt_a|x%s|999", first, t)}, engine.ErrTokenExpired},
	} {
		_, err := at(c.Consistency)
		var past *engine.PastError
		if !errors.Is(err, c.want) || !errors.As(err, &past) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := at(engine.Consistency{Token: tokenOf("v1|tnt_a|x%s|1", first, t)}); err == nil || !strings.Contains(err.Error(), "before the retained history") {
		t.Errorf("message %v", err)
	}
	// No table has a tenant that was never written.
	if _, err := w.engine.Check(t.Context(), "tnt_none", req); err == nil {
		t.Error("the token of one tenant is valid for another")
	}
	req.Consistency = engine.Consistency{Mode: engine.AsOf, Instant: now}
	if res, err := w.engine.Check(t.Context(), "tnt_none", req); err != nil || !errors.As(res.Decisions[0].Err, &unknown) {
		t.Errorf("a tenant never written: %+v, %v", res, err)
	}
}
