package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Page implements [tuplestore.Store]. The first fields of a filter select a range of an index;
// the others are compared with the rows of the range, of which one page examines only the next
// ones.
func (s *Store) Page(ctx context.Context, tenant string, f tuplestore.Filter, after *tuplestore.Record, limit, reads int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	sql, st := s.page(tenant, f, after, limit+1, reads)
	b := new(sqldb.Batch)
	b.InIndexOrder(st.dialect, func() {
		b.Queue(sql, st.args, func(rows *sqldb.Rows) error {
			for rows.Next() {
				var k keyParts
				var r tuplestore.Record
				var rev, at int64
				var isLast int
				if err := rows.Scan(&k[0], &k[1], &k[2], &k[3], &r.Condition, &r.Context, &r.ExpiresAt, &rev, &at, &r.CreatedBy, &isLast); err != nil {
					return err
				}
				r.Tuple, r.CreatedRevision, r.CreatedAt = tuple(k), tuplestore.Revision(rev), instant(at)
				if isLast == 1 {
					next = &r
				} else {
					page = append(page, r)
				}
			}
			return nil
		})
	})
	if err := s.DB.Send(ctx, b); err != nil {
		return nil, nil, fmt.Errorf("page of tenant %s: %w", tenant, err)
	}
	slices.SortFunc(page, f.Compare)
	if len(page) > limit {
		page = page[:limit]
		next = &page[limit-1]
	}
	return page, next, nil
}

// page builds the statement of Page: the rows that match among the next ones, and the last one
// of these, if there are so many. It examines the columns of the index only, and reads rows that
// match.
func (s *Store) page(tenant string, f tuplestore.Filter, after *tuplestore.Record, limit, reads int) (string, *statement) {
	st := s.statement(tenant)
	index, places := indexFor(f), byObject
	var span, match strings.Builder // the conditions that select a range of the index, and rows of it
	switch index {
	case "by_subject":
		places = bySubject
		span.WriteString(" AND t.relation <> ''")
	case "usersets":
		span.WriteString(" AND t.subject_relation <> ''")
	}
	switch f.Presence {
	case tuplestore.WithoutPresence:
		match.WriteString("x.relation <> ''")
	case tuplestore.OnlyPresence:
		match.WriteString("x.relation = ''")
	default:
		match.WriteString("TRUE")
	}
	given := requirements(f)
	prefix := 0
	for prefix < len(places)-1 && given[places[prefix]].value != "" {
		prefix++
	}
	var columns, from []string
	for n, i := range places {
		if n < prefix {
			span.WriteString(" AND " + st.meets("t."+keyColumns[i], given[i], ""))
			continue
		}
		columns = append(columns, keyColumns[i])
		if after != nil {
			from = append(from, st.arg(key(after.Tuple)[i]))
		}
		switch {
		case n == prefix && given[i].typ != "":
			at := ""
			if after != nil {
				at = key(after.Tuple)[i]
			}
			span.WriteString(" AND " + st.meets("t."+keyColumns[i], given[i], at))
		case !given[i].any():
			match.WriteString(" AND " + st.meets("x."+keyColumns[i], given[i], ""))
		}
	}
	if after != nil {
		fmt.Fprintf(&span, " AND (%s) > (%s)", prefixed("t.", columns), strings.Join(from, ", "))
	}
	next := fmt.Sprintf("SELECT %s FROM %s WHERE %s%s ORDER BY %s", keyList("t."), st.table(live, index), st.ofTenant(live), span.String(), prefixed("t.", columns))
	most := ""
	if !f.Contiguous() {
		most = fmt.Sprint(" LIMIT ", reads) // in the text, so that the plan reflects it
	}
	matching := fmt.Sprintf("(SELECT * FROM (%s%s) AS x WHERE %s ORDER BY %s LIMIT %s) AS k", next, most, match.String(), prefixed("x.", columns), st.arg(int64(limit)))
	sql := fmt.Sprintf("SELECT %s, 0 AS last FROM %s", recordList("t."), st.lookup(matching, st.table(live, ""), "", keyColumns[:]))
	if most != "" {
		sql += fmt.Sprintf(" UNION ALL SELECT k.*, '', '', 0, 0, 0, '', 1 FROM (%s LIMIT 1 OFFSET %d) AS k", next, reads-1)
	}
	return sql, st
}
