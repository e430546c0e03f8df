package sqlstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/internal/tracing"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
	"stonetown/tuplestore/readlease"
)

const (
	// maxRestarts bounds the retries of a group that the database requires.
	maxRestarts = 20
	// maxReconnects bounds the retries of a group after failed connections.
	maxReconnects = 5
)

// commit commits a group of writes and returns each its outcome. If the group was prepared ahead,
// that is its first attempt.
func (s *Store) commit(l *tenantQueue, group []*request, prepared *ahead) {
	tenant := l.tenant
	var ambiguous error // a commit was sent and its outcome is unknown
	told := &revocations{store: s, tenant: tenant}
	defer func() {
		if ambiguous == nil { // nothing was applied, or all is released
			told.release(0)
		}
	}()
	supposeNew := s.suggestsNew(group)
	var at tip
	var facts []tuplestore.Fact
	known := false
	if prepared == nil {
		at, facts, known = s.recent.known(tenant, group)
	}
	for restarts := 0; ; {
		var outcomes []outcome
		var err error
		ahead := prepared
		if prepared = nil; ahead != nil {
			outcomes, err = s.finish(ahead, told)
		} else if known {
			outcomes, err = s.attemptKnown(l, group, at, facts, told)
		} else {
			outcomes, err = s.attempt(l, group, supposeNew, told)
		}
		if err == nil {
			s.committed(l)
			for i, r := range group {
				r.deliver(outcomes[i])
			}
			return
		}
		s.dropAhead(l)
		if known {
			known = false
			if errors.Is(err, errOvertaken) {
				s.recent.pauseKnown(tenant)
			}
			if !asAmbiguous(err) {
				continue // the next attempt reads
			}
		}
		if ahead != nil && !asAmbiguous(err) && !sqldb.IsUniqueViolation(err) {
			continue // its state, its time or its connection may be over, those of the group are not
		}
		if supposeNew && sqldb.IsUniqueViolation(err) {
			supposeNew = false
			continue
		}
		if also, ok := errors.AsType[*alsoError](err); ok && !sqldb.IsRetryable(also.err) {
			also.request.deliver(outcome{err: also.err})
			if group = slices.DeleteFunc(group, func(r *request) bool { return r == also.request }); len(group) == 0 {
				return
			}
			continue
		}
		restarts++
		switch {
		case asAmbiguous(err):
			ambiguous = err
			s.Logger.Warn("outcome of a commit is unknown; reading it back", "tenant", tenant, "writes", len(group), "error", err)
		case ambiguous != nil && s.stop.Err() == nil:
			// The outcomes are unknown until the database answers.
		case ambiguous != nil:
			fail(group, ambiguous)
			return
		case sqldb.IsUnavailable(err) && restarts <= maxReconnects:
			// Nothing was applied, and another connection may work.
		case !sqldb.IsRetryable(err) || restarts >= maxRestarts:
			fail(group, fmt.Errorf("write to tenant %s: %w", tenant, err))
			return
		}
		select {
		case <-time.After(backoff(restarts)):
		case <-s.stop.Done():
		}
	}
}

// manyCreates is the number of ops from which a group counts as a bulk load.
const manyCreates = 100

// suggestsNew reports whether to assume that no relation of a group exists, which saves a
// quarter of the work of a bulk load. If one exists, the primary key is violated, and the
// group is attempted again with a read of the existing tuples. On a server that leaves dead
// rows, so the writes themselves must say that their relations are likely new.
func (s *Store) suggestsNew(group []*request) bool {
	n := 0
	for _, r := range group {
		if s.DB.Dialect() != sqldb.SQLite && !r.write.LikelyNew {
			return false
		}
		for _, op := range r.write.Ops {
			if op.Kind != tuplestore.Create || op.Others != tuplestore.KeepOthers {
				return false
			}
		}
		if len(r.write.Absent)+len(r.write.Preconditions) > 0 {
			return false
		}
		n += len(r.write.Ops)
	}
	return n >= manyCreates
}

func asAmbiguous(err error) bool {
	_, ok := errors.AsType[*sqldb.AmbiguousCommitError](err)
	return ok
}

// backoff returns a time that grows from about a millisecond to about a second.
func backoff(n int) time.Duration {
	return mathrand.N(2*time.Millisecond<<min(n, 9)) + time.Millisecond
}

