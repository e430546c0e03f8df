package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
)

const drive = `folder
  parent [folder]
  viewer [user, group, user:*]: this | parent->viewer
document
  parent [folder]
  banned [user]
  viewer: parent->viewer - banned`

func listResources(w *fixture, subject string, more func(*engine.ListResourcesRequest)) ([]string, error) {
	w.Helper()
	req := engine.ListResourcesRequest{Subject: request(subject, "", "x:x").Subject, Type: "document", Action: "view"}
	if more != nil {
		more(&req)
	}
	list, err := w.engine.ListResources(context.Background(), tenant, req)
	if err != nil {
		return nil, err
	}
	return list.IDs, nil
}

// chain writes a chain of folders, with a document in the last one.
func (w *fixture) chain(depth int) {
	w.define(drive)
	for i := range depth {
		w.write(fmt.Sprintf("folder:%d#parent@folder:%d", i+1, i))
	}
	w.write("folder:0#viewer@user:ann", fmt.Sprintf("document:d#parent@folder:%d", depth))
}

// A cold list takes one read for each level of the traversal, and its verification one for
// each level of the check, regardless of the number of resources.
func TestColdListsAreOneReadPerLevel(t *testing.T) {
	const depth = 5
	w := newFixture(t, engine.Config{ResidentBytes: -1})
	w.chain(depth)
	for i := range 2500 {
		w.write(fmt.Sprintf("document:%04d#parent@folder:%d", i, depth))
	}
	before := w.engine.Stats().ColdReads
	ids, err := listResources(w, "user:ann", nil)
	if err != nil || len(ids) != 2501 {
		t.Fatalf("%d resources, %v", len(ids), err)
	}
	traversal, verify := int64(depth+3), int64(3*(depth+3)) // three chunks of a thousand
	if reads := w.engine.Stats().ColdReads - before; reads > traversal+verify {
		t.Errorf("%d reads, want at most %d", reads, traversal+verify)
	}

	before = w.engine.Stats().ColdReads
	subjects, err := w.engine.ListSubjects(context.Background(), tenant, engine.ListSubjectsRequest{
		Resource: tuplestore.Object{Type: "document", ID: "d"}, Action: "view", SubjectType: "user",
	})
	if err != nil || len(subjects.Entries) != 1 {
		t.Fatalf("%v, %v", subjects, err)
	}
	if reads := w.engine.Stats().ColdReads - before; reads > depth+4 {
		t.Errorf("%d reads, want at most %d", reads, depth+4)
	}
}

// A list that exceeds the budget is an error, and never a shorter list.
func TestListsAreCompleteOrFail(t *testing.T) {
	for name, resident := range map[string]int64{"resident": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, engine.Config{MaxVisits: 2000, ResidentBytes: resident})
			w.define(drive)
			w.write("folder:f#viewer@user:ann")
			for i := range 900 {
				w.write(fmt.Sprintf("document:%d#parent@folder:f", i), fmt.Sprintf("folder:g#viewer@user:%d", i))
			}
			for i := range 300 {
				w.write(fmt.Sprintf("folder:h#viewer@user:%d", i))
			}
			w.write("document:d#parent@folder:g")
			var tooMuch *engine.BudgetError
			if ids, err := listResources(w, "user:ann", nil); !errors.As(err, &tooMuch) {
				t.Errorf("%d resources, %v", len(ids), err)
			}
			list, err := w.engine.ListSubjects(context.Background(), tenant, engine.ListSubjectsRequest{
				Resource: tuplestore.Object{Type: "document", ID: "d"}, Action: "view", SubjectType: "user",
			})
			if !errors.As(err, &tooMuch) {
				t.Errorf("%v, %v", list, err)
			}
			big := engine.ExpandRequest{Resource: tuplestore.Object{Type: "folder", ID: "h"}, Action: "view"}
			if tree, err := w.engine.Expand(context.Background(), tenant, big); err != nil || len(tree.Root.Children[0].Subjects) != 300 {
				t.Errorf("%v, %v", tree, err)
			}
		})
	}
}

