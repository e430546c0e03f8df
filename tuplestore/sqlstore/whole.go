package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

var _ tuplestore.WholeFinder = (*snapshot)(nil)

// The rows of FindWhole have a place in front of the columns of a tuple: the kind of the row and,
// for an object, its number in the request.
const (
	headPlace   = iota // its number is the newest revision
	foundPlace         // a tuple of the lookup
	objectPlace        // a tuple of an object, without the object
	largerPlace        // an object with too many tuples
)

// FindWhole implements [tuplestore.WholeFinder]. It reads live tuples only: while the head is at
// the snapshot's revision, these are all. Tuples and head are read in one statement, which sees
// one state.
func (sn *snapshot) FindWhole(ctx context.Context, l tuplestore.Lookup, objects []tuplestore.Object) (tuplestore.Whole, error) {
	found, err := sn.findWhole(ctx, l, objects)
	if err != nil {
		return tuplestore.Whole{}, fmt.Errorf("find objects in tenant %s at %d: %w", sn.tenant, sn.rev, err)
	}
	return found, nil
}

func (sn *snapshot) findWhole(ctx context.Context, l tuplestore.Lookup, objects []tuplestore.Object) (found tuplestore.Whole, err error) {
	sql, s, err := sn.whole(l, objects)
	if err != nil {
		return found, err
	}
	rows, err := sn.db.Query(ctx, sql, s.args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	found.Objects = make([]tuplestore.WholeObject, len(objects))
	var head tuplestore.Revision // 0 for a tenant without a row
	for rows.Next() {
		var place, i int64
		var k keyParts
		var q tuplestore.Qualifier
		if err := rows.Scan(&place, &i, &k[0], &k[1], &k[2], &k[3], &q.Condition, &q.Context, &q.ExpiresAt); err != nil {
			return found, err
		}
		switch place {
		case headPlace:
			head = tuplestore.Revision(i)
		case foundPlace:
			found.Found = append(found.Found, tuplestore.Fact{Tuple: tuple(k), Qualifier: q})
		case objectPlace:
			f := tuplestore.Fact{Tuple: tuple(k), Qualifier: q}
			f.Object = objects[i]
			found.Objects[i].Facts = append(found.Objects[i].Facts, f)
		default:
			found.Objects[i].Larger = true
		}
	}
	if err := rows.Err(); err != nil {
		return found, err
	}
	if sn.rev > head {
		return found, tuplestore.ErrRevisionUnknown
	}
	if sn.rev < head {
		return tuplestore.Whole{}, nil
	}
	found.Newest = true
	for i := range found.Objects {
		if o := &found.Objects[i]; len(o.Facts) > tuplestore.MaxWhole {
			*o = tuplestore.WholeObject{Larger: true}
		}
	}
	return found, nil
}

// whole builds the statement of FindWhole.
func (sn *snapshot) whole(l tuplestore.Lookup, objects []tuplestore.Object) (string, *statement, error) {
	s := sn.store.statement(sn.tenant, sn.tenant)
	parts := s.parts(l)
	keys := append(keysOf(objects, objectKey)[:1], numbers(len(objects)))
	first := len(s.args) + 1
	s.bind(keys)
	sql := sn.store.texts.of(textShape{ofWhole, shapeOf(parts)}, func() string {
		const noTuple = `'' AS object, '' AS relation, '' AS subject, '' AS subject_relation, '' AS condition, '' AS context, 0 AS expires_at`
		from, bound := given(s.dialect, first, keys), fmt.Sprintf(" LIMIT %d", tuplestore.MaxWhole+1)
		var b strings.Builder
		if s.dialect != sqldb.Postgres { // which ends the search for each object; the others look for one too many first
			fmt.Fprintf(&b, `WITH asked AS MATERIALIZED (SELECT k.*, EXISTS (
				SELECT 1 FROM %s AS o WHERE o.tenant_number = %s AND o.object = k.object LIMIT 1 OFFSET %d) AS larger FROM %s) `,
				live, s.number, tuplestore.MaxWhole, from)
			from, bound = "asked AS k", " AND NOT k.larger"
		}
		fmt.Fprintf(&b, `SELECT %d AS place, rev AS i, %s FROM tenant_heads WHERE tenant_id = $1`, headPlace, noTuple)
		for _, p := range parts {
			fmt.Fprintf(&b, ` UNION ALL SELECT %d, 0, %s FROM %s`, foundPlace, factList("t."), s.selected(p, live, ""))
		}
		if s.dialect != sqldb.Postgres {
			fmt.Fprintf(&b, ` UNION ALL SELECT %d, k.i, %s FROM %s WHERE k.larger`, largerPlace, noTuple, from)
		}
		fmt.Fprintf(&b, ` UNION ALL SELECT %d, k.i, '', %s, %s FROM %s`, objectPlace,
			prefixed("t.", keyColumns[1:]), prefixed("t.", qualifierColumns[:]), s.lookup(from, s.table(live, ""), bound, namesOf(keys[:1])))
		return b.String()
	})
	return sql, s, s.err
}

// objectKey is an object in the columns of a tuple, of which it fills one.
func objectKey(o tuplestore.Object) keyParts { return keyParts{named(o)} }

// numbers returns a column with the numbers of rows.
func numbers(n int) column {
	c := column{name: "i", ints: make([]int64, n)}
	for i := range c.ints {
		c.ints[i] = int64(i)
	}
	return c
}
