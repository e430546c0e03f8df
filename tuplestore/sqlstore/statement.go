package sqlstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// statement is SQL under construction with its arguments. There are few different texts:
// they depend on which parts a request has, never on their sizes.
type statement struct {
	dialect sqldb.Dialect
	args    []any
	number  string // the place of the tenant's number, by which tuples name it
	err     error  // the first one
}

// statement is aboutTuples for the database of the store.
func (s *Store) statement(tenant string, args ...any) *statement {
	return aboutTuples(s.DB.Dialect(), tenant, args...)
}

// aboutTuples returns a statement about the tuples of a tenant, with the arguments that come first. The
// number of the tenant follows them.
func aboutTuples(dialect sqldb.Dialect, tenant string, args ...any) *statement {
	st := &statement{dialect: dialect, args: args}
	st.number = st.arg(sqldb.TenantNumber(tenant))
	return st
}

// arg adds an argument and returns its placeholder.
func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// column is one column of rows that are arguments of a statement.
type column struct {
	name  string
	texts []string // one of these
	ints  []int64
	bytes [][]byte // only of rows to insert
	alike bool     // usually, the rows of a group of writes have one value
}

func (c column) len() int { return max(len(c.texts), len(c.ints), len(c.bytes)) }

func (c column) value(row int) any {
	switch {
	case c.ints != nil:
		return c.ints[row]
	case c.bytes != nil:
		return c.bytes[row]
	default:
		return c.texts[row]
	}
}

// sqlType returns the type of the values on a server.
func (c column) sqlType() string {
	switch {
	case c.ints != nil:
		return "BIGINT"
	case c.bytes != nil:
		return "BYTEA"
	default:
		return "TEXT"
	}
}

// array returns the values as an argument of a server, at a place.
func (c column) array(place int) string { return fmt.Sprintf("CAST($%d AS %s[])", place, c.sqlType()) }

// isConstant reports whether all rows have the same value.
func (c column) isConstant() bool {
	for i := 1; i < c.len(); i++ {
		if c.bytes != nil || c.ints != nil && c.ints[i] != c.ints[0] || c.texts != nil && c.texts[i] != c.texts[0] {
			return false
		}
	}
	return true
}

// keyColumns name the parts of a tuple, in primary-key order.
var keyColumns = [4]string{"object", "relation", "subject", "subject_relation"}

// keyParts is a tuple in these columns.
type keyParts [len(keyColumns)]string

// qualifierColumns have a tuple's qualifier, originColumns its origin.
var (
	qualifierColumns = [3]string{"condition", "context", "expires_at"}
	originColumns    = [3]string{"created_rev", "created_at", "created_by"}
)

// keysOf returns the columns of a list of tuples.
func keysOf[T any](list []T, key func(T) keyParts) []column {
	columns := make([]column, len(keyColumns))
	values := make([]string, len(keyColumns)*len(list))
	for i, name := range keyColumns {
		columns[i] = column{name: name, texts: values[i*len(list) : (i+1)*len(list)]}
	}
	for row, item := range list {
		for i, part := range key(item) {
			columns[i].texts[row] = part
		}
	}
	return columns
}

// rows returns a table of the given rows, with the name k, for FROM. It has one argument
// per column or, on SQLite, one in total. If there are many rows, each column that has the same
// value in all of them is one value. A row-by-row list of values would be planned again for every
// length, and slowly.
func (s *statement) rows(columns ...column) string {
	differ, same := s.factored(columns)
	constants := make([]string, len(same))
	for i, c := range same {
		constants[i] = s.constant(c) + " AS " + c.name
	}
	first := len(s.args) + 1
	s.bind(differ)
	return given(s.dialect, first, differ, constants...)
}