// Writes and lists share a graph whose backward index is built during the writes.
func TestListsWhileWriting(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive)
	w.write("folder:f#viewer@user:ann")
	w.waitResident(request("user:ann", "view", "folder:f"))
	ctx := context.Background()
	var writers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			for i := range 200 {
				w.write(fmt.Sprintf("document:%d-%03d#parent@folder:f", n, i))
				if i%3 == 0 {
					o := tuplestore.Object{Type: "document", ID: fmt.Sprintf("%d-%03d", n, i)}
					if _, err := w.engine.Unregister(ctx, tenant, o, by); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 50 {
		if _, err := listResources(w, "user:ann", nil); err != nil {
			t.Error(err)
		}
	}
	writers.Wait()
	ids, err := listResources(w, "user:ann", nil)
	if want := 2 * (200 - 67); err != nil || len(ids) != want {
		t.Errorf("%d resources, %v, want %d", len(ids), err, want)
	}
	if !slices.IsSorted(ids) {
		t.Error("not in order")
	}
}

func TestListActions(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive + "\n  editor [user]\n  act publish = editor")
	w.write("document:d#parent@folder:f", "folder:f#viewer@user:ann", "document:d#editor@user:ann", "document:d#parent@folder:f")
	list, err := w.engine.ListActions(context.Background(), tenant, engine.ListActionsRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "ann"}, Resource: tuplestore.Object{Type: "document", ID: "d"},
	})
	if want := []string{"edit", "editor", "publish", "view", "viewer"}; err != nil || !slices.Equal(list.Actions, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
}

// editToken replaces one part of a consistency token.
func editToken(t *testing.T, token string, part int, with string) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "|")
	parts[part] = with
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "|")))
}

// watchUntil collects the events of a watch up to the one with the token.
func watchUntil(w *fixture, after, last string) ([]engine.WatchEvent, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var events []engine.WatchEvent
	done := errors.New("seen enough")
	err := w.engine.Watch(ctx, tenant, engine.WatchRequest{After: after, Heartbeat: 50 * time.Millisecond}, func(ev engine.WatchEvent) error {
		events = append(events, ev)
		if ev.Token == last && !ev.Heartbeat {
			return done
		}
		return nil
	})
	if errors.Is(err, done) {
		err = nil
	}
	return events, err
}

