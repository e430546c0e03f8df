package sqlstore

import (
	"crypto/rand"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// mark is a row that only one attempt writes, which shows that it was committed: a commit with an
// event, or a receipt.
type mark struct {
	rev     tuplestore.Revision // of the commit
	event   string              // of the commit; empty: the mark is a receipt
	receipt string              // its ID
}

// mark returns the mark of the effects, after it has added a receipt if no commit has an event.
func (e *effects) mark(newest tuplestore.Revision, micros int64) *mark {
	for i := range e.commits {
		if c := &e.commits[i]; c.event != "" {
			return &mark{rev: c.Revision, event: c.event}
		}
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
