package sqlstore

import (
	"fmt"
	"slices"
	"sync"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
)

// effects are the changes of a group of writes to the tables.
type effects struct {
	created   []version                                // to live
	places    map[tuplestore.Tuple]int                 // in created; nil before the second commit
	sorted    bool                                     // created is
	deleted   map[tuplestore.Tuple]tuplestore.Revision // from live to history
	transient []transient                              // to history, created and deleted within the group
	commits   []commitRow
	receipts  []receiptRow
	schemas   []schemaRow
	attached  sqldb.Batch // by Attach
	others    bool        // an Also may have written
}

// version is one existence of a tuple: the change that created it, and its origin.
type version struct {
	*tuplestore.Change
	origin *origin
}

type origin struct {
	rev    tuplestore.Revision
	micros int64
	actor  string
}

type transient struct {
	version version
	end     tuplestore.Revision
}

type commitRow struct {
	tuplestore.Commit
	encoded func() (string, error) // its changes
	event   string
}

// manyChanges is the number of changes from which they are encoded while the rows are collected.
const manyChanges = 100

type receiptRow struct {
	commitID string
	hash     []byte
	rev      tuplestore.Revision
	result   string
	micros   int64
}

type schemaRow struct {
	rev      tuplestore.Revision
	document []byte
}

func (e *effects) empty() bool {
	return len(e.commits) == 0 && len(e.receipts) == 0 && e.attached.Len() == 0 && !e.others
}

// commit adds a write that takes a revision.
func (e *effects) commit(dialect sqldb.Dialect, rev tuplestore.Revision, micros int64, w tuplestore.Write, v *apply.Effect, event string) {
	if len(e.commits) > 0 && e.places == nil {
		e.places = make(map[tuplestore.Tuple]int, len(e.created)+len(v.Changes))
		for i, b := range e.created {
			e.places[b.Tuple] = i
		}
	}
	by := &origin{rev, micros, w.Actor}
	e.created = slices.Grow(e.created, len(v.Changes))
	for i := range v.Changes {
		c := &v.Changes[i]
		// A replaced qualifier ends one version and begins the next.
		if place, ok := e.places[c.Tuple]; ok {
			e.transient = append(e.transient, transient{e.created[place], rev})
			last := len(e.created) - 1
			e.created[place] = e.created[last]
			e.places[e.created[place].Tuple] = place
			e.created = e.created[:last]
			delete(e.places, c.Tuple)
		} else if c.Deleted || v.Updates[c.Tuple] {
			if e.deleted == nil {
				e.deleted = make(map[tuplestore.Tuple]tuplestore.Revision)
			}
			e.deleted[c.Tuple] = rev
		}
		if c.Deleted {
			continue
		}
		if e.places != nil {
			e.places[c.Tuple] = len(e.created)
		}
		e.created = append(e.created, version{c, by})
	}
	encoded := sync.OnceValues(func() (string, error) { return encodeChanges(v.Changes) })
	if len(v.Changes) >= manyChanges && dialect != sqldb.SQLite { // where the thread for commits must not wait for another
		go encoded()
	}
	row := commitRow{tuplestore.Commit{Revision: rev, At: instant(micros), Actor: w.Actor, Changes: v.Changes}, encoded, event}
	if v.PutsSchema {
		row.Schema = notNil(w.PutSchema)
		e.schemas = append(e.schemas, schemaRow{rev, w.PutSchema})
	}
	e.commits = append(e.commits, row)
}

func (e *effects) receipt(r *request, result tuplestore.Result, micros int64) {
	e.receipts = append(e.receipts, receiptRow{r.write.CommitID, r.hash, result.Revision, encodeResult(result), micros})
}