func fail(group []*request, err error) {
	for _, r := range group {
		r.deliver(outcome{err: err})
	}
}

// attempt is one transaction for a group.
type attempt struct {
	store    *Store
	ctx      context.Context
	id       string // of the receipt of its writes that have no commit ID
	tenant   string
	group    []*request
	outcomes []outcome // of the writes that are decided, in the order of the group
	tx       *sqldb.Pipeline

	head     *tuplestore.Head   // nil for a tenant without a row
	from     *tip               // the state that the head is moved from; nil: the head is locked
	existing []tuplestore.Fact  // for the view, as it is read
	receipts map[string]receipt // by commit ID
	holders  []Holder
	notHeld  []readlease.NodeID // the holders that no longer held the tenant

	commitEvents int64 // how many commits have an event before the group
	committedAt  int64 // the time of the newest commit, in µs

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
	return &attempt{store: s, ctx: ctx, id: rand.Text(), tenant: tenant, group: group, receipts: make(map[string]receipt)}, func(err error) {
		cancel()
		span.End(err)
	}
}

// copy inserts the live tuples if a copy is the way to do so.
func (a *attempt) copy() error {
	if !a.effects.copied(a.store.DB.Dialect()) {
		return nil
	}
	if err := a.tx.InsertMany(a.ctx, live, a.effects.rows(a.tenant)); err != nil {
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
		if asAmbiguous(err) {
			for i, r := range a.group {
				r.sent = append(r.sent, sent{a.id, a.outcomes[i]})
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

// errNoHead: the head row, which was just inserted if missing, does not exist.
var errNoHead = errors.New("tenant has no head")

// begin opens the transaction, locks the tenant's head and reads the rows that validate the
// group.
func (a *attempt) begin(supposeNew bool) (err error) {
	writes := make([]tuplestore.Write, len(a.group))
	for i, r := range a.group {
		writes[i] = r.write
	}
	needsOf := apply.NeedsOf
	if supposeNew {
		needsOf = apply.NeedsOfNew
	}
	needs := needsOf(writes...)
	slices.SortFunc(needs.Tuples, tuplestore.Tuple.Compare) // neighbours share pages
	batch, err := a.reads(needs)
	if err != nil {
		return err
	}
	if a.tx, err = a.store.DB.Pipeline(a.ctx, batch); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.tx.Rollback()
		}
	}()
	if a.head == nil {
		if _, err := a.tx.Exec(a.ctx, `
			INSERT INTO tenant_heads (tenant_id, epoch, rev, schema_rev, min_rev) VALUES ($1, $2, 0, 0, 0)
			ON CONFLICT (tenant_id) DO NOTHING`, a.tenant, rand.Text()); err != nil {
			return err
		}
		if batch, err = a.reads(needs); err != nil {
			return err
		}
		if err := a.tx.Send(a.ctx, batch); err != nil {
			return err
		}
		if a.head == nil {
			return errNoHead
		}
	}
	a.view = apply.NewView(*a.head)
	a.view.Add(a.existing...)
	if len(needs.Matching) > 0 && len(needs.Absent)+len(needs.Existing) > 0 {
		// The limits depend on the number of tuples found above.
		batch := new(sqldb.Batch)
		a.existing = nil
		a.readPreconditions(batch, needs, a.view)
		if err := a.tx.Send(a.ctx, batch); err != nil {
			return err
		}
		a.view.Add(a.existing...)
	}
	return nil
}

// reads is the first batch of the transaction. The lock comes first, so that the other
// statements see all that was committed before.
func (a *attempt) reads(needs apply.Needs) (*sqldb.Batch, error) {
	b := new(sqldb.Batch)
	a.lock(b, ofTenant)
	return b, a.read(b, needs)
}

// Which head is locked: that of the tenant, or only if no other transaction has the lock.
const (
	ofTenant = "$1"
	freeHead = "(SELECT tenant_id FROM tenant_heads WHERE tenant_id = $1 FOR UPDATE SKIP LOCKED)"
)

// lock locks the head, and reads it and the holders of read leases.
func (a *attempt) lock(b *sqldb.Batch, which string) {
	b.Queue(`UPDATE tenant_heads SET rev = rev WHERE tenant_id = `+which+` RETURNING epoch, rev, schema_rev, commit_events, committed_at`,
		[]any{a.tenant}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				a.head = new(tuplestore.Head)
				if err := rows.Scan(&a.head.Epoch, &a.head.Revision, &a.head.SchemaRevision, &a.commitEvents, &a.committedAt); err != nil {
					return err
				}
			}
			return nil
		})

	a.readHolders(b)
}

