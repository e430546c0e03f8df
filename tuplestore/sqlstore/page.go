package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/tuplestore"
)

// Page implements [tuplestore.Store]. The first fields of a filter select a range of an index;
// the others are compared with the rows of the range, of which one page examines only the next
// ones.
func (s *Store) Page(ctx context.Context, tenant string, f tuplestore.Filter, after *tuplestore.Record, limit, reads int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	f.Newest = false
	if f.Contiguous() {
		page, err = (&snapshot{s, s.DB, tenant, newest}).List(ctx, f, after, limit+1)
	} else {
		page, next, err = s.examine(ctx, tenant, f, after, limit+1, reads)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("page of tenant %s: %w", tenant, err)
	}
	if len(page) > limit {
		page = page[:limit]
		next = &page[limit-1]
	}
	return page, next, nil
}

// examine returns the tuples that match among the next ones of the index, in order, and the
// last one that was examined if more follow.
func (s *Store) examine(ctx context.Context, tenant string, f tuplestore.Filter, after *tuplestore.Record, limit, reads int) (found []tuplestore.Record, last *tuplestore.Record, err error) {
	sql, st := s.examination(tenant, f, after, limit, reads)
	rows, err := s.DB.Query(ctx, sql, st.args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k [6]string
		var r tuplestore.Record
		var rev, at int64
		var isLast int
		if err := rows.Scan(&k[0], &k[1], &k[2], &k[3], &k[4], &k[5], &r.Condition, &r.Context, &r.ExpiresAt, &rev, &at, &r.CreatedBy, &isLast); err != nil {
			return nil, nil, err
		}
		r.Tuple, r.CreatedRevision, r.CreatedAt = tuple(k), tuplestore.Revision(rev), instant(at)
		if isLast == 1 {
			last = &r
		} else {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, f.Compare)
	return found, last, rows.Err()
}

// examination builds the statement of examine: the rows that match among the next ones, and
// the last one of these, if there are so many. It examines the columns of the index only, and
// reads rows that match.
func (s *Store) examination(tenant string, f tuplestore.Filter, after *tuplestore.Record, limit, reads int) (string, *statement) {
	st := &statement{dialect: s.DB.Dialect(), args: []any{tenant}}
	index, places := indexFor(f), byObject
	var span, match strings.Builder // the conditions that select a range of the index, and rows of it
	switch index {
	case "by_subject":
		places = bySubject
		span.WriteString(" AND t.relation <> ''")
	case "usersets":
		span.WriteString(" AND t.subject_relation <> ''")
	}
	given := fields(f)
	prefix := slices.IndexFunc(places[:], func(i int) bool { return given[i] == "" })
	match.WriteString("TRUE")
	if f.Presence != tuplestore.WithPresence {
		match.WriteString(map[bool]string{false: " AND x.relation <> ''", true: " AND x.relation = ''"}[f.Presence == tuplestore.OnlyPresence])
	}
	var columns, from []string
	for n, i := range places {
		if n < prefix {
			fmt.Fprintf(&span, " AND t.%s = %s", keyColumns[i], st.arg(given[i]))
			continue
		}
		columns = append(columns, keyColumns[i])
		if after != nil {
			from = append(from, st.arg(key(after.Tuple)[i]))
		}
		if given[i] != "" {
			fmt.Fprintf(&match, " AND x.%s = %s", keyColumns[i], st.arg(given[i]))
		}
	}
	if after != nil {
		fmt.Fprintf(&span, " AND (%s) > (%s)", prefixed("t.", columns), strings.Join(from, ", "))
	}
	// The number of rows is in the text, so that the plan reflects it.
	next := fmt.Sprintf("SELECT %s FROM %s WHERE t.tenant_id = $1%s ORDER BY %s", keyList("t."), st.table(live, index), span.String(), prefixed("t.", columns))
	matching := fmt.Sprintf("(SELECT * FROM (%s LIMIT %d) AS x WHERE %s ORDER BY %s LIMIT %s) AS k", next, reads, match.String(), prefixed("x.", columns), st.arg(int64(limit)))
	return fmt.Sprintf(`SELECT %s, 0 AS last FROM %s UNION ALL SELECT k.*, '', '', 0, 0, 0, '', 1 FROM (%s LIMIT 1 OFFSET %d) AS k`,
		recordList("t."), st.lookup(matching, st.table(live, ""), "", keyColumns[:]), next, reads-1), st
}