func TestWatch(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive)
	first := w.write("folder:0#viewer@user:ann")
	var last string
	for i := range 600 { // more than one read of the changelog
		last = w.write(fmt.Sprintf("folder:%d#viewer@user:ann", i+1))
	}
	events, err := watchUntil(w, first, last)
	if err != nil || len(events) != 601 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if !events[0].Heartbeat || events[0].Token != first {
		t.Errorf("it begins with %+v", events[0])
	}
	for i, ev := range events[1:] {
		want := fmt.Sprintf("folder:%d#viewer@user:ann", i+1)
		if len(ev.Changes) != 2 || ev.Changes[0].Tuple.String() != want || !ev.Changes[1].Tuple.IsPresence() {
			t.Fatalf("event %d: %+v, want %s", i, ev, want)
		}
	}

	// Without changes there are heartbeats, and later changes follow.
	next := make(chan string, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		next <- w.write("folder:0#viewer@user:bob")
	}()
	var beats int
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	done := errors.New("seen enough")
	err = w.engine.Watch(ctx, tenant, engine.WatchRequest{Heartbeat: 20 * time.Millisecond}, func(ev engine.WatchEvent) error {
		if !ev.Heartbeat {
			if token := <-next; ev.Token != token {
				t.Errorf("token %s, want %s", ev.Token, token)
			}
			return done
		}
		beats++
		return nil
	})
	if !errors.Is(err, done) || beats < 2 {
		t.Errorf("%v after %d heartbeats", err, beats)
	}

	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"nonsense": {"x", engine.ErrTokenInvalid},
		"ahead":    {editToken(t, last, 3, "999999"), engine.ErrTokenUnknown},
		"restored": {editToken(t, last, 2, "another"), engine.ErrTokenExpired},
	} {
		if _, err := watchUntil(w, c.token, ""); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A watch of a tenant without writes begins before its history.
func TestWatchBeginsBeforeTheFirstWrite(t *testing.T) {
	w := newFixture(t, engine.Config{})
	var start string
	stop := errors.New("stop")
	err := w.engine.Watch(context.Background(), tenant, engine.WatchRequest{}, func(ev engine.WatchEvent) error {
		start = ev.Token
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	w.define("folder\n  viewer")
	last := w.write("folder:0#viewer@user:ann")
	events, err := watchUntil(w, start, last)
	if err != nil || len(events) != 3 || !events[1].SchemaChanged {
		t.Fatalf("%+v, %v", events, err)
	}
	if events, err = watchUntil(w, events[1].Token, last); err != nil || len(events) != 2 {
		t.Fatalf("%+v, %v", events, err)
	}
}

// An expiry takes effect at its instant without a write, in every mode.
func TestExpiryFollowsTheClock(t *testing.T) {
	for name, resident := range map[string]int64{"resident": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			w := newFixture(t, engine.Config{ResidentBytes: resident, Clock: func() time.Time { return now }})
			w.define(drive)
			o := op(t, "folder:f#viewer@user:ann")
			o.ExpiresAt = now.Add(time.Hour)
			if _, err := w.engine.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{o}}); err != nil {
				t.Fatal(err)
			}
			w.write("document:d#parent@folder:f")
			req := request("user:ann", "view", "document:d")
			if resident == 0 {
				w.waitResident(req)
			}
			for _, mode := range []engine.ConsistencyMode{engine.Full, engine.MinimizeLatency} {
				req.Consistency.Mode = mode
				now = o.ExpiresAt.Add(-time.Microsecond)
				if _, allowed := ask(t, w.engine, req); !allowed {
					t.Error("denied before its end")
				}
				if ids, err := listResources(w, "user:ann", nil); err != nil || len(ids) != 1 {
					t.Errorf("list before its end: %v, %v", ids, err)
				}
				now = o.ExpiresAt
				if _, allowed := ask(t, w.engine, req); allowed {
					t.Error("allowed after its end")
				}
				if ids, err := listResources(w, "user:ann", nil); err != nil || len(ids) != 0 {
					t.Errorf("list after its end: %v, %v", ids, err)
				}
			}
		})
	}
}

// TestDeleteSubjectRelations repeats a deletion, as a process does that takes over from one
// that ended before it answered, and runs two deletions concurrently.
func TestDeleteSubjectRelations(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\n  owner [user]")
	const n = 60
	for i := range n {
		w.write(fmt.Sprintf("doc:%d#viewer@user:ann", i))
	}
	w.write("doc:1#owner@user:ann", "doc:1#viewer@user:bob")
	deletion := func(commit string, limit int) engine.SubjectDeletion {
		return engine.SubjectDeletion{
			SubjectFilter: engine.SubjectFilter{Subject: tuplestore.Object{Type: "user", ID: "ann"}}, Limit: limit,
			Keep:   func(_ tuplestore.Object, relation string) bool { return relation == "owner" },
			Origin: func([]engine.WriteOp) engine.Origin { return engine.Origin{CommitID: commit} },
		}
	}
	for range 2 {
		got, err := w.engine.DeleteSubjectRelations(t.Context(), tenant, deletion("once", 10))
		if err != nil || got.Count != 10 || !got.More {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	var deleted atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				got, err := w.engine.DeleteSubjectRelations(t.Context(), tenant, deletion("", 7))
				var busy *tuplestore.BusyError
				if errors.As(err, &busy) {
					continue // other deletions came first in every attempt
				}
				if err != nil {
					t.Error(err)
					return
				}
				deleted.Add(int64(got.Count))
				if !got.More {
					return
				}
			}
		})
	}
	group.Wait()
	if deleted.Load() != n-10 {
		t.Errorf("%d deleted, want %d", deleted.Load(), n-10)
	}
	left, err := w.engine.SubjectRelations(t.Context(), tenant, deletion("", 0).SubjectFilter, nil, 10)
	if err != nil || len(left) != 1 || left[0].Relation != "owner" {
		t.Errorf("left %v, %v", left, err)
	}
}