// read reads the rows that validate a group.
func (a *attempt) read(b *sqldb.Batch, needs apply.Needs) error {
	var ids []string
	for _, r := range a.group {
		if r.write.CommitID != "" {
			ids = append(ids, r.write.CommitID)
			continue
		}
		for _, s := range r.sent {
			if !slices.Contains(ids, s.attempt) {
				ids = append(ids, s.attempt)
			}
		}
	}
	if len(ids) > 0 {
		s := a.statement()
		sql := fmt.Sprintf(`SELECT t.commit_id, t.request_hash, t.rev, t.result FROM %s`,
			s.joined("tenant_receipts AS t", "", []column{{name: "commit_id", texts: ids}}))
		b.Queue(sql, s.args, a.readReceipts)
	}
	if len(needs.Tuples) > 0 {
		s := a.statement()
		sql := fmt.Sprintf(`SELECT %s FROM %s`, factList("t."), s.joined(s.table(live, ""), "", keysOf(needs.Tuples, key)))
		if s.err != nil {
			return s.err
		}
		b.Queue(sql, s.args, a.readFacts)
	}
	for _, f := range needs.Matching {
		s := a.statement()
		f.Newest = false
		b.Queue(fmt.Sprintf(`SELECT %s FROM %s WHERE t.tenant_id = $1%s`, factList("t."), s.table(live, indexFor(f)), s.where(f)), s.args, a.readFacts)
	}
	if len(needs.Matching) == 0 {
		a.readPreconditions(b, needs, nil)
	}
	return nil
}

// readPreconditions reads the tuples that decide preconditions. The view has the tuples of the
// rest of the needs; it is nil if Matching is empty.
func (a *attempt) readPreconditions(b *sqldb.Batch, needs apply.Needs, view *apply.View) {
	known := len(needs.Tuples)
	if view != nil {
		known = view.Len()
	}
	for _, f := range needs.Absent {
		s := a.statement()
		f.Newest = false
		b.Queue(fmt.Sprintf(`SELECT %s FROM %s WHERE t.tenant_id = $1%s LIMIT %s`,
			factList("t."), s.table(live, indexFor(f)), s.where(f)+s.crowded(f, ""), s.arg(int64(needs.AbsentLimit(known)))), s.args, a.readFacts)
	}
	if len(needs.Existing) == 0 {
		return
	}
	b.InIndexOrder(a.store.DB.Dialect(), func() {
		for _, e := range needs.Existing {
			s := a.statement()
			b.Queue(s.existing(e, needs.ExistingLimit(e, view)), s.args, a.readFacts)
		}
	})
}

// existing returns the query for some of the tuples, the first ones of an index.
func (s *statement) existing(e apply.Existing, limit int) string {
	f := e.Filter
	f.Newest = false
	orderBy := ""
	if columns, _ := order(f, nil); len(columns) > 0 {
		orderBy = " ORDER BY " + prefixed("t.", columns)
	}
	return fmt.Sprintf(`SELECT %s FROM %s WHERE t.tenant_id = $1%s AND (t.expires_at = 0 OR t.expires_at > %s)%s LIMIT %s`,
		factList("t."), s.table(live, indexFor(f)), s.where(f), s.arg(e.Now), orderBy, s.arg(int64(limit)))
}

// statement returns a statement whose $1 is the tenant.
func (a *attempt) statement() *statement {
	return &statement{dialect: a.store.DB.Dialect(), args: []any{a.tenant}}
}

func (a *attempt) readFacts(rows *sqldb.Rows) error {
	for rows.Next() {
		var k [6]string
		var f tuplestore.Fact
		if err := rows.Scan(&k[0], &k[1], &k[2], &k[3], &k[4], &k[5], &f.Condition, &f.Context, &f.ExpiresAt); err != nil {
			return err
		}
		f.Tuple = tuple(k)
		a.existing = append(a.existing, f)
	}
	return nil
}

