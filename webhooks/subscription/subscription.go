// Package subscription has the webhook subscriptions of tenants.
//
// A [Subscription] names a URL and patterns of event types. An event that is committed while a
// subscription is enabled, and that matches one of its patterns, is delivered to its URL
// (package delivery).
//
// # What a subscription may see
//
// A subscription with a [Visibility] gets only events about resources, and of those only the
// ones about resources on which the engine allows its subject an action, at the revision of
// the event. So an integrator can be given the events of everything that a team may view, and
// nothing else.
//
// # Who manages a subscription
//
// A caller whose token has the scope webhooks:write manages all subscriptions of the tenant,
// and one with webhooks:read reads them. Others manage and read the subscriptions of which the
// engine says that they are owner or viewer. An owner cannot widen what the subscription sees;
// see [Registry.Update]. Owners and viewers are relations, which change in the transaction that
// changes the subscription; no other operation writes them.
package subscription

import (
	"slices"
	"time"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Subscription is a webhook subscription of a tenant.
type Subscription struct {
	ID       string
	TenantID string

	Name        string
	URL         string
	Description string
	Events      []string    // patterns, 1 to 50
	VisibleTo   *Visibility // nil: all events that match
	Owners      []Subject
	Viewers     []Subject

	State          State
	DisabledReason Reason // empty while enabled

	CreatedAt         time.Time // UTC, as the other times
	UpdatedAt         time.Time
	PreviousExpiresAt time.Time // of the secret before the present one; zero: there is none

	// After and Until are the positions in the log of the tenant after which, and up to which,
	// events are delivered. Those that were committed before the subscription was disabled
	// become dead letters, as its pending deliveries do.
	After, Until int64
	// FailingSince is the time of the first failed attempt since the last successful one; zero:
	// the last attempt was successful, or there was none.
	FailingSince  time.Time
	LastSuccessAt time.Time

	secret, previous []byte // sealed
}

// State is the state of a subscription.
type State string

// The states of a subscription.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
)

// Reason is the reason why a subscription is disabled.
type Reason string

// The reasons.
const (
	Manual Reason = "manual" // by an operation
	Gone   Reason = "gone"   // the last attempt of a delivery ended with the status 410
)

// Visibility limits a subscription to what a subject may see.
type Visibility struct {
	Subject Subject `json:"subject"`
	Action  string  `json:"action"`
}

// Subject is a subject of the engine.
type Subject struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Relation string `json:"relation,omitempty"`
}

// Tuple returns the subject as the engine takes it.
func (s Subject) Tuple() tuplestore.Subject {
	return tuplestore.Subject{Type: s.Type, ID: s.ID, Relation: s.Relation}
}

// SubjectOf returns the subject of a tuple.
func SubjectOf(s tuplestore.Subject) Subject { return Subject{s.Type, s.ID, s.Relation} }

// Object returns the object that stands for a subscription in relations.
func Object(subscriptionID string) tuplestore.Object {
	return tuplestore.Object{Type: schema.WebhookSubscriptionType, ID: subscriptionID}
}

// Matches reports whether one of the patterns matches a type of event.
func (s *Subscription) Matches(eventType string) bool {
	return slices.ContainsFunc(s.Events, func(p string) bool { return matches(p, eventType) })
}

// normalize makes groups that are named as subjects their members, as the engine does.
func (s *Subscription) normalize() {
	subjects := func(list []Subject) {
		for i, subject := range list {
			list[i] = subject.normalized()
		}
	}
	subjects(s.Owners)
	subjects(s.Viewers)
	if s.VisibleTo != nil {
		s.VisibleTo = &Visibility{s.VisibleTo.Subject.normalized(), s.VisibleTo.Action}
	}
}

func (s Subject) normalized() Subject {
	if s.Type == schema.GroupType && s.Relation == "" {
		s.Relation = schema.GroupMember
	}
	return s
}

// document is the public representation, in which a group stands for its members.
func (s Subject) document() Subject {
	if s.Type == schema.GroupType && s.Relation == schema.GroupMember {
		s.Relation = ""
	}
	return s
}

// clone returns a copy that shares no slice with s.
func (s Subscription) clone() Subscription {
	s.Events, s.Owners, s.Viewers = slices.Clone(s.Events), slices.Clone(s.Owners), slices.Clone(s.Viewers)
	if s.VisibleTo != nil {
		s.VisibleTo = new(*s.VisibleTo)
	}
	return s
}
