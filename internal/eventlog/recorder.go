package eventlog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/groupcommit"
	"stonetown/internal/sqldb"
)

// commitTime bounds a commit, which does not end with the request that waits for it.
const commitTime = 30 * time.Second

// Recorder commits events that belong to no other change. Concurrent events share commits; see
// package groupcommit. It is safe for concurrent use.
type Recorder struct {
	commits *groupcommit.Committer[record]
}

// record holds the events of one call.
type record struct {
	tenantID string
	events   []Event
}

// NewRecorder returns a recorder for the logs in db.
func NewRecorder(db *sqldb.DB) *Recorder {
	return &Recorder{groupcommit.New(db, commitTime, appendRecords)}
}

// Record returns when the events are committed. If ctx ends first, they may be committed later.
func (r *Recorder) Record(ctx context.Context, tenantID string, events ...Event) error {
	if err := r.commits.Commit(ctx, record{tenantID, events}); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	return nil
}

// appendRecords appends events ordered by tenant, because the transaction locks the rows that
// order the tenants' logs.
func appendRecords(b *sqldb.Batch, records []record) {
	byTenant := func(a, b record) int { return strings.Compare(a.tenantID, b.tenantID) }
	for _, r := range slices.SortedStableFunc(slices.Values(records), byTenant) {
		Append(b, r.tenantID, r.events...)
	}
}