// factored divides columns: those that differ between rows, and the others, which are one value. If
// none differs, the first one counts as different, because it has the number of rows. In a bulk
// load, most of the 12 columns of a tuple have one value. On SQLite, to parse them takes longer than
// to look the rows up; on PostgreSQL, each is an array to unnest.
func (s *statement) factored(columns []column) (differ, same []column) {
	differs := func(c column) bool { return !c.isConstant() }
	switch n := columns[0].len(); {
	case s.dialect == sqldb.SQLite && n < fewRows:
		return columns, nil
	case s.dialect != sqldb.SQLite && n < manyRows:
		if slices.ContainsFunc(columns, func(c column) bool { return c.alike && differs(c) }) {
			return columns, nil
		}
		differs = func(c column) bool { return !c.alike }
	}
	anyDiffers := slices.ContainsFunc(columns, differs)
	for i, c := range columns {
		if differs(c) || !anyDiffers && i == 0 {
			differ = append(differ, c)
		} else {
			same = append(same, c)
		}
	}
	return differ, same
}

// constant returns the value of a column in all rows.
func (s *statement) constant(c column) string {
	if s.dialect == sqldb.SQLite {
		return s.arg(c.value(0))
	}
	return fmt.Sprintf("CAST(%s AS %s)", s.arg(c.value(0)), c.sqlType())
}

// fewRows and manyRows are the numbers of rows, on SQLite and on a server, from which a column with
// one value in all of them is one argument. A server prepares a statement for each set of such
// columns, so it needs more rows to be worth it; with fewer, the columns that are usually alike are
// arguments if all of them can be.
const fewRows, manyRows = 8, 50

// bind adds the arguments of rows.
func (s *statement) bind(columns []column) {
	if s.dialect == sqldb.SQLite {
		s.args = append(s.args, s.json(columns))
		return
	}
	for _, c := range columns {
		switch {
		case c.ints != nil:
			s.args = append(s.args, c.ints)
		case c.bytes != nil:
			s.args = append(s.args, c.bytes)
		default:
			s.args = append(s.args, c.texts)
		}
	}
}

// given returns a table of rows whose arguments begin at a place. The expressions in same are
// further columns, with one value in all rows. It depends on the names and types of the columns only.
func given(dialect sqldb.Dialect, first int, columns []column, same ...string) string {
	names, values := namesOf(columns), make([]string, len(columns))
	for i, c := range columns {
		switch {
		case dialect == sqldb.SQLite && len(columns) == 1:
			values[i] = "value AS " + c.name
		case dialect == sqldb.SQLite:
			values[i] = fmt.Sprintf("value->>%d AS %s", i, c.name)
		default:
			values[i] = c.array(first + i)
		}
	}
	switch {
	case dialect == sqldb.SQLite:
		return fmt.Sprintf("(SELECT %s FROM json_each($%d)) AS k", strings.Join(append(values, same...), ", "), first)
	case len(same) == 0:
		return fmt.Sprintf("unnest(%s) AS k (%s)", strings.Join(values, ", "), strings.Join(names, ", "))
	default:
		return fmt.Sprintf("(SELECT d.*, %s FROM unnest(%s) AS d (%s)) AS k", strings.Join(same, ", "), strings.Join(values, ", "), strings.Join(names, ", "))
	}
}

// json returns rows as an array of arrays or, if there is one column, of its values.
func (s *statement) json(columns []column) string {
	n := columns[0].len()
	b := make([]byte, 0, 16*n*len(columns)+2)
	b = append(b, '[')
	for row := range n {
		if row > 0 {
			b = append(b, ',')
		}
		if len(columns) > 1 {
			b = append(b, '[')
		}
		for i, c := range columns {
			if i > 0 {
				b = append(b, ',')
			}
			if c.ints != nil {
				b = strconv.AppendInt(b, c.ints[row], 10)
				continue
			}
			var err error
			if b, err = jsontext.AppendQuote(b, c.texts[row]); err != nil && s.err == nil {
				s.err = fmt.Errorf("%s %q: %w", c.name, c.texts[row], err)
			}
		}
		if len(columns) > 1 {
			b = append(b, ']')
		}
	}
	return string(append(b, ']'))
}

// joined returns the rows t of a table that equal one of the given rows k in the key
// columns and meet some conditions, each with AND before it.
func (s *statement) joined(table, conditions string, keys []column, more ...column) string {
	return s.lookup(s.rows(append(keys, more...)...), table, conditions, namesOf(keys))
}

