package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stonetown/internal/groupcommit"
	"stonetown/internal/sqldb"
)

// ErrUsed is returned if another request has used a code or token first.
var ErrUsed = errors.New("the code or token was used concurrently")

// Use is the one use of a code or refresh token, which leads to a new refresh token. The zero
// value uses nothing.
type Use struct {
	update string // changes the row, unless it was used
	args   []any
	hash   string // of the code or token
}

// queue queues the use of the row. done is told whether it was its first.
func (u Use) queue(b *sqldb.Batch, done func(first bool) error) {
	b.Queue(u.update+` RETURNING 1`, u.args, func(rows *sqldb.Rows) error {
		first := rows.Next()
		if err := rows.Err(); err != nil {
			return err
		}
		return done(first)
	})
}

// Redeem uses a code or token and applies what successor queues, both or neither. It fails with
// [ErrUsed] if another request was first.
//
// Requests share commits, at READ COMMITTED: the update of a row waits for that of another
// request, and then finds the row used.
func (s *Store) Redeem(ctx context.Context, use Use, successor func(*sqldb.Batch)) error {
	c := &change{use: use, add: successor}
	if err := s.commits.Commit(ctx, c); err != nil {
		return err
	}
	if c.void {
		return ErrUsed
	}
	return nil
}

// commitTime bounds a shared commit, which does not end with the request that waits for it.
const commitTime = 30 * time.Second

// change is a change that shares its commit with others: a new grant with its code, or the use of
// a code.
type change struct {
	use  Use
	void bool // what is to be used was used before, so the change has no effect
	add  func(*sqldb.Batch)
	note noted // the row of authorizations of a new grant; zero: there is no grant
}

func (s *Store) newCommits() *groupcommit.Committer[*change] {
	return groupcommit.NewReadCommitted(s.db, commitTime, queueUses, s.queueChanges)
}

// queueUses queues the uses of some changes, in the order of the rows.
func queueUses(b *sqldb.Batch, changes []*change) {
	for _, c := range slices.SortedStableFunc(slices.Values(changes), func(a, b *change) int { return strings.Compare(a.use.hash, b.use.hash) }) {
		if c.void = false; c.use.update == "" {
			continue
		}
		c.use.queue(b, func(first bool) error {
			c.void = !first
			return nil
		})
	}
}

// queueChanges queues what follows from the uses. The rows of authorizations are the only ones
// that changes have in common; each is written once, and in the order of their keys.
func (s *Store) queueChanges(b *sqldb.Batch, changes []*change) {
	var notes []noted
	for _, c := range changes {
		if c.void {
			continue
		}
		c.add(b)
		if c.note != (noted{}) {
			notes = append(notes, c.note)
		}
	}
	slices.SortFunc(notes, noted.compare)
	for _, n := range slices.Compact(notes) {
		s.noteUse(b, n)
	}
}

// noted names a row of authorizations.
type noted struct{ tenantID, userID, clientID string }

func (n noted) compare(other noted) int {
	return strings.Compare(n.tenantID+" "+n.userID+" "+n.clientID, other.tenantID+" "+other.userID+" "+other.clientID)
}
