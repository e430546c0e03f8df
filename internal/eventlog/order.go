package eventlog

import (
	"context"
	"fmt"
	"slices"

	"stonetown/internal/sqldb"
)

// The event of a commit has no position in its row: its writer would have to update a second row
// for that. The commit notes only how many commits up to it have an event. Every other event notes
// how many events of commits precede it, so that positions follow from these numbers:
//
//	events          position=7   commit_events=4
//	tenant_commits  rev=31       commit_events=5    at position 8
//	tenant_commits  rev=32       commit_events=6    at position 9
//	events          position=10  commit_events=6
//
// The head of the log notes the same, for its newest position, and never goes back. A writer of
// other events advances it over all commits that it sees, and then over its own events. So the
// positions of the commits that the head counts are settled, and a reader advances it before it
// reads further ones. A commit that a writer does not see is concurrent with it, and is after its
// events.
//
// On SQLite, writers come one after the other and see all commits before them, so all of these are
// settled without a write.

// mark is a place in the log: a position, how many events of commits are at or before it, and a
// revision: those events are of commits up to it, and all others of later ones.
type mark struct{ position, commitEvents, revision int64 }

// head is the state of a log. Events up to the floor are no longer kept.
type head struct {
	mark
	floor   mark
	commits mark // without a position: the newest commit
}

// numbered is an event with its place.
type numbered struct {
	Event
	commitEvents int64
}

func (e numbered) mark() mark { return mark{e.Position, e.commitEvents, e.Revision} }

// settled returns the head of a log after it has advanced over all commits.
func (l *Log) settled(ctx context.Context, tenantID string) (head, error) {
	h, err := l.head(ctx, tenantID)
	more := h.commits.commitEvents - h.commitEvents
	if err != nil || more <= 0 {
		return h, err
	}
	if l.db.Dialect() == sqldb.SQLite {
		h.mark = mark{h.position + more, h.commits.commitEvents, h.commits.revision}
		return h, nil
	}
	if _, err := l.db.Exec(ctx, advanceHead, tenantID, int64(0)); err != nil {
		return h, err
	}
	return l.head(ctx, tenantID)
}

// after reads the events after a position. It fails with [*ExpiredError] if some are no longer kept.
func (l *Log) after(ctx context.Context, tenantID string, after int64, limit int) (events []numbered, err error) {
	h, err := l.head(ctx, tenantID)
	if err == nil && h.position < after+int64(limit) {
		h, err = l.settled(ctx, tenantID)
	}
	for err == nil {
		if after < h.floor.position {
			return nil, &ExpiredError{Floor: h.floor.position}
		}
		if h.position <= after || limit <= 0 {
			return nil, nil
		}
		if events, err = l.page(ctx, tenantID, h, after, limit); err != nil {
			return nil, err
		}
		floor := h.floor
		if h, err = l.settled(ctx, tenantID); err == nil && h.floor == floor {
			return events, nil
		}
		// Events were deleted meanwhile, and with them marks.
	}
	return nil, err
}

// page reads the events after a position and up to a head, in order.
func (l *Log) page(ctx context.Context, tenantID string, h head, after int64, limit int) (events []numbered, err error) {
	from := h.floor
	var stored []numbered
	var b sqldb.Batch
	queueMark(&b, tenantID, after, &from)
	b.Queue(selectAfter, []any{tenantID, after, h.position, int64(limit)}, func(rows *sqldb.Rows) (err error) {
		stored, err = scanStored(rows, tenantID)
		return err
	})
	if err := l.db.Send(ctx, &b); err != nil {
		return nil, err
	}
	first := from.commitEvents + after - from.position + 1 // event of a commit
	last := min(h.commitEvents, first+int64(limit)-1)
	if len(stored) == limit {
		last = min(last, stored[limit-1].commitEvents)
	}
	var commits []numbered
	if first <= last {
		if commits, err = l.commits(ctx, tenantID, from, first, last, h.revision); err != nil {
			return nil, err
		}
	}
	for len(events) < limit && len(stored)+len(commits) > 0 {
		if len(stored) == 0 || len(commits) > 0 && commits[0].commitEvents <= stored[0].commitEvents {
			e := commits[0]
			e.Position = from.position + e.commitEvents - from.commitEvents
			events, commits = append(events, e), commits[1:]
		} else {
			from = stored[0].mark()
			events, stored = append(events, stored[0]), stored[1:]
		}
	}
	return events, nil
}