func (a *attempt) readReceipts(rows *sqldb.Rows) error {
	for rows.Next() {
		var id, text string
		var r receipt
		if err := rows.Scan(&id, &r.hash, &r.result.Revision, &text); err != nil {
			return err
		}
		var err error
		if r.result.Statuses, r.result.Counts, err = decodeResult(text); err != nil {
			return err
		}
		a.receipts[id] = r
	}
	return nil
}

// ended reports whether an earlier write of the sequence was not applied, in this group or before.
func (a *attempt) ended(r *request) error {
	if a.sequences[r.write.Turn.Key()] {
		return tuplestore.ErrSequenceEnded
	}
	return r.write.Turn.Err()
}

// end ends the sequence of a write for the group. Another attempt may apply the write.
func (a *attempt) end(r *request) {
	if key := r.write.Turn.Key(); key != "" {
		if a.sequences == nil {
			a.sequences = make(map[string]bool)
		}
		a.sequences[key] = true
	}
}

// earlier returns the outcome of a write that an earlier transaction decided and committed.
func (a *attempt) earlier(r *request) (outcome, bool) {
	if r.write.CommitID == "" {
		for _, s := range r.sent {
			if _, ok := a.receipts[s.attempt]; ok {
				if s.outcome.err != nil {
					a.end(r)
				}
				return s.outcome, true
			}
		}
		return outcome{}, false
	}
	earlier, ok := a.receipts[r.write.CommitID]
	if !ok {
		return outcome{}, false
	}
	if !bytes.Equal(earlier.hash, r.hash) {
		a.end(r)
		return outcome{err: tuplestore.ErrCommitIDReused}, true
	}
	earlier.result.Epoch = a.head.Epoch
	return outcome{result: earlier.result}, true
}

// decide determines the outcomes of all writes, in order. The error, if any, is that of the
// transaction.
func (a *attempt) decide() error {
	a.outcomes = make([]outcome, len(a.group))
	changed := false // by a write without a commit ID
	for i, r := range a.group {
		o, writes, err := a.decideOne(r)
		if err != nil {
			return err
		}
		a.outcomes[i] = o
		changed = changed || writes && r.write.CommitID == ""
	}
	if changed && !a.store.onlyWriter() { // only with a server can the outcome of a commit be unknown
		a.effects.receipts = append(a.effects.receipts, receiptRow{
			commitID: a.id, hash: []byte{}, rev: a.view.Head().Revision, micros: a.store.Clock().UnixMicro(),
		})
	}
	return nil
}

// decideOne determines the outcome of one write after those before it, and whether this attempt
// writes something for it.
func (a *attempt) decideOne(r *request) (_ outcome, writes bool, err error) {
	if o, ok := a.earlier(r); ok {
		return o, false, nil
	}
	if err := a.ended(r); err != nil {
		return outcome{err: err}, false, nil
	}
	effect, err := a.view.Validate(r.write)
	if err != nil {
		a.end(r)
		return outcome{err: err}, false, nil
	}
	if err := r.runAlso(a); err != nil {
		return outcome{}, false, &alsoError{r, err}
	}
	result := a.view.Accept(effect)
	now := a.store.Clock().UnixMicro()
	if effect.TakesRevision() {
		event, err := r.runEvent(result)
		if err != nil {
			return outcome{}, false, &alsoError{r, err}
		}
		a.committedAt = max(a.committedAt, now)
		if err := a.effects.commit(result.Revision, a.committedAt, r.write, effect, event); err != nil {
			return outcome{}, false, err
		}
	}
	attached := a.effects.attached.Len()
	if err := r.runAttach(result, &a.effects.attached); err != nil {
		return outcome{}, false, &alsoError{r, err}
	}
	writes = effect.TakesRevision() || r.write.Also != nil || a.effects.attached.Len() > attached
	if r.write.CommitID != "" {
		a.receipts[r.write.CommitID] = receipt{r.hash, result}
		a.effects.receipt(r, result, now)
	}
	if r.write.Also != nil {
		a.effects.others = true
	}
	return outcome{result: result}, writes, nil
}
