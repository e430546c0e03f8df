package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Snapshot implements [tuplestore.Store].
func (s *Store) Snapshot(tenant string, rev tuplestore.Revision) tuplestore.Snapshot {
	return &snapshot{s, s.DB, tenant, rev}
}

// SnapshotIn implements [tuplestore.Store].
func (s *Store) SnapshotIn(tx *sqldb.Tx, tenant string) tuplestore.Snapshot {
	return &snapshot{s, tx, tenant, newest}
}

// newest represents the newest revision.
const newest tuplestore.Revision = math.MaxInt64

type snapshot struct {
	store  *Store
	db     querier
	tenant string
	rev    tuplestore.Revision
}

// querier is the database, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

func (sn *snapshot) Revision() tuplestore.Revision { return sn.rev }

// statement returns a statement whose $1 is the tenant, $2 the revision and $3 the tenant's number.
func (sn *snapshot) statement() *statement {
	return sn.store.statement(sn.tenant, sn.tenant, int64(sn.rev))
}

// headRow selects the head of the tenant as the first part of every statement's result,
// distinguished from tuples by its empty object. Its created_rev is the newest
// revision, its created_at the retention floor.
const headRow = `SELECT '' AS object, '' AS relation, '' AS subject, '' AS subject_relation,
	'' AS condition, '' AS context, 0 AS expires_at, rev AS created_rev, min_rev AS created_at, '' AS created_by FROM tenant_heads WHERE tenant_id = $1`

// The conditions for a row to belong to the snapshot. If the head is at the snapshot's
// revision, no history belongs to it, and the history is not read.
const (
	liveThen = ` AND t.created_rev <= $2`
	goneThen = ` AND t.created_rev <= $2 AND t.deleted_rev > $2 AND (SELECT rev FROM tenant_heads WHERE tenant_id = $1) > $2`
)

// check returns an error if the snapshot cannot be read, given the tenant's head.
func (sn *snapshot) check(head, floor tuplestore.Revision) error {
	switch {
	case sn.rev == newest:
		return nil
	case sn.rev > head:
		return tuplestore.ErrRevisionUnknown
	case sn.rev < floor:
		return tuplestore.ErrRevisionCollected
	}
	return nil
}

