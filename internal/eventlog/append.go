package eventlog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/sqldb"
)

// appendKey is the key of the collector of a tenant's events.
type appendKey struct{ tenantID string }

// appending collects the events of a batch for the log of a tenant.
type appending struct {
	tenantID string
	events   []Event // with their revision; 0: that of the head
}

// add appends events that commit with a revision, 0 if they do not change relations.
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
// of the head before it advances, so they are appended by themselves. Where the head is ahead of
// the last event, all get the revision of the head.
func (a *appending) Queue(d sqldb.Dialect, b *sqldb.Batch) {
	first := 0
	for first < len(a.events) && a.events[first].Revision == 0 {
		first++
	}
	for _, events := range [][]Event{a.events[:first], a.events[first:]} {
		if len(events) == 0 {
			continue
		}
		b.Queue(advanceHead, []any{a.tenantID, int64(len(events)), events[len(events)-1].Revision}, nil)
		if d == sqldb.SQLite {
			a.queueSQLite(b, events)
		} else {
			a.queuePostgres(b, events)
		}
	}
}

// insertEvents inserts events before the head.
const insertEvents = `
	INSERT INTO events (tenant_id, position, id, type, occurred_at, origin, data, revision)
	SELECT h.tenant_id, h.position - k.back, k.id, k.type, k.occurred_at, k.origin, k.data, CASE WHEN h.revision > $2 THEN h.revision ELSE k.revision END
	FROM event_heads AS h CROSS JOIN unnest(CAST($3 AS BIGINT[]), CAST($4 AS TEXT[]), CAST($5 AS TEXT[]), CAST($6 AS BIGINT[]), CAST($7 AS TEXT[]), CAST($8 AS TEXT[]), CAST($9 AS BIGINT[]))
		AS k (back, id, type, occurred_at, origin, data, revision)
	WHERE h.tenant_id = $1`

func (a *appending) queuePostgres(b *sqldb.Batch, events []Event) {
	n := len(events)
	backs, times, revisions := make([]int64, n), make([]int64, n), make([]int64, n)
	ids, types, origins, data := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, e := range events {
		backs[i], ids[i], types[i], times[i] = int64(n-1-i), e.ID, string(e.Type), e.At.UnixMicro()
		origins[i], data[i], revisions[i] = e.Origin.text(), string(e.Data), e.Revision
	}
	b.Queue(insertEvents, []any{a.tenantID, events[n-1].Revision, backs, ids, types, times, origins, data, revisions}, nil)
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
		rows[i] = fmt.Sprintf(`($1, (SELECT position FROM event_heads WHERE tenant_id = $1) - %s, %s, %s, %s, %s, %s,
			COALESCE((SELECT revision FROM event_heads WHERE tenant_id = $1 AND revision > $2), %s))`,
			place(1), place(2), place(3), place(4), place(5), place(6), place(7))
	}
	return `INSERT OR ROLLBACK INTO events (tenant_id, position, id, type, occurred_at, origin, data, revision) VALUES ` + strings.Join(rows, ", ")
}

func (a *appending) queueSQLite(b *sqldb.Batch, events []Event) {
	n := len(events)
	args := func(first, count int) []any {
		args := append(make([]any, 0, 2+7*count), a.tenantID, events[n-1].Revision)
		for i, e := range events[first : first+count] {
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
func (o Origin) text() string {
	text, err := json.Marshal(o, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("eventlog: " + err.Error()) // a struct of text
	}
	return string(text)
}
