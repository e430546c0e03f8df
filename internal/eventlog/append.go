package eventlog

import (
	"fmt"
	"strconv"
	"strings"

	"stonetown/internal/document"
	"stonetown/internal/sqldb"
)

// appendKey is the key of the collector of a tenant's events.
type appendKey struct{ tenantID string }

// appending collects the events of a batch for the log of a tenant.
type appending struct {
	tenantID string
	events   []Event // with their revision; 0: the newest when they are appended
}

// add appends events that commit with a revision, 0 if there is none.
func (a *appending) add(revision int64, events []Event) {
	if n := len(a.events); n > 0 {
		revision = max(revision, a.events[n-1].Revision) // it never decreases
	}
	for _, e := range events {
		e.Revision = revision
		a.events = append(a.events, e)
	}
}

// Queue implements [sqldb.Collector]. Events before the first with a revision of its own get that
// one, because they commit with it.
func (a *appending) Queue(d sqldb.Dialect, b *sqldb.Batch) {
	n := len(a.events)
	last := a.events[n-1].Revision
	if last == 0 {
		queueAdvance(b, a.tenantID, n)
	} else {
		b.Queue(advanceTo, []any{a.tenantID, int64(n), last}, nil)
	}
	for i := n - 2; i >= 0; i-- {
		if a.events[i].Revision == 0 {
			a.events[i].Revision = a.events[i+1].Revision
		}
	}
	if d == sqldb.SQLite {
		a.queueSQLite(b)
	} else {
		a.queuePostgres(b)
	}
}

// queueAdvance queues the numbers of events: first those of all commits that have none, and then n
// more.
func queueAdvance(b *sqldb.Batch, tenantID string, n int) {
	b.Queue(advanceHead, []any{tenantID, int64(n)}, nil)
}

// insertEvents inserts events before the head. Each is preceded by the events of the commits up to
// its revision.
const insertEvents = `
	INSERT INTO events (tenant_id, position, id, type, occurred_at, origin, data, revision, commit_events)
	SELECT h.tenant_id, h.position - h.commit_events - k.back + COALESCE(c.commit_events, h.commit_events), k.id, k.type, k.occurred_at, k.origin, k.data,
		CASE WHEN k.revision = 0 THEN h.revision ELSE k.revision END, COALESCE(c.commit_events, h.commit_events)
	FROM event_heads AS h CROSS JOIN unnest(CAST($2 AS BIGINT[]), CAST($3 AS TEXT[]), CAST($4 AS TEXT[]), CAST($5 AS BIGINT[]), CAST($6 AS TEXT[]), CAST($7 AS TEXT[]), CAST($8 AS BIGINT[]))
		AS k (back, id, type, occurred_at, origin, data, revision)
	LEFT JOIN tenant_commits AS c ON c.tenant_id = h.tenant_id AND c.rev = k.revision
	WHERE h.tenant_id = $1`

func (a *appending) queuePostgres(b *sqldb.Batch) {
	n := len(a.events)
	backs, times, revisions := make([]int64, n), make([]int64, n), make([]int64, n)
	ids, types, origins, data := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, e := range a.events {
		backs[i], ids[i], types[i], times[i] = int64(n-1-i), e.ID, string(e.Type), e.At.UnixMicro()
		origins[i], data[i], revisions[i] = e.Origin.text(), string(e.Data), e.Revision
	}
	b.Queue(insertEvents, []any{a.tenantID, backs, ids, types, times, origins, data, revisions}, nil)
}

// fewEvents is how many events one statement inserts on SQLite; further ones are inserted one by
// one, so that there are two texts.
const fewEvents = 8

var insertFew, insertOne = insertSQLite(fewEvents), insertSQLite(1)

// insertSQLite returns the statement that inserts so many events before the head. OR ROLLBACK
// saves SQLite the copies of pages with which it could undo the statement alone.
func insertSQLite(n int) string {
	rows := make([]string, n)
	for i := range rows {
		place := func(column int) string { return "$" + strconv.Itoa(2+7*i+column) }
		rows[i] = fmt.Sprintf(`($1, (SELECT h.position - h.commit_events - %[1]s + COALESCE((SELECT commit_events FROM tenant_commits WHERE tenant_id = $1 AND rev = %[7]s), h.commit_events)
				FROM event_heads AS h WHERE h.tenant_id = $1), %[2]s, %[3]s, %[4]s, %[5]s, %[6]s,
			CASE WHEN %[7]s = 0 THEN (SELECT revision FROM event_heads WHERE tenant_id = $1) ELSE %[7]s END,
			COALESCE((SELECT commit_events FROM tenant_commits WHERE tenant_id = $1 AND rev = %[7]s), (SELECT commit_events FROM event_heads WHERE tenant_id = $1)))`,
			place(0), place(1), place(2), place(3), place(4), place(5), place(6))
	}
	return `INSERT OR ROLLBACK INTO events (tenant_id, position, id, type, occurred_at, origin, data, revision, commit_events) VALUES ` + strings.Join(rows, ", ")
}

func (a *appending) queueSQLite(b *sqldb.Batch) {
	n := len(a.events)
	args := func(first, count int) []any {
		args := append(make([]any, 0, 1+7*count), a.tenantID)
		for i, e := range a.events[first : first+count] {
			args = append(args, int64(n-1-first-i), e.ID, string(e.Type), e.At.UnixMicro(), e.Origin.text(), string(e.Data), e.Revision)
		}
		return args
	}
	first := 0
	for ; first+fewEvents <= n; first += fewEvents {
		b.Queue(insertFew, args(first, fewEvents), nil)
	}
	for ; first < n; first++ {
		b.Queue(insertOne, args(first, 1), nil)
	}
}

// text returns the stored form.
func (o Origin) text() string { return string(o.appendJSON(make([]byte, 0, usualOrigin))) }

// usualOrigin is enough for most stored forms, so that they are made on the stack.
const usualOrigin = 256

// appendJSON appends the form in which package json encodes the origin, without reflection.
func (o Origin) appendJSON(b []byte) []byte {
	b = append(b, '{')
	if o.Actor != (Actor{}) {
		b = document.AppendQuote(append(b, `"actor":{"type":`...), o.Actor.Type)
		b = document.AppendQuote(append(b, `,"id":`...), o.Actor.ID)
		b = append(b, '}')
	}
	for _, member := range [...]struct{ name, text string }{
		{`"client_id":`, o.ClientID}, {`"request_id":`, o.RequestID}, {`"client_ip":`, o.ClientIP},
	} {
		if member.text == "" {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = document.AppendQuote(append(b, member.name...), member.text)
	}
	return append(b, '}')
}
