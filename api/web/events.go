package web

import (
	"maps"
	"slices"

	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/schema"
)

// Origin is the origin of the changes that the request makes.
func (info *RequestInfo) Origin() eventlog.Origin {
	o := eventlog.Origin{RequestID: info.RequestID, ClientIP: info.ClientIP.String()}
	if p := info.Principal; p != nil {
		o.ClientID = p.ClientID
		o.Actor = eventlog.Actor{Type: "user", ID: p.Subject}
		if p.IsApplication() {
			o.Actor.Type = "application"
		}
		if p.Acting() { // the actor makes the change
			o.Actor = p.Actor
		}
	}
	return o
}

// Caller is the party that makes the request, as package authority compares its rights.
func (info *RequestInfo) Caller() (caller authority.Caller) {
	if p := info.Principal; p != nil {
		caller = authority.Caller{Type: schema.UserType, ID: p.Subject, Scopes: slices.Collect(maps.Keys(p.Scopes))}
		if p.IsApplication() {
			caller.Type = schema.ApplicationType
		}
	}
	return caller
}
