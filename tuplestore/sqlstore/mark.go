package sqlstore

import (
	"crypto/rand"
	"slices"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// mark is a row which shows that an attempt was committed: a commit with an event, or a receipt. A
// receipt is written by one attempt only. A commit with the same event may be written by a later
// attempt for the same writes; that has a receipt, which is looked at before.
type mark struct {
	rev     tuplestore.Revision // of the commit
	event   string              // of the commit; empty: the mark is a receipt
	receipt string              // its ID
}

// mark returns the mark of the effects of the first attempt for some writes or of another one, after it
// has added a receipt if it needs one.
func (e *effects) mark(first bool, newest tuplestore.Revision, micros int64) *mark {
	if i := slices.IndexFunc(e.commits, func(c commitRow) bool { return c.event != "" }); first && i >= 0 {
		return &mark{rev: e.commits[i].Revision, event: e.commits[i].event}
	}
	m := &mark{receipt: rand.Text()}
	e.receipts = append(e.receipts, receiptRow{commitID: m.receipt, hash: []byte{}, rev: newest, micros: micros})
	return m
}

// find queues a read of the mark, and calls found if it exists.
func (m *mark) find(b *sqldb.Batch, tenant string, found func()) {
	scan := func(rows *sqldb.Rows) error {
		if rows.Next() {
			found()
		}
		return nil
	}
	if m.event != "" {
		b.Queue(`SELECT 1 FROM tenant_commits WHERE tenant_id = $1 AND rev = $2 AND event = $3`, []any{tenant, int64(m.rev), m.event}, scan)
		return
	}
	b.Queue(`SELECT 1 FROM tenant_receipts WHERE tenant_id = $1 AND commit_id = $2`, []any{tenant, m.receipt}, scan)
}
