package delivery

import (
	"sync/atomic"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/webhooks/subscription"
)

// Status is the state of a delivery.
type Status string

// The states of a delivery.
const (
	Pending      Status = "pending"  // there was no attempt
	Retrying     Status = "retrying" // all attempts so far have failed
	Delivered    Status = "delivered"
	DeadLettered Status = "dead_lettered"
	Cancelled    Status = "cancelled" // the event is no longer stored
)

// Statuses are all states.
var Statuses = []Status{Pending, Retrying, Delivered, DeadLettered, Cancelled}

// Delivery is an event on its way to a subscription.
type Delivery struct {
	ID             string
	TenantID       string
	SubscriptionID string
	EventID        string
	EventType      string
	Status         Status
	Attempts       []Attempt // those that have a result
	NextAttemptAt  time.Time // zero: there is none
	CreatedAt      time.Time

	position   int64  // of the event
	body       string // empty: it is made from the event
	response   string // the stored form of the last one
	operations visibleOperations
	size       int64
	due        int64        // 0: no further attempt; by the clock of the lane, in microseconds
	event      *loggedEvent // nil: it has to be read
}

// loggedEvent is an event of the log that deliveries share.
type loggedEvent struct {
	eventlog.Event
	body atomic.Pointer[[]byte] // of deliveries with all of the event; nil: it was not made yet
}

// next returns the number of the next attempt.
func (d *Delivery) next() int { return len(d.Attempts) + 1 }

// weight is the memory of a delivery in bytes, about.
func (d *Delivery) weight() int64 { return 512 + d.size + int64(len(d.response)) }

// laneKey identifies a lane.
type laneKey struct{ tenantID, subscriptionID string }

// about reports whether an event of the category webhook is about a subscription: it is not
// delivered to that one, because a failed delivery would lead to another one.
func about(e eventlog.Event, s *subscription.Subscription) bool {
	return e.Type.Category() == "webhook" && subjectOf(e) == s.ID
}
