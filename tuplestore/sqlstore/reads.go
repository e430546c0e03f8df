package sqlstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
)

// errNoHead: the head row, which was just inserted if missing, does not exist, because another tenant
// has the number of this one.
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
			INSERT INTO tenant_heads (tenant_id, tenant_number, epoch, rev, schema_rev, min_rev) VALUES ($1, $2, $3, 0, 0, 0)
			ON CONFLICT DO NOTHING`, a.tenant, sqldb.TenantNumber(a.tenant), rand.Text()); err != nil {
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
		}
		for _, s := range r.sent {
			if _, asked := a.found[s.mark]; !asked {
				a.found[s.mark] = false
				s.mark.find(b, a.tenant, func() { a.found[s.mark] = true })
			}
		}
	}
	if len(ids) > 0 {
		s := &statement{dialect: a.store.DB.Dialect(), args: []any{a.tenant}}
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
		b.Queue(fmt.Sprintf(`SELECT %s FROM %s WHERE %s%s`, factList("t."), s.table(live, indexFor(f)), s.ofTenant(live), s.where(f, lowerBound{})), s.args, a.readFacts)
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
		b.Queue(fmt.Sprintf(`SELECT %s FROM %s WHERE %s%s LIMIT %s`,
			factList("t."), s.table(live, indexFor(f)), s.ofTenant(live), s.where(f, lowerBound{})+s.crowded(f, ""), s.arg(int64(needs.AbsentLimit(known)))), s.args, a.readFacts)
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
	return fmt.Sprintf(`SELECT %s FROM %s WHERE %s%s AND (t.expires_at = 0 OR t.expires_at > %s)%s LIMIT %s`,
		factList("t."), s.table(live, indexFor(f)), s.ofTenant(live), s.where(f, lowerBound{}), s.arg(e.Now), orderBy, s.arg(int64(limit)))
}

func (a *attempt) statement() *statement { return a.store.statement(a.tenant) }

func (a *attempt) readFacts(rows *sqldb.Rows) error {
	for rows.Next() {
		var k keyParts
		var f tuplestore.Fact
		if err := rows.Scan(&k[0], &k[1], &k[2], &k[3], &f.Condition, &f.Context, &f.ExpiresAt); err != nil {
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