func queueMark(b *sqldb.Batch, tenantID string, position int64, into *mark) {
	b.Queue(selectMark, []any{tenantID, position}, func(rows *sqldb.Rows) error {
		if !rows.Next() {
			return rows.Err()
		}
		return rows.Scan(&into.position, &into.commitEvents, &into.revision)
	})
}

// commits reads the events first to last of commits, without their positions. The first is after a
// mark, and the last not after a revision.
func (l *Log) commits(ctx context.Context, tenantID string, after mark, first, last, newest int64) (events []numbered, err error) {
	from, limit := after.revisionOf(first), last-first+1
	for {
		var b sqldb.Batch
		queueCommits(&b, tenantID, from, newest, limit, &events)
		if err := l.db.Send(ctx, &b); err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("the event %d of commits is missing", first)
		}
		found := events[0].mark()
		if found.commitEvents >= first {
			return events, nil
		}
		from = found.revisionOf(first)
	}
}

// revisionOf returns the first revision that can have an event of a commit after the mark: the one
// that has it if all in between have one.
func (m mark) revisionOf(commitEvent int64) int64 { return m.revision + commitEvent - m.commitEvents }

func queueCommits(b *sqldb.Batch, tenantID string, from, newest, limit int64, into *[]numbered) {
	b.Queue(selectCommits, []any{tenantID, from, newest, limit}, func(rows *sqldb.Rows) (err error) {
		*into, err = scanCommits(rows, tenantID)
		return err
	})
}

// at reads the events at some positions, in order.
func (l *Log) at(ctx context.Context, tenantID string, positions []int64) ([]Event, error) {
	positions = slices.Clone(positions)
	slices.Sort(positions)
	positions = slices.Compact(positions)
	events, err := l.stored(ctx, tenantID, positions)
	if err != nil || len(events) == len(positions) {
		return events, err
	}
	for i := 0; len(positions) > 0 && i < len(events); i++ {
		at, _ := slices.BinarySearch(positions, events[i].Position)
		positions = slices.Delete(positions, at, at+1)
	}
	ofCommits, err := l.ofCommits(ctx, tenantID, positions)
	if err != nil {
		return nil, err
	}
	events = append(events, ofCommits...)
	slices.SortFunc(events, func(a, b Event) int { return int(a.Position - b.Position) })
	return events, nil
}

// ofCommits reads the events of commits that have some positions.
func (l *Log) ofCommits(ctx context.Context, tenantID string, positions []int64) (events []Event, err error) {
	h, err := l.settled(ctx, tenantID)
	for err == nil {
		positions = slices.DeleteFunc(positions, func(p int64) bool { return p <= h.floor.position || p > h.position })
		if len(positions) == 0 {
			return nil, nil
		}
		if events, err = l.lookUp(ctx, tenantID, h, positions); err != nil {
			return nil, err
		}
		floor := h.floor
		if h, err = l.settled(ctx, tenantID); err == nil && h.floor == floor {
			return events, nil
		}
	}
	return nil, err
}

// wanted is an event of a commit that is looked up.
type wanted struct {
	position    int64
	commitEvent int64
	after       mark
	found       []numbered
}

// lookUp reads the events of commits at positions below a head. One round trip finds the marks, and
// one the commits, unless commits without an event are between them.
func (l *Log) lookUp(ctx context.Context, tenantID string, h head, positions []int64) (events []Event, err error) {
	open := make([]*wanted, len(positions))
	var marks sqldb.Batch
	for i, p := range positions {
		open[i] = &wanted{position: p, after: h.floor}
		queueMark(&marks, tenantID, p, &open[i].after)
	}
	if err := l.db.Send(ctx, &marks); err != nil {
		return nil, err
	}
	for _, w := range open {
		w.commitEvent = w.after.commitEvents + w.position - w.after.position
	}
	for len(open) > 0 {
		var b sqldb.Batch
		for _, w := range open {
			queueCommits(&b, tenantID, w.after.revisionOf(w.commitEvent), h.revision, 1, &w.found)
		}
		if err := l.db.Send(ctx, &b); err != nil {
			return nil, err
		}
		open = slices.DeleteFunc(open, func(w *wanted) bool {
			if len(w.found) == 0 || w.found[0].commitEvents > w.commitEvent {
				return true // there is none
			}
			if w.after = w.found[0].mark(); w.after.commitEvents < w.commitEvent {
				return false
			}
			e := w.found[0].Event
			e.Position = w.position
			events = append(events, e)
			return true
		})
	}
	return events, nil
}
