package delivery

import (
	"slices"
	"testing"
	"time"
)

// A lane whose lease has ended is not taken by the process that still holds it: the lease would
// be renewed in the database, and nothing would send its deliveries.
func TestHeldLanesAreNotTaken(t *testing.T) {
	q := &Queue{clock: time.Now}
	q.lanes = newLanes(q)
	held, free := laneKey{"tnt_a", "whs_held"}, laneKey{"tnt_a", "whs_free"}
	l := newLane(q, held, 0, time.Now().Add(-time.Second))
	q.lanes.held[held] = l
	if got := q.lanes.notHeld([]laneKey{held, free}); !slices.Equal(got, []laneKey{free}) {
		t.Errorf("%v", got)
	}
	select {
	case <-l.wake:
	default:
		t.Error("the held lane was not woken")
	}
	q.lanes.ended(l)
	if got := q.lanes.notHeld([]laneKey{held}); !slices.Equal(got, []laneKey{held}) {
		t.Errorf("after it was given up: %v", got)
	}
}
