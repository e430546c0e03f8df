package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// watchViewers collects the events of a watch for the users who may view documents, up to the
// heartbeat or event with the token.
func watchViewers(w *fixture, after, last string) (events []engine.WatchEvent) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	done := errors.New("seen enough")
	err := w.engine.Watch(ctx, tenant, engine.WatchRequest{
		After: after, Heartbeat: 10 * time.Millisecond,
		Decisions: &engine.WatchedDecisions{Type: "document", Action: "view", SubjectType: "user"},
	}, func(ev engine.WatchEvent) error {
		if !ev.Heartbeat {
			events = append(events, ev)
		}
		if ev.Token == last {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		w.Fatal(err)
	}
	return events
}

// A commit with too many changes names what they are about, if that is known. The commits beside
// it are reported as always.
func TestWatchedDecisionsScope(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive)
	relations := func(n int, format string) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return list
	}
	ann, most := tuplestore.Subject{Type: "user", ID: "ann"}, engine.MaxDecisionChanges
	w.write(relations(most, "document:%d#parent@folder:full")...)
	w.write(relations(most+1, "document:more%d#parent@folder:over")...)
	w.write(relations(most+1, "folder:team#viewer@user:%d")...)
	w.write("group:g#member@user:1", "group:g#member@user:2", "group:g#member@user:3")
	start := w.write("document:1#parent@folder:beside")
	full := w.write("folder:full#viewer@user:ann")
	over := w.write("folder:over#viewer@user:ann")
	team := w.write("document:new#parent@folder:team")
	group := w.write("folder:over#viewer@group:g")
	w.write("folder:unrelated#viewer@user:ann") // changes nothing
	public := w.write("folder:beside#viewer@user:*")
	last := w.write("folder:unrelated#viewer@user:bob")

	events := watchViewers(w, start, last)
	if len(events) != 5 {
		t.Fatalf("%d events: %+v", len(events), events)
	}
	if ev := events[0]; ev.Token != full || ev.Scope != nil || len(ev.Decisions) != most {
		t.Errorf("as many as are named: %+v", ev)
	}
	for i, want := range []struct {
		token     string
		resources []tuplestore.Object
		subjects  []tuplestore.Subject
	}{
		{over, nil, []tuplestore.Subject{ann}},
		{team, []tuplestore.Object{{Type: "document", ID: "new"}}, nil},
		{group, nil, []tuplestore.Subject{{Type: "user", ID: "1"}, {Type: "user", ID: "2"}, {Type: "user", ID: "3"}}},
	} {
		ev := events[i+1]
		if ev.Token != want.token || ev.Scope == nil || ev.Scope.Reason != "too_many" ||
			!slices.Equal(ev.Scope.Resources, want.resources) || !slices.Equal(ev.Scope.Subjects, want.subjects) {
			t.Errorf("%+v, want %+v", ev, want)
		}
	}
	// Ann may view document:1 already.
	if ev := events[4]; ev.Token != public || len(ev.Decisions) != 1 || ev.Decisions[0].Subject.ID != tuplestore.Wildcard || ev.Decisions[0].Except != nil {
		t.Errorf("public: %+v", ev)
	}
}

// Bob is a candidate for document:5 because of the links of document:0, although only document:6
// depends on those through which he comes. The wildcard changes his decision all the same.
func TestWatchedDecisionsOfTheWildcard(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(`folder
  a [user]
  b [user]
document
  parent [folder]
  first [document]
  second [document]
  x: parent->a
  y: parent->b
  viewer [user, user:*]: this | first->x | second->y`)
	start := w.write("document:5#first@document:0", "document:6#second@document:0", "folder:1#b@user:bob")
	w.write("document:0#parent@folder:1")
	w.write("document:5#viewer@user:*")
	if err := w.remove("document:0#parent@folder:1"); err != nil {
		t.Fatal(err)
	}
	last := w.write("folder:unrelated#a@user:ann")
	var got []string
	for _, ev := range watchViewers(w, start, last) {
		for _, c := range ev.Decisions {
			got = append(got, fmt.Sprintf("%s %s %d", c.Subject, c.Resource, c.After))
		}
	}
	if want := []string{"user:bob document:6 1", "user:* document:5 1", "user:bob document:6 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A watch for decisions that the newest types do not have is refused.
func TestWatchedDecisionsMustExist(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive)
	watch := func(about engine.WatchedDecisions) error {
		return w.engine.Watch(context.Background(), tenant, engine.WatchRequest{Decisions: &about}, func(engine.WatchEvent) error {
			t.Errorf("%+v has an event", about)
			return errors.New("stop")
		})
	}
	var typ *engine.UnknownTypeError
	if err := watch(engine.WatchedDecisions{Type: "ghost", Action: "view", SubjectType: "user"}); !errors.As(err, &typ) {
		t.Error(err)
	}
	var relation *engine.UndefinedRelationError
	if err := watch(engine.WatchedDecisions{Type: "document", Action: "fly", SubjectType: "user"}); !errors.As(err, &relation) {
		t.Error(err)
	}
	var subject *engine.InvalidSubjectError
	if err := watch(engine.WatchedDecisions{Type: "document", Action: "view", SubjectType: "ghost"}); !errors.As(err, &subject) {
		t.Error(err)
	}
}
