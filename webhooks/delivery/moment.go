package delivery

import (
	"context"
	"fmt"

	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
	"stonetown/webhooks/subscription"
)

// maxMoment is how many resources of several events are asked about together, about.
const maxMoment = 500

// moment is consecutive events that are compared with visibilities at the same revision, and the
// answers so far. Each question is asked once, however many subscriptions have the same visibility
// and however often the events name the resource.
type moment struct {
	revision    int64
	first, last int64               // the positions of the events
	resources   []tuplestore.Object // of all events
	of          map[int64][]int     // by position: the resource of the event, or of each operation
	unreadable  map[int64]bool      // by position: events whose data cannot be read
	allowed     map[subscription.Visibility][]bool
}

// momentOf returns the first of some events that are one moment.
func momentOf(events []eventlog.Event) *moment {
	m := &moment{
		revision: revisionOf(events[0]), first: events[0].Position, of: map[int64][]int{}, unreadable: map[int64]bool{},
		allowed: map[subscription.Visibility][]bool{},
	}
	index := map[tuplestore.Object]int{}
	for _, e := range events {
		if revisionOf(e) != m.revision || len(m.resources) >= maxMoment {
			break
		}
		m.last = e.Position
		resources, err := resourcesOf(e)
		if err != nil { // visible to no subject
			m.unreadable[e.Position] = true
			continue
		}
		for _, o := range resources {
			at, known := index[o]
			if !known {
				at = len(m.resources)
				index[o] = at
				m.resources = append(m.resources, o)
			}
			m.of[e.Position] = append(m.of[e.Position], at)
		}
	}
	return m
}

// ask asks what some visibilities let see, until all questions are answered or, after at least one
// call of the checker, the turn is over. It reports whether all are answered.
func (m *moment) ask(ctx context.Context, c Checker, tenantID string, visibilities []subscription.Visibility, over func() bool) (all bool, err error) {
	asked := false
	for _, v := range visibilities {
		for n := len(m.allowed[v]); n < len(m.resources); n = len(m.allowed[v]) {
			if asked && over() {
				return false, nil
			}
			answers, err := c.AllowedAt(ctx, tenantID, m.revision, v.Subject.Tuple(), v.Action, m.resources[n:])
			if err == nil && (len(answers) == 0 || len(answers) > len(m.resources)-n) {
				err = fmt.Errorf("%d answers to %d questions", len(answers), len(m.resources)-n)
			}
			if err != nil {
				return false, fmt.Errorf("events visible to %s %s: %w", v.Subject.Tuple(), v.Action, err)
			}
			m.allowed[v] = append(m.allowed[v], answers...)
			asked = true
		}
	}
	return true, nil
}

// visible reports whether an event is visible, and which operations of a bulk write are, after all
// questions about it were answered.
func (m *moment) visible(v subscription.Visibility, e eventlog.Event) (operations visibleOperations, ok bool) {
	allowed := m.allowed[v]
	for i, at := range m.of[e.Position] {
		if allowed[at] {
			operations = append(operations, i)
		}
	}
	if len(operations) == 0 {
		return nil, false
	}
	if e.Type != eventlog.RelationBulkApplied || len(operations) == len(m.of[e.Position]) {
		operations = nil
	}
	return operations, true
}
