// Package auditlog reads the event log of a tenant for people who ask what has happened.
//
// The log is ordered by position and has no other index, so a filter is applied to the events as they
// are read, backward from the newest. A request reads a bounded part of the log; a page that ends for
// that reason says where the next one begins.
package auditlog

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// ErrNotFound is returned for an event that does not exist, or is no longer kept.
var ErrNotFound = errors.New("event not found")

// Scan bounds the events that a request reads.
const Scan = 5000

// Reader reads the events of all tenants. It is safe for concurrent use.
type Reader struct {
	Log interface {
		Before(ctx context.Context, tenantID string, before int64, limit int) ([]eventlog.Event, error)
		Pick(ctx context.Context, tenantID string, positions []int64) ([]eventlog.Event, error)
		Counts(ctx context.Context, tenantID string, since time.Time) (counts []eventlog.Count, truncated bool, err error)
	}
}

// Filter selects events. Zero fields select all.
type Filter struct {
	Type  string // or a category, such as user.*
	Actor string // the id
	About string // a string of the data
	Since time.Time
	Until time.Time
}

// Page is a part of the events, the newest first.
type Page struct {
	Events []Event
	Before int64 // the position before which the next page begins; 0: this is the last
}

// Event is an event of the log. It encodes as its public representation.
type Event struct {
	ID        string             `json:"event_id"`
	Type      string             `json:"event_type"`
	Sequence  int64              `json:"sequence"`
	At        document.Timestamp `json:"occurred_at"`
	Actor     *Actor             `json:"actor"`
	ClientID  *string            `json:"client_id"`
	RequestID *string            `json:"request_id"`
	ClientIP  *string            `json:"client_ip"`
	Data      jsontext.Value     `json:"data"`
}

// Actor is the user or the application that made a change.
type Actor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func represent(e eventlog.Event) Event {
	d := Event{
		ID: e.ID, Type: string(e.Type), Sequence: e.Position, At: document.Timestamp(e.At), Data: e.Data,
		ClientID: document.OrNull(e.Origin.ClientID), RequestID: document.OrNull(e.Origin.RequestID), ClientIP: document.OrNull(e.Origin.ClientIP),
	}
	if a := e.Origin.Actor; a.ID != "" {
		d.Actor = &Actor{a.Type, a.ID}
	}
	return d
}

// Events returns up to limit events that a filter selects, before a position (0: from the newest).
func (r *Reader) Events(ctx context.Context, tenantID string, f Filter, before int64, limit int) (p Page, err error) {
	for read := 0; read < Scan; {
		events, err := r.Log.Before(ctx, tenantID, before, min(Scan-read, eventlog.MaxPage))
		if err != nil {
			return p, err
		}
		for _, e := range events {
			before = e.Position
			if f.selects(e) {
				if p.Events = append(p.Events, represent(e)); len(p.Events) == limit {
					p.Before = before
					return p, nil
				}
			}
		}
		// Clocks of processes differ, so an older event may follow a newer one, but not a whole read of them.
		if len(events) == 0 || !f.Since.IsZero() && events[0].At.Before(f.Since) {
			return p, nil
		}
		read += len(events)
	}
	p.Before = before
	return p, nil
}

// Event returns the event at a position. It fails with [ErrNotFound].
func (r *Reader) Event(ctx context.Context, tenantID string, position int64) (Event, error) {
	events, err := r.Log.Pick(ctx, tenantID, []int64{position})
	if err != nil {
		return Event{}, err
	}
	if len(events) == 0 {
		return Event{}, ErrNotFound
	}
	return represent(events[0]), nil
}

// Summary has the number of events of each type since an instant.
type Summary struct {
	Since     document.Timestamp `json:"since"`
	Truncated bool               `json:"truncated"` // there are older events, which are not counted
	Counts    []TypeCount        `json:"counts"`
}

// TypeCount is the number of events of a type.
type TypeCount struct {
	Type  eventlog.Type `json:"event_type"`
	Count int           `json:"count"`
}

// Summary counts the events of each type since an instant, except those of writes of relations.
func (r *Reader) Summary(ctx context.Context, tenantID string, since time.Time) (Summary, error) {
	counts, truncated, err := r.Log.Counts(ctx, tenantID, since)
	s := Summary{Since: document.Timestamp(since), Truncated: truncated, Counts: []TypeCount{}}
	for _, c := range counts {
		s.Counts = append(s.Counts, TypeCount{c.Type, c.N})
	}
	return s, err
}

func (f Filter) selects(e eventlog.Event) bool {
	category, all := strings.CutSuffix(f.Type, "*")
	switch {
	case f.Type != "" && string(e.Type) != f.Type && !(all && strings.HasPrefix(string(e.Type), category)),
		f.Actor != "" && e.Origin.Actor.ID != f.Actor,
		!f.Since.IsZero() && e.At.Before(f.Since),
		!f.Until.IsZero() && !e.At.Before(f.Until):
		return false
	}
	return f.About == "" || has(e.Data, f.About)
}

// has reports whether JSON has a string as a value.
func has(data []byte, text string) bool {
	quoted, err := json.Marshal(text, jsontext.AllowInvalidUTF8(true))
	if err != nil || !bytes.Contains(data, quoted) {
		return false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return false
		}
		kind, n := decoder.StackIndex(decoder.StackDepth())
		isName := kind == '{' && n%2 == 1
		if token.Kind() == '"' && !isName && token.String() == text {
			return true
		}
	}
}
