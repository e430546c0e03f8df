package auditlog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

// log is a log in memory, whose events have the positions from 1.
type log []eventlog.Event

func (l log) Before(_ context.Context, _ string, before int64, limit int) (events []eventlog.Event, err error) {
	if before == 0 {
		before = int64(len(l)) + 1
	}
	for p := before - 1; p > 0 && len(events) < limit; p-- {
		e := l[p-1]
		e.Position = p
		events = append(events, e)
	}
	return events, nil
}

func (l log) Pick(context.Context, string, []int64) ([]eventlog.Event, error) { return nil, nil }

func (l log) Counts(context.Context, string, time.Time) ([]eventlog.Count, bool, error) {
	return nil, false, nil
}

func TestEvents(t *testing.T) {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	var l log
	add := func(typ eventlog.Type, actor, data string) {
		l = append(l, eventlog.Event{Type: typ, At: start.Add(time.Duration(len(l)) * time.Hour), Origin: eventlog.Origin{Actor: eventlog.Actor{Type: "user", ID: actor}}, Data: []byte(data)})
	}
	add(eventlog.UserCreated, "ann", `{"user":{"id":"u1","names":["a \"b\""]}}`)
	add(eventlog.UserUpdated, "bob", `{"user":{"id":"u1","u2":"x"}}`)
	add(eventlog.GroupCreated, "ann", `{"group":{"id":"g1","u1":1}}`)
	r := &Reader{l}
	for name, test := range map[string]struct {
		filter        Filter
		before, limit int
		want          string
	}{
		"all":                   {Filter{}, 0, 9, "[3 2 1] 0"},
		"a page":                {Filter{}, 0, 2, "[3 2] 2"},
		"the next":              {Filter{}, 2, 2, "[1] 0"},
		"a type":                {Filter{Type: "user.created"}, 0, 9, "[1] 0"},
		"the beginning of one":  {Filter{Type: "user"}, 0, 9, "[] 0"},
		"a category":            {Filter{Type: "user.*"}, 0, 9, "[2 1] 0"},
		"an actor":              {Filter{Actor: "ann"}, 0, 9, "[3 1] 0"},
		"about":                 {Filter{About: "u1"}, 0, 9, "[2 1] 0"},
		"about an escaped text": {Filter{About: `a "b"`}, 0, 9, "[1] 0"},
		"not about a name":      {Filter{About: "u2"}, 0, 9, "[] 0"},
		"not about a part":      {Filter{About: "u"}, 0, 9, "[] 0"},
		"since":                 {Filter{Since: start.Add(time.Hour)}, 0, 9, "[3 2] 0"},
		"until":                 {Filter{Until: start.Add(time.Hour)}, 0, 9, "[1] 0"},
	} {
		page, err := r.Events(t.Context(), "t", test.filter, int64(test.before), test.limit)
		list := []int64{}
		for _, e := range page.Events {
			list = append(list, e.Sequence)
		}
		if got := fmt.Sprint(list, page.Before); got != test.want || err != nil {
			t.Errorf("%s: %s, want %s, %v", name, got, test.want, err)
		}
	}
}

// A request reads a bounded part of a log, and says where the next one begins.
func TestScanIsBounded(t *testing.T) {
	l := make(log, Scan+10)
	for i := range l {
		l[i] = eventlog.Event{Type: eventlog.UserCreated, Data: []byte(`{}`)}
	}
	l[0].Type = eventlog.GroupCreated
	r := &Reader{l}
	page, err := r.Events(t.Context(), "t", Filter{Type: "group.*"}, 0, 5)
	if err != nil || len(page.Events) != 0 || page.Before != 11 {
		t.Fatalf("%v, %v", page, err)
	}
	page, err = r.Events(t.Context(), "t", Filter{Type: "group.*"}, page.Before, 5)
	if err != nil || len(page.Events) != 1 || page.Before != 0 {
		t.Errorf("%v, %v", page, err)
	}
}
