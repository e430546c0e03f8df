package sqlstore

import (
	"context"

	"stonetown/internal/sqldb"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
	"stonetown/tuplestore/readlease"
)

// attempt is one transaction for a group.
type attempt struct {
	store    *Store
	ctx      context.Context
	tenant   string
	group    []*request
	outcomes []outcome // of the writes that are decided, in the order of the group
	tx       *sqldb.Pipeline

	head     *tuplestore.Head   // nil for a tenant without a row
	from     *tip               // the state that the head is moved from; nil: the head is locked
	existing []tuplestore.Fact  // for the view, as it is read
	receipts map[string]receipt // by their IDs
	mark     *mark              // of this attempt; nil: no write without a commit ID changes anything
	found    map[*mark]bool     // marks of earlier attempts that were committed
	holders  []Holder
	notHeld  []readlease.NodeID // the holders that no longer held the tenant

	commitEvents int64 // how many commits have an event before the group
	committedAt  int64 // the time of the newest commit, in µs
	now          int64 // when the group is decided, in µs

	view    *apply.View
	effects effects
	last    *sqldb.Batch // the statements of the effects

	sequences map[string]bool // those that have ended in this group
}

// receipt is the stored result of a write that was applied before.
type receipt struct {
	hash   []byte
	result tuplestore.Result
}

// attempt runs one transaction for the group and returns the outcome of each. With an error
// there is none: either nothing was applied or, if it is an AmbiguousCommitError,
// everything or nothing. An [*alsoError] names the write to leave out. With supposeNew it
// reads only presences, not which relations exist; if one exists, the error is a violation
// of the primary key.
func (s *Store) attempt(l *tenantQueue, group []*request, supposeNew bool, told *revocations) (_ []outcome, err error) {
	a, end := s.newAttempt(context.Background(), l.tenant, group)
	defer func() { end(err) }()
	if err = a.begin(supposeNew); err != nil {
		return nil, err
	}
	defer a.tx.Rollback()

	if err := a.decide(); err != nil {
		return nil, err
	}
	if a.effects.empty() {
		told.release(a.head.Revision) // of earlier attempts, whose outcomes the receipts show
		return a.outcomes, nil
	}
	if supposeNew && len(group) == 1 {
		s.plan(l, a)
	}
	if err := a.copy(); err != nil {
		return nil, err
	}
	return a.outcomes, a.commit(told)
}

// newAttempt returns an attempt without a transaction. end releases what it holds.
func (s *Store) newAttempt(ctx context.Context, tenant string, group []*request) (a *attempt, end func(error)) {
	ctx, span := tracing.StartShared(ctx, "tuplestore.commit", func(yield func(context.Context) bool) {
		for _, r := range group {
			if !yield(r.ctx) {
				return
			}
		}
	})
	span.Int("stonetown.writes", len(group))
	ctx, cancel := context.WithTimeout(ctx, s.CommitTimeout)
	return &attempt{store: s, ctx: ctx, tenant: tenant, group: group, receipts: make(map[string]receipt), found: make(map[*mark]bool)}, func(err error) {
		cancel()
		span.End(err)
	}
}

// copy inserts the live tuples if a copy is the way to do so.
func (a *attempt) copy() error {
	if !a.effects.copied(a.store.DB.Dialect()) {
		return nil
	}
	if err := a.tx.InsertMany(a.ctx, live, a.effects.rows(sqldb.TenantNumber(a.tenant))); err != nil {
		return err
	}
	a.effects.created = nil
	return nil
}

// encode makes the statements of everything that was decided and not copied, with those that move
// the head: they come first, with a guard, if the head is not locked yet.
func (a *attempt) encode() (err error) {
	if a.last, err = a.effects.batch(a.store.DB.Dialect(), a.tenant, a.commitEvents); err != nil || a.view.Head() == *a.head {
		return err
	}
	after := a.tip()
	args := []any{a.tenant, int64(after.head.Revision), int64(after.head.SchemaRevision), after.commitEvents, after.committedAt}
	const move = `UPDATE tenant_heads SET rev = $2, schema_rev = $3, commit_events = $4, committed_at = $5 WHERE tenant_id = $1`
	if a.from == nil {
		a.last.Queue(move, args, nil)
		return nil
	}
	// The second statement sees what was committed before the first had the lock.
	a.last.QueueFirst(`
		SELECT 1 / COUNT(*) FROM tenant_heads AS h WHERE h.tenant_id = $1 AND h.epoch = $2 AND h.rev = $3 AND h.committed_at = $4
			AND NOT EXISTS (SELECT 1 FROM tenant_leases AS l JOIN lease_nodes AS n ON n.node_id = l.node_id WHERE l.tenant_id = h.tenant_id)`,
		[]any{a.tenant, after.head.Epoch, int64(after.head.Revision), after.committedAt}, nil)
	a.last.QueueFirst(move+` AND epoch = $6 AND rev = $7 AND committed_at = $8`,
		append(args, a.from.head.Epoch, int64(a.from.head.Revision), a.from.committedAt), nil)
	return nil
}

// commit ends the transaction with everything that was decided.
func (a *attempt) commit(told *revocations) error {
	if a.view.Head() != *a.head {
		if err := a.revoke(told); err != nil {
			return err
		}
	}
	if a.last == nil {
		if err := a.encode(); err != nil {
			return err
		}
	}
	for _, node := range a.notHeld {
		a.last.Queue(`DELETE FROM tenant_leases WHERE tenant_id = $1 AND node_id = $2`, []any{a.tenant, string(node)}, nil)
	}
	if err := a.tx.Commit(a.ctx, a.last); err != nil {
		if a.mark != nil && asAmbiguous(err) {
			for i, r := range a.group {
				if r.write.CommitID == "" {
					r.sent = append(r.sent, sent{a.mark, a.outcomes[i]})
				}
			}
		}
		return err
	}
	if len(a.holders) > 0 { // other processes have read leases, and write
		a.store.recent.forget(a.tenant)
	} else if len(a.effects.commits) > 0 {
		a.store.recent.add(a.tenant, a.effects.commits, a.tip()) // before the head, of which they are the changes
	}
	if a.store.onlyWriter() {
		a.store.known.Store(a.tenant, a.view.Head())
	}
	told.release(a.view.Head().Revision)
	return nil
}

// tip returns the state that the attempt leaves.
func (a *attempt) tip() tip {
	t := tip{head: a.view.Head(), commitEvents: a.commitEvents, committedAt: a.committedAt}
	for i := range a.effects.commits {
		c := &a.effects.commits[i]
		t.committedAt = c.At.UnixMicro()
		if c.event != "" {
			t.commitEvents++
		}
	}
	return t
}
