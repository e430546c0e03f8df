package web

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/schema"
)

// Event says that the caller made something happen. data is what becomes of it as
// JSON, in the form that clients get; it holds no secret.
func (c *Call) Event(t eventlog.Type, data any) eventlog.Event { return NewEvent(t, c.Origin(), data) }

// Origin says who makes the request.
func (c *Call) Origin() eventlog.Origin {
	o := eventlog.Origin{RequestID: c.RequestID, ClientIP: c.ClientIP.String()}
	if p := c.Principal; p != nil {
		o.ClientID = p.ClientID
		o.Actor = eventlog.Actor{Type: "user", ID: p.Subject}
		if p.IsApplication() {
			o.Actor.Type = "application"
		}
		if p.Acting() { // it is they who do it
			o.Actor = p.Actor
		}
	}
	return o
}

// Caller is the party that makes the request, as package authority compares its rights.
func (c *Call) Caller() (who authority.Caller) {
	if p := c.Principal; p != nil {
		who = authority.Caller{Type: schema.UserType, ID: p.Subject, Scopes: slices.Collect(maps.Keys(p.Scopes))}
		if p.IsApplication() {
			who.Type = schema.ApplicationType
		}
	}
	return who
}

// NewEvent is [Call.Event] for what happens later than the request that asked for it.
func NewEvent(t eventlog.Type, o eventlog.Origin, data any) eventlog.Event {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("web: event that is not JSON: " + err.Error()) // of our own types
	}
	return eventlog.New(t, o, text)
}

// Difference is the members of two JSON forms that differ.
func Difference(before, after any) map[string][2]any {
	members := func(u any) (m map[string]any) {
		text, err := json.Marshal(u)
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			panic("web: " + err.Error()) // of our own types
		}
		return m
	}
	from, to := members(before), members(after)
	changes := map[string][2]any{}
	for name, value := range to {
		if !equal(from[name], value) {
			changes[name] = [2]any{from[name], value}
		}
	}
	return changes
}

// equal compares two JSON values.
func equal(a, b any) bool {
	textA, errA := json.Marshal(a, json.Deterministic(true))
	textB, errB := json.Marshal(b, json.Deterministic(true))
	return errA == nil && errB == nil && string(textA) == string(textB)
}