// Find implements [tuplestore.Snapshot].
func (sn *snapshot) Find(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	if len(l.Tuples)+len(l.Usersets)+len(l.All)+len(l.Naming) == 0 {
		return nil, nil
	}
	sql, s, err := sn.find(l)
	if err != nil {
		return nil, fmt.Errorf("find in tenant %s at %d: %w", sn.tenant, sn.rev, err)
	}
	found := make([]tuplestore.Fact, 0, len(l.Tuples))
	seen := make(map[tuplestore.Tuple]struct{}, len(l.Tuples))
	err = sn.records(ctx, s, sql, func(r tuplestore.Record) {
		if _, ok := seen[r.Tuple]; !ok {
			seen[r.Tuple] = struct{}{}
			found = append(found, r.Fact)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find in tenant %s at %d: %w", sn.tenant, sn.rev, err)
	}
	return found, nil
}

// find builds the statement of Find.
func (sn *snapshot) find(l tuplestore.Lookup) (string, *statement, error) {
	s := sn.statement()
	parts := s.parts(l)
	sql := sn.store.texts.of(textShape{ofFind, shapeOf(parts)}, func() string {
		var b strings.Builder
		b.WriteString(headRow)
		for _, p := range parts {
			// The history is selected in the same way.
			for _, from := range []struct{ table, then string }{{live, liveThen}, {history, goneThen}} {
				fmt.Fprintf(&b, ` UNION ALL SELECT %s, 0, 0, '' FROM %s`, factList("t."), s.selected(p, from.table, from.then))
			}
		}
		return b.String()
	})
	return sql, s, s.err
}

// part is a part of a lookup: the rows that equal one of its keys.
type part struct {
	kind    partKind
	first   int      // the place of its first argument
	columns []column // its keys
}

type partKind int

const (
	someTuples partKind = iota
	someUsersets
	allOfNodes
	namingObjects
	partKinds
)

// partIndexes has the index that serves each part, and the condition that the index requires.
var partIndexes = [partKinds]struct{ index, condition string }{
	someUsersets:  {"usersets", " AND t.subject_relation <> ''"},
	namingObjects: {"by_subject", " AND t.relation <> ''"},
}

// parts adds the keys of a lookup to the arguments.
func (s *statement) parts(l tuplestore.Lookup) []part {
	var parts []part
	add := func(kind partKind, columns []column) {
		if columns[0].len() > 0 {
			parts = append(parts, part{kind, len(s.args) + 1, columns})
			s.bind(columns)
		}
	}
	add(someTuples, keysOf(l.Tuples, key))
	add(someUsersets, keysOf(l.Usersets, nodeKey)[:2])
	add(allOfNodes, keysOf(l.All, nodeKey)[:2])
	add(namingObjects, keysOf(l.Naming, subjectKey)[2:3])
	return parts
}

// selected returns the rows t of a table that a part selects and that meet a condition.
func (s *statement) selected(p part, table, condition string) string {
	by := partIndexes[p.kind]
	return s.lookup(given(s.dialect, p.first, p.columns), s.table(table, by.index), by.condition+condition, namesOf(p.columns))
}

// Touched implements [tuplestore.Snapshot].
func (sn *snapshot) Touched(ctx context.Context, l tuplestore.Lookup) (tuplestore.Revision, error) {
	sql, s, err := sn.touched(l)
	if err != nil {
		return 0, fmt.Errorf("find changes of tenant %s up to %d: %w", sn.tenant, sn.rev, err)
	}
	var head, floor, rev tuplestore.Revision
	err = sn.db.QueryRow(ctx, sql, s.args...).Scan(&head, &floor, &rev)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return 0, fmt.Errorf("find changes of tenant %s up to %d: %w", sn.tenant, sn.rev, err)
	}
	return rev, sn.check(head, floor)
}

// touched builds the statement of Touched.
func (sn *snapshot) touched(l tuplestore.Lookup) (string, *statement, error) {
	s := sn.statement()
	parts := s.parts(l)
	sql := sn.store.texts.of(textShape{ofTouched, shapeOf(parts)}, func() string {
		selects := []string{"SELECT CASE WHEN $2 < 0 AND CAST($3 AS BIGINT) = 0 THEN 1 ELSE 0 END AS rev"} // as every part has both arguments
		for _, p := range parts {
			selects = append(selects,
				fmt.Sprintf(`SELECT t.created_rev FROM %s`, s.selected(p, live, " AND t.created_rev <= $2")),
				fmt.Sprintf(`SELECT CASE WHEN t.deleted_rev <= $2 THEN t.deleted_rev ELSE t.created_rev END FROM %s`, s.selected(p, history, " AND t.created_rev <= $2")))
		}
		return fmt.Sprintf(`SELECT h.rev, h.min_rev, (SELECT MAX(x.rev) FROM (%s) AS x) FROM tenant_heads AS h WHERE h.tenant_id = $1`, strings.Join(selects, " UNION ALL "))
	})
	return sql, s, s.err
}

// nodeKey is a node in the columns of a tuple, of which it fills two.
func nodeKey(n tuplestore.Node) keyParts {
	return keyParts{named(n.Object), n.Relation}
}

// subjectKey is an object in the column of a tuple's subject.
func subjectKey(o tuplestore.Object) keyParts { return keyParts{2: named(o)} }

// List implements [tuplestore.Snapshot].
func (sn *snapshot) List(ctx context.Context, f tuplestore.Filter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	sql, s, err := sn.list(f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list tenant %s at %d: %w", sn.tenant, sn.rev, err)
	}
	var found []tuplestore.Record
	if err := sn.records(ctx, s, sql, func(r tuplestore.Record) { found = append(found, r) }); err != nil {
		return nil, fmt.Errorf("list tenant %s at %d: %w", sn.tenant, sn.rev, err)
	}
	slices.SortFunc(found, f.Compare)
	return found[:min(limit, len(found))], nil
}

// list builds the statement of List.
func (sn *snapshot) list(f tuplestore.Filter, after *tuplestore.Record, limit int) (string, *statement, error) {
	s := sn.statement()
	direction, than := "", ">"
	if f.Newest {
		direction, than = " DESC", "<"
	}
	columns, values := order(f, after)
	var bound lowerBound
	if after != nil && len(columns) > 0 && !f.Newest {
		bound = lowerBound{columns[0], values[0].(string)}
	}
	filter := s.where(f, bound) + s.crowded(f, liveThen, goneThen)
	if after != nil && len(columns) > 0 {
		var list []string
		for _, v := range values {
			list = append(list, s.arg(v))
		}
		filter += fmt.Sprintf(" AND (t.%s) %s (%s)", strings.Join(columns, ", t."), than, strings.Join(list, ", "))
	} else if after != nil {
		filter += " AND FALSE" // f names one tuple, and after is it
	}
	orderBy := ""
	if len(columns) > 0 {
		orderBy = " ORDER BY t." + strings.Join(columns, direction+", t.") + direction
	}
	// A page of each table; both together contain the requested page.
	var b strings.Builder
	b.WriteString(headRow)
	most := s.arg(int64(limit))
	for _, from := range []struct{ table, then string }{{live, liveThen}, {history, goneThen}} {
		fmt.Fprintf(&b, ` UNION ALL SELECT * FROM (SELECT %s FROM %s WHERE %s%s%s%s LIMIT %s) AS page`,
			recordList("t."), s.table(from.table, indexFor(f)), s.ofTenant(from.table), filter, from.then, orderBy, most)
	}
	return b.String(), s, s.err
}

// order returns the columns by which f lists, without those that it fixes, and the values
// of a record in them. The database can seek in an index only by a comparison of columns
// that the filter does not fix.
func order(f tuplestore.Filter, at *tuplestore.Record) (columns []string, values []any) {
	if at == nil {
		at = &tuplestore.Record{}
	}
	if f.Newest {
		return []string{"created_rev", "object"}, []any{int64(at.CreatedRevision), key(at.Tuple)[0]}
	}
	places := byObject
	if f.BySubject() {
		places = bySubject
	}
	parts, fixed := key(at.Tuple), requirements(f)
	for _, i := range places {
		if fixed[i].value == "" {
			columns, values = append(columns, keyColumns[i]), append(values, parts[i])
		}
	}
	return columns, values
}

// Scan implements [tuplestore.Snapshot]. It reads a page ahead of its caller.
func (sn *snapshot) Scan(ctx context.Context, f tuplestore.Filter) iter.Seq2[tuplestore.Record, error] {
	return func(yield func(tuplestore.Record, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		type page struct {
			records []tuplestore.Record
			err     error
		}
		pages := make(chan page, 1)
		go func() {
			defer close(pages)
			var after *tuplestore.Record
			for {
				records, err := sn.List(ctx, f, after, sn.store.ScanPage)
				select {
				case pages <- page{records, err}:
				case <-ctx.Done():
					return
				}
				if err != nil || len(records) < sn.store.ScanPage {
					return
				}
				after = &records[len(records)-1]
			}
		}()
		defer func() {
			cancel()
			for range pages { // until no goroutine reads from the database
			}
		}()
		for p := range pages {
			if p.err != nil {
				yield(tuplestore.Record{}, p.err)
				return
			}
			for _, r := range p.records {
				if !yield(r, nil) {
					return
				}
			}
		}
		if err := ctx.Err(); err != nil {
			yield(tuplestore.Record{}, err)
		}
	}
}

// records runs a statement whose result is headRow and records.
func (sn *snapshot) records(ctx context.Context, s *statement, sql string, each func(tuplestore.Record)) error {
	rows, err := sn.db.Query(ctx, sql, s.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var head, floor tuplestore.Revision // 0 for a tenant without a row
	for rows.Next() {
		var k keyParts
		var r tuplestore.Record
		var rev, at int64
		if err := rows.Scan(&k[0], &k[1], &k[2], &k[3], &r.Condition, &r.Context, &r.ExpiresAt, &rev, &at, &r.CreatedBy); err != nil {
			return err
		}
		if k[0] == "" {
			head, floor = tuplestore.Revision(rev), tuplestore.Revision(at)
			continue
		}
		r.Tuple, r.CreatedRevision, r.CreatedAt = tuple(k), tuplestore.Revision(rev), instant(at)
		each(r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return sn.check(head, floor)
}

// Schema implements [tuplestore.Snapshot].
func (sn *snapshot) Schema(ctx context.Context) ([]byte, tuplestore.Revision, error) {
	document, rev, err := sn.schema(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read schema of tenant %s at %d: %w", sn.tenant, sn.rev, err)
	}
	return document, rev, nil
}

func (sn *snapshot) schema(ctx context.Context) ([]byte, tuplestore.Revision, error) {
	var head, floor tuplestore.Revision
	var rev *int64
	var document []byte
	err := sn.db.QueryRow(ctx, `
		SELECT h.rev, h.min_rev, s.rev, s.document
		FROM tenant_heads h
		LEFT JOIN tenant_schemas s ON s.tenant_id = h.tenant_id
			AND s.rev = (SELECT MAX(rev) FROM tenant_schemas WHERE tenant_id = $1 AND rev <= $2)
		WHERE h.tenant_id = $1`, sn.tenant, int64(sn.rev)).
		Scan(&head, &floor, &rev, &document)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return nil, 0, err
	}
	if err := sn.check(head, floor); err != nil {
		return nil, 0, err
	}
	if rev == nil {
		return nil, 0, nil
	}
	return notNil(document), tuplestore.Revision(*rev), nil
}
