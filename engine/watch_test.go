package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
)

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