// batch returns the statements that write the effects, after the attached ones. commitEvents is how
// many commits have an event before.
func (e *effects) batch(dialect sqldb.Dialect, tenant string, commitEvents int64) (*sqldb.Batch, error) {
	b := &e.attached
	var failed error
	queue := func(sql func(s *statement) string) {
		s := aboutTuples(dialect, tenant)
		text := sql(s)
		if s.err != nil && failed == nil {
			failed = s.err
		}
		b.Queue(text, s.args, nil)
	}

	if len(e.deleted) > 0 {
		tuples := sortedKeys(e.deleted)
		ends := column{name: "deleted_rev"}
		for _, t := range tuples {
			ends.ints = append(ends.ints, int64(e.deleted[t]))
		}
		queue(func(s *statement) string {
			return fmt.Sprintf(`INSERT INTO %s (tenant_number, %s, deleted_rev) SELECT $1, %s, k.deleted_rev FROM %s`,
				history, recordList(""), recordList("t."), s.joined(s.table(live, ""), "", keysOf(tuples, key), ends))
		})
		queue(func(s *statement) string { return s.deleted(live, keysOf(tuples, key), 0) })
	}
	if len(e.transient) > 0 {
		columns := keysOf(e.transient, func(t transient) keyParts { return key(t.version.Tuple) })
		created := make([]version, len(e.transient))
		ends := column{name: "deleted_rev"}
		for i, t := range e.transient {
			created[i] = t.version
			ends.ints = append(ends.ints, int64(t.end))
		}
		insert(b, dialect, tenant, history, append(append(columns, columnsOf(created)...), ends))
	}
	if len(e.created) > 0 {
		if dialect == sqldb.SQLite { // on a server, to sort them takes longer than it saves
			e.sort()
		}
		insert(b, dialect, tenant, live, e.createdColumns())
	}
	if n := len(e.commits); n > 0 {
		revs, actors, times := make([]int64, n), make([]string, n), make([]int64, n)
		changes, events, counts := make([]string, n), make([]string, n), make([]int64, n)
		for i, c := range e.commits {
			if c.event != "" {
				commitEvents++
			}
			text, err := c.encoded()
			if err != nil {
				return nil, err
			}
			revs[i], actors[i], times[i], changes[i], events[i], counts[i] = int64(c.Revision), c.Actor, c.At.UnixMicro(), text, c.event, commitEvents
		}
		insert(b, dialect, tenant, "tenant_commits", []column{
			{name: "rev", ints: revs},
			{name: "actor", texts: actors, alike: true},
			{name: "committed_at", ints: times, alike: true},
			{name: "changes", texts: changes},
			{name: "event", texts: events},
			{name: "commit_events", ints: counts},
		})
	}
	for _, s := range e.schemas {
		b.Queue(`INSERT INTO tenant_schemas (tenant_id, rev, document) VALUES ($1, $2, $3)`,
			[]any{tenant, int64(s.rev), s.document}, nil)
	}
	if n := len(e.receipts); n > 0 {
		ids, hashes, revs := make([]string, n), make([][]byte, n), make([]int64, n)
		results, times := make([]string, n), make([]int64, n)
		for i, r := range e.receipts {
			ids[i], hashes[i], revs[i], results[i], times[i] = r.commitID, r.hash, int64(r.rev), r.result, r.micros
		}
		insert(b, dialect, tenant, "tenant_receipts", []column{
			{name: "commit_id", texts: ids},
			{name: "request_hash", bytes: hashes},
			{name: "rev", ints: revs},
			{name: "result", texts: results},
			{name: "committed_at", ints: times},
		})
	}
	return b, failed
}

// manyCreated is the number of rows from which they are copied. A copy takes a round trip more
// than a statement.
const manyCreated = 2000

// copied reports whether the live tuples are inserted by a copy, before the other statements.
// Those that delete must come first.
func (e *effects) copied(d sqldb.Dialect) bool {
	return d == sqldb.Postgres && len(e.created) >= manyCreated && len(e.deleted) == 0
}

// rows returns the live tuples to insert.
func (e *effects) rows(tenantNumber int64) []sqldb.CopyColumn {
	e.sort()
	columns := e.createdColumns()
	rows := []sqldb.CopyColumn{{Name: "tenant_number", Ints: slices.Repeat([]int64{tenantNumber}, columns[0].len())}}
	for _, c := range columns {
		rows = append(rows, sqldb.CopyColumn{Name: c.name, Texts: c.texts, Ints: c.ints})
	}
	return rows
}

// sort orders the live tuples by primary key, so that rows of the same page are written together. No
// commit may be added afterwards.
func (e *effects) sort() {
	if !e.sorted {
		slices.SortFunc(e.created, func(a, b version) int { return a.Tuple.Compare(b.Tuple) })
		e.sorted, e.places = true, nil
	}
}

// createdColumns returns the columns of the live tuples to insert.
func (e *effects) createdColumns() []column {
	return append(keysOf(e.created, func(v version) keyParts { return key(v.Tuple) }), columnsOf(e.created)...)
}

// columnsOf returns the columns of qualifiers and origins.
func columnsOf(created []version) []column {
	n := len(created)
	conditions, contexts, expiries := make([]string, n), make([]string, n), make([]int64, n)
	revs, at, by := make([]int64, n), make([]int64, n), make([]string, n)
	for i, b := range created {
		conditions[i], contexts[i], expiries[i] = b.Qualifier.Condition, b.Qualifier.Context, b.Qualifier.ExpiresAt
		revs[i], at[i], by[i] = int64(b.origin.rev), b.origin.micros, b.origin.actor
	}
	return []column{
		{name: qualifierColumns[0], texts: conditions, alike: true},
		{name: qualifierColumns[1], texts: contexts, alike: true},
		{name: qualifierColumns[2], ints: expiries, alike: true},
		{name: originColumns[0], ints: revs},
		{name: originColumns[1], ints: at, alike: true},
		{name: originColumns[2], texts: by, alike: true},
	}
}

// sortedKeys returns the keys in primary-key order, so that rows of the same page are
// written together.
func sortedKeys[V any](m map[tuplestore.Tuple]V) []tuplestore.Tuple {
	keys := make([]tuplestore.Tuple, 0, len(m))
	for t := range m {
		keys = append(keys, t)
	}
	slices.SortFunc(keys, tuplestore.Tuple.Compare)
	return keys
}