func namesOf(columns []column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// lookup is joined for the rows k of an expression. Each is looked up in an index, regardless
// of the planner's statistics: SQLite has none and keeps the order of the statement, and
// PostgreSQL does not reorder LATERAL with OFFSET 0. It would otherwise plan for the empty
// table of its first statistics, and read the whole tenant for every row.
func (s *statement) lookup(given, table, conditions string, keys []string) string {
	var equal strings.Builder
	equal.WriteString(s.ofTenant(table))
	for _, name := range keys {
		fmt.Fprintf(&equal, " AND t.%s = k.%[1]s", name)
	}
	switch s.dialect {
	case sqldb.SQLite:
		return fmt.Sprintf("%s CROSS JOIN %s ON %s%s", given, table, equal.String(), conditions)
	case sqldb.Postgres:
		return fmt.Sprintf("%s CROSS JOIN LATERAL (SELECT *, ctid FROM %s WHERE %s%s OFFSET 0) AS t", given, table, equal.String(), conditions)
	default:
		return fmt.Sprintf("%s JOIN %s ON %s%s", given, table, equal.String(), conditions)
	}
}

// ofTenant returns the condition that a row of a table, as t, is one of the tenant.
func (s *statement) ofTenant(table string) string {
	if name, _, _ := strings.Cut(table, " "); hasTuples(name) {
		return "t.tenant_number = " + s.number
	}
	return "t.tenant_id = $1"
}

// hasTuples reports whether a table is one of those that name the tenant by its number.
func hasTuples(table string) bool { return table == live || table == history }

// insert queues the insertion of the given rows into a table. For one or two of them, such as a
// relation and the presence of its object, a server takes longer to unnest arrays than to insert.
func insert(b *sqldb.Batch, dialect sqldb.Dialect, tenantID, table string, columns []column) {
	tenant, by := any(tenantID), "tenant_id"
	if hasTuples(table) {
		tenant, by = sqldb.TenantNumber(tenantID), "tenant_number"
	}
	into := func(columns []column) string {
		return fmt.Sprintf("INTO %s (%s, %s)", table, by, strings.Join(namesOf(columns), ", "))
	}
	switch total := columns[0].len(); {
	case dialect == sqldb.SQLite:
		insertFew(b, tenant, "INSERT OR ROLLBACK "+into(columns), columns, 4*fewRows, fewRows, 1)
		return
	case total <= 2:
		insertFew(b, tenant, "INSERT "+into(columns), columns, total)
		return
	}
	// Arrays that are unnested together in the list of a SELECT yield a row at a time. In FROM, a
	// server writes the elements of each to a table first.
	s := &statement{dialect: dialect, args: []any{tenant}}
	differ, same := s.factored(columns)
	values := []string{"$1"}
	for i, c := range differ {
		values = append(values, fmt.Sprintf("unnest(%s)", c.array(len(s.args)+1+i)))
	}
	s.bind(differ)
	for _, c := range same {
		values = append(values, s.constant(c))
	}
	b.Queue(fmt.Sprintf("INSERT %s SELECT %s", into(append(differ, same...)), strings.Join(values, ", ")), s.args, nil)
}

// insertFew inserts some rows at a time, the first of the sizes as long as so many are left, then
// the next one. It is the fast way on SQLite. With functions that parse JSON, SQLite copies each page before
// it changes it, to be able to undo the statement alone (as it would without OR ROLLBACK,
// but a failure ends the transaction anyway). And the driver takes time for each argument,
// more for each the more there are: a column with one value in all rows, as most are in a
// bulk load, is therefore one argument of the statement.
func insertFew(b *sqldb.Batch, tenant any, insert string, columns []column, sizes ...int) {
	total := columns[0].len()
	same := make([]bool, len(columns))
	differing := 0
	for i, c := range columns {
		if same[i] = total >= fewRows && c.isConstant(); !same[i] {
			differing++
		}
	}
	args := func(first, n int) []any {
		args := append(make([]any, 0, 1+len(columns)+n*differing), tenant)
		for row := first; row < first+n; row++ {
			for i, c := range columns {
				if row == first || !same[i] {
					args = append(args, c.value(row))
				}
			}
		}
		return args
	}
	text := func(n int) string {
		var s statement
		s.arg(tenant)
		places := make([]string, len(columns))
		rows := make([]string, n)
		for row := range rows {
			for i := range columns {
				if row == 0 || !same[i] {
					places[i] = s.arg(nil)
				}
			}
			rows[row] = "($1, " + strings.Join(places, ", ") + ")"
		}
		return insert + " VALUES " + strings.Join(rows, ", ")
	}
	first := 0
	for _, n := range sizes {
		if first+n > total {
			continue
		}
		sql := text(n)
		for ; first+n <= total; first += n {
			b.Queue(sql, args(first, n), nil)
		}
	}
}

// deleted returns the statement that deletes tuples from a table; from the history, those
// that ended by a revision. On PostgreSQL it names them by their ctid, for the reason given
// at joined.
func (s *statement) deleted(table string, keys []column, by tuplestore.Revision) string {
	ended := func(string) string { return "" }
	if table == history {
		place := s.arg(int64(by))
		ended = func(prefix string) string { return " AND " + prefix + "deleted_rev <= " + place }
	}
	if s.dialect == sqldb.Postgres {
		return fmt.Sprintf(`DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM %s))`,
			table, s.joined(s.table(table, ""), ended("t."), keys))
	}
	return fmt.Sprintf(`DELETE FROM %s WHERE tenant_number = %s AND (%s) IN (SELECT %s FROM %s)%s`,
		table, s.number, keyList(""), keyList("k."), s.rows(keys...), ended(""))
}

// table returns a table, as t, on SQLite with the index to use (any if empty). The others
// choose by statistics.
func (s *statement) table(name, index string) string {
	if index == "" || s.dialect != sqldb.SQLite {
		return name + " AS t"
	}
	return fmt.Sprintf("%s AS t INDEXED BY %s_%s", name, name, index)
}

const (
	live    = "tuples"
	history = "tuple_history"
)

// lowerBound is a condition that requires a column of t to be at least some text.
type lowerBound struct{ column, text string }

// where returns the conditions under which f selects t, each with AND before it, beside a lower bound
// that another condition sets, if any.
func (s *statement) where(f tuplestore.Filter, bound lowerBound) string {
	var b strings.Builder
	for i, part := range requirements(f) {
		if i == 0 && f.Newest {
			fmt.Fprintf(&b, " AND %s = %s", s.typeOf("t.object"), s.arg(f.ObjectType))
		} else if !part.any() {
			from := ""
			if bound.column == keyColumns[i] {
				from = bound.text
			}
			b.WriteString(" AND " + s.meets("t."+keyColumns[i], part, from))
		}
	}
	if f.SubjectRelation != "" {
		b.WriteString(" AND t.subject_relation <> ''") // as the index of usersets requires
	}
	if f.Condition != "" {
		fmt.Fprintf(&b, " AND t.condition = %s AND t.condition <> ''", s.arg(f.Condition))
	}
	if f.Presence == tuplestore.WithoutPresence || f.SubjectType != "" { // a presence has no subject
		b.WriteString(" AND t.relation <> ''")
	}
	if f.Presence == tuplestore.OnlyPresence {
		b.WriteString(" AND t.relation = ''")
	}
	if f.SubjectsOutside != nil {
		types, relations, wildcards := column{name: "type", texts: []string{}}, column{name: "relation", texts: []string{}}, column{name: "wildcard", ints: []int64{}}
		for _, shape := range f.SubjectsOutside {
			types.texts = append(types.texts, shape.Type)
			relations.texts = append(relations.texts, shape.Relation)
			wildcard := int64(0)
			if shape.Wildcard {
				wildcard = 1
			}
			wildcards.ints = append(wildcards.ints, wildcard)
		}
		fmt.Fprintf(&b, ` AND NOT EXISTS (SELECT 1 FROM %s
			WHERE k.type = %s AND k.relation = t.subject_relation
			AND k.wildcard = CASE WHEN t.subject = k.type || ':*' AND t.subject_relation = '' THEN 1 ELSE 0 END)`,
			s.rows(types, relations, wildcards), s.typeOf("t.subject"))
	}
	return b.String()
}

// crowded returns the condition of f.Crowded with AND before it. then has the conditions, for the
// alias t, under which a live tuple belongs to the snapshot, and gone those for one of the history;
// without them only live tuples count.
func (s *statement) crowded(f tuplestore.Filter, then string, gone ...string) string {
	if !f.Crowded {
		return ""
	}
	other := func(table, then string) string {
		return fmt.Sprintf(`EXISTS (SELECT 1 FROM %s AS o
			WHERE o.tenant_number = %s AND o.object = t.object AND o.relation = t.relation
			AND (o.subject, o.subject_relation) <> (t.subject, t.subject_relation)%s)`,
			table, s.number, strings.ReplaceAll(then, " t.", " o."))
	}
	conditions := other(live, then)
	for _, then := range gone {
		conditions += " OR " + other(history, then)
	}
	return " AND (" + conditions + ")"
}

// indexFor returns the index that serves f on SQLite; empty for the primary key.
func indexFor(f tuplestore.Filter) string {
	switch {
	case f.Newest:
		return "newest"
	case f.BySubject(), f.SubjectType != "" && f.SubjectID != "" && (f.ObjectID == "" || f.Relation == ""):
		return "by_subject"
	case f.ObjectID == "" && f.ObjectType != "" && f.Condition != "":
		return "by_condition"
	case f.ObjectType != "" && f.SubjectRelation != "" && f.SubjectID == "":
		return "usersets"
	default:
		return ""
	}
}

// The columns of the indexes of tuples, as places in keyColumns.
var (
	byObject  = [len(keyColumns)]int{0, 1, 2, 3}
	bySubject = [len(keyColumns)]int{2, 0, 1, 3}
)

// required is what a filter requires of a column: a value or, of an object or a subject, only its
// type or only its ID.
type required struct{ value, typ, id string }

func (r required) any() bool { return r == required{} }

// requirements returns what f requires of the columns of a tuple.
func requirements(f tuplestore.Filter) [len(keyColumns)]required {
	of := func(typ, id string) required {
		if typ == "" || id == "" && !strings.Contains(typ, ":") {
			return required{typ: typ, id: id}
		}
		return required{value: named(tuplestore.Object{Type: typ, ID: id})}
	}
	return [...]required{of(f.ObjectType, f.ObjectID), {value: f.Relation}, of(f.SubjectType, f.SubjectID), {value: f.SubjectRelation}}
}

// meets returns the condition that a column meets what a filter requires of it. If another condition
// requires it to be at least some text, that is from: of two such bounds SQLite searches by one, which
// may be the beginning of the type.
func (s *statement) meets(column string, r required, from string) string {
	switch {
	case r.value != "":
		return column + " = " + s.arg(r.value)
	case r.typ != "" && strings.HasPrefix(from, r.typ+":") && s.dialect == sqldb.SQLite:
		return fmt.Sprintf("%s < %s", column, s.arg(r.typ+";"))
	case r.typ != "": // a range of an index; a semicolon follows the colon
		return fmt.Sprintf("%s >= %s AND %s < %s", column, s.arg(r.typ+":"), column, s.arg(r.typ+";"))
	default:
		return fmt.Sprintf("SUBSTR(%s, LENGTH(%s) + 2) = %s", column, s.typeOf(column), s.arg(r.id))
	}
}

// typeOf returns the type of a column of objects or subjects.
func (s *statement) typeOf(column string) string {
	if s.dialect == sqldb.SQLite {
		return fmt.Sprintf("SUBSTR(%s, 1, INSTR(%[1]s, ':') - 1)", column)
	}
	return fmt.Sprintf("SPLIT_PART(%s, ':', 1)", column)
}

// keyList returns the columns of a tuple, each with a prefix.
func keyList(prefix string) string { return prefixed(prefix, keyColumns[:]) }

// factList returns the columns of a tuple and its qualifier.
func factList(prefix string) string {
	return keyList(prefix) + ", " + prefixed(prefix, qualifierColumns[:])
}

// recordList returns the columns of a tuple, its qualifier and its origin.
func recordList(prefix string) string {
	return factList(prefix) + ", " + prefixed(prefix, originColumns[:])
}

func prefixed(prefix string, columns []string) string {
	return prefix + strings.Join(columns, ", "+prefix)
}
