package sqlstore

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
)

// The usersets of a million-member group are read without its other members, a tuple or
// those of a subject without the whole tenant, and the uses of a condition without the
// whole type. That also holds while the planner's statistics say that the tables are empty,
// so the plans are tested twice.
func TestPlansUseIndexes(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		s := open(t, Config{DB: db})
		t.Run("empty", func(t *testing.T) { checkPlans(t, s) })
		if db.Dialect() != sqldb.SQLite {
			sqltest.UsesIndex(t, db, "tenant_commits_pkey", searchRevision, "t", int64(1))
		}
		var ops []tuplestore.Op
		for i := range 1500 {
			ops = append(ops,
				tuplestore.Op{Tuple: tuplestore.Presence(tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)})},
				tuplestore.Op{Tuple: tupleOf([6]string{"doc", fmt.Sprint(i), "viewer", "user", fmt.Sprint(i % 100), ""})},
				tuplestore.Op{Tuple: tupleOf([6]string{"group", "all", "member", "user", fmt.Sprint(i), ""})})
			if i%50 == 0 {
				ops[len(ops)-1].Qualifier.Condition = "on_call"
			}
		}
		for _, kind := range []tuplestore.OpKind{tuplestore.Create, tuplestore.Delete, tuplestore.Create} {
			for i := range ops {
				ops[i].Kind = kind
			}
			if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: ops}); err != nil {
				t.Fatal(err)
			}
		}
		t.Run("filled", func(t *testing.T) { checkPlans(t, s) })
		if db.Dialect() != sqldb.SQLite {
			exec(t, db, `ANALYZE`)
			t.Run("analyzed", func(t *testing.T) { checkPlans(t, s) })
		}
	})
}

func checkPlans(t *testing.T, s *Store) {
	someTuples := []tuplestore.Tuple{tupleOf([6]string{"doc", "1", "viewer", "user", "1", ""}), tupleOf([6]string{"doc", "2", "viewer", "user", "2", ""})}
	someObjects := []tuplestore.Object{someTuples[0].Subject.Object(), someTuples[1].Subject.Object()}
	someNodes := []tuplestore.Node{someTuples[0].Node(), someTuples[1].Node()}
	var members, viewed []tuplestore.Tuple // many that differ in one column
	for i := range 2 * manyRows {
		members = append(members, tupleOf([6]string{"group", "all", "member", "user", fmt.Sprint(i), ""}))
		viewed = append(viewed, tupleOf([6]string{"doc", fmt.Sprint(i), "viewer", "user", "1", ""}))
	}
	existing := func(tuples []tuplestore.Tuple) func() (string, *statement, error) {
		return func() (string, *statement, error) {
			st := s.statement("t")
			return `SELECT t.object FROM ` + st.joined(st.table(live, ""), "", keysOf(tuples, key)), st, st.err
		}
	}
	deletion := func(table string, tuples []tuplestore.Tuple) func() (string, *statement, error) {
		return func() (string, *statement, error) {
			st := s.statement("t")
			return st.deleted(table, keysOf(tuples, key), 1), st, st.err
		}
	}
	after := &tuplestore.Record{Fact: tuplestore.Fact{Tuple: someTuples[0]}, CreatedRevision: 1}
	sn := &snapshot{s, s.DB, "t", 0}
	page := func(f tuplestore.Filter) func() (string, *statement, error) {
		return func() (string, *statement, error) {
			sql, st := s.page("t", f, after, 10, 1000)
			return sql, st, st.err
		}
	}
	subject := []string{"tenant_number", "subject"}
	all := []string{"tenant_number", "object", "relation", "subject", "subject_relation"}
	precondition := func(f tuplestore.Filter) func() (string, *statement, error) {
		return func() (string, *statement, error) {
			st := s.statement("t")
			return st.existing(apply.Existing{Filter: f}, 1), st, st.err
		}
	}
	for _, c := range []struct {
		name    string
		build   func() (string, *statement, error)
		columns []string // that restrict each access to tuples
		index   string   // that is used, if required
	}{
		{"tuples", func() (string, *statement, error) { return sn.find(tuplestore.Lookup{Tuples: someTuples}) }, all, ""},
		{"usersets", func() (string, *statement, error) { return sn.find(tuplestore.Lookup{Usersets: someNodes}) }, all[:3], "_usersets"},
		{"all of nodes", func() (string, *statement, error) { return sn.find(tuplestore.Lookup{All: someNodes}) }, all[:3], ""},
		{"naming objects", func() (string, *statement, error) { return sn.find(tuplestore.Lookup{Naming: someObjects}) }, subject, "_by_subject"},
		{"whole objects", func() (string, *statement, error) {
			return sn.whole(tuplestore.Lookup{}, someObjects)
		}, all[:2], ""},
		{"list of an object", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}, after, 10)
		}, all[:2], ""},
		{"list of a subject", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{SubjectType: "user", SubjectID: "1"}, after, 10)
		}, subject, "_by_subject"},
		{"list of a subject in a type", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "doc", Relation: "viewer", SubjectType: "user", SubjectID: "1"}, after, 10)
		}, subject, "_by_subject"},
		{"list of a subject of an object", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "doc", ObjectID: "1", SubjectType: "user", SubjectID: "1"}, after, 10)
		}, append(subject, "object"), "_by_subject"},
		{"list of a type of subjects", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{SubjectType: "user"}, after, 10)
		}, subject, "_by_subject"},
		{"page of an object", page(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}), all[:3], ""},
		{"page of a subject", page(tuplestore.Filter{SubjectType: "user", SubjectID: "1"}), append(subject, "object"), "_by_subject"},
		{"page of a type of subjects", page(tuplestore.Filter{SubjectType: "user"}), subject, "_by_subject"},
		{"first page of a type", func() (string, *statement, error) {
			sql, st := s.page("t", tuplestore.Filter{ObjectType: "doc"}, nil, 10, 1000)
			return sql, st, st.err
		}, all[:2], ""},
		{"page of a type", page(tuplestore.Filter{ObjectType: "doc"}), all[:2], ""},
		{"page of a relation of a type", page(tuplestore.Filter{ObjectType: "doc", Relation: "viewer"}), all[:2], ""},
		{"page of a type of subjects in a type", page(tuplestore.Filter{ObjectType: "doc", SubjectType: "user"}), all[:2], ""},
		{"page of a type of subjects of an object", page(tuplestore.Filter{ObjectType: "doc", ObjectID: "1", SubjectType: "user"}), all[:3], ""},
		{"page of usersets in a type", page(tuplestore.Filter{ObjectType: "doc", SubjectRelation: "member"}), all[:2], "_usersets"},
		{"page of usersets of a node", page(tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "viewer", SubjectRelation: "member"}), all[:4], "_usersets"},
		{"page of a relation to a subject", page(tuplestore.Filter{Relation: "viewer", SubjectType: "user", SubjectID: "1"}), append(subject, "object"), "_by_subject"},
		{"page of a relation to a subject in a type", page(tuplestore.Filter{ObjectType: "doc", Relation: "viewer", SubjectType: "user", SubjectID: "1"}), append(subject, "object"), "_by_subject"},
		{"page of a relation to a userset", page(tuplestore.Filter{SubjectType: "group", SubjectID: "1", SubjectRelation: "member"}), append(subject, "object"), "_by_subject"},
		{"page of a relation to a type of subjects", page(tuplestore.Filter{Relation: "viewer", SubjectType: "user"}), subject, "_by_subject"},
		{"list of a condition", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "group", Condition: "on_call"}, nil, 10)
		}, []string{"tenant_number", "condition", "object"}, "_by_condition"},
		{"next page of a condition", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "group", Condition: "on_call"}, &tuplestore.Record{Fact: tuplestore.Fact{Tuple: members[1]}}, 10)
		}, []string{"tenant_number", "condition", "object"}, "_by_condition"},
		{"a condition that must be absent", func() (string, *statement, error) {
			st := s.statement("t")
			f := tuplestore.Filter{ObjectType: "group", Condition: "on_call", Presence: tuplestore.WithPresence}
			return `SELECT t.object FROM ` + st.table(live, indexFor(f)) + ` WHERE ` + st.ofTenant(live) + st.where(f, lowerBound{}) + ` LIMIT 1000`, st, st.err
		}, []string{"tenant_number", "condition", "object"}, "_by_condition"},
		{"crowded nodes", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "doc", Relation: "viewer", Crowded: true}, after, 10)
		}, all[:2], ""},
		{"list of new objects", func() (string, *statement, error) {
			return sn.list(tuplestore.Filter{ObjectType: "doc", Presence: tuplestore.OnlyPresence, Newest: true}, after, 10)
		}, all[:2], "_newest"},
		{"precondition of a node", precondition(tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "viewer", SubjectType: "user"}), all[:4], ""},
		{"precondition of a tuple", precondition(tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "viewer", SubjectType: "user", SubjectID: "1"}), all[:3], ""},
		{"precondition of a subject in a type", precondition(tuplestore.Filter{ObjectType: "doc", SubjectType: "user", SubjectID: "1"}), append(subject, "object"), "_by_subject"},
		{"precondition of a type of subjects", precondition(tuplestore.Filter{SubjectType: "user"}), subject, "_by_subject"},
		{"existing tuples of a write", existing(someTuples), all, ""},
		{"existing members", existing(members), all, ""},
		{"existing tuples of a subject", existing(viewed), all, ""},
		{"what has expired", func() (string, *statement, error) {
			sql, st := s.findExpired("t", 1)
			return sql, st, nil
		}, []string{"tenant_number", "expires_at"}, "_by_expiry"},
		{"tenants with tuples that have expired", func() (string, *statement, error) {
			return selectExpiring, &statement{dialect: s.DB.Dialect(), args: []any{"", int64(10), int64(1)}}, nil
		}, []string{"tenant_number"}, "_by_expiry"},
		{"deletion", deletion(live, someTuples), all, ""},
		{"deletion of members", deletion(live, members), all, ""},
		{"deletion of tuples of a subject", deletion(live, viewed), all, ""},
		{"collection", deletion(history, someTuples), all, ""},
		{"collection of members", deletion(history, members), all, ""},
		{"collection of tuples of a subject", deletion(history, viewed), all, ""},
	} {
		sql, st, err := c.build()
		if err != nil {
			t.Fatal(err)
		}
		accesses := explain(t, s.DB, sql, st.args)
		tables := strings.Count(sql, live+" AS t") + strings.Count(sql, history+" AS t")
		if len(accesses) < max(1, tables) {
			t.Errorf("%s: the plan shows too few accesses to tuples: %+v", c.name, accesses)
		}
		for _, access := range accesses {
			for _, column := range c.columns {
				if !regexp.MustCompile(`\b` + column + `\b`).MatchString(access.condition) {
					t.Errorf("%s: not restricted by %s: %+v", c.name, column, access)
				}
			}
			if c.index != "" && !strings.HasSuffix(access.index, c.index) && !oneTuple.MatchString(access.condition) {
				t.Errorf("%s: does not use an index %s: %+v", c.name, c.index, access)
			}
		}
		for _, compared := range afterRecord.FindAllStringSubmatch(sql, -1) {
			if s.DB.Dialect() == sqldb.SQLite && strings.Contains(sql, compared[1]+" >= ") {
				t.Errorf("%s: may begin before the record: %s", c.name, sql)
			}
		}
	}
}

// afterRecord matches a comparison with the columns of a record, and the first of these.
var afterRecord = regexp.MustCompile(`\((t\.\w+)[^()]*\) > \(`)

// oneTuple matches the condition of an access to the tuple of another row.
var oneTuple = regexp.MustCompile(`subject_relation( = \w+\.|=\?)`)

// access is how a plan accesses rows of the tables of tuples.
type access struct{ index, condition string }

func explain(t *testing.T, db *sqldb.DB, sql string, args []any) (accesses []access) {
	t.Helper()
	if db.Dialect() == sqldb.SQLite {
		rows, err := db.Query(t.Context(), "EXPLAIN QUERY PLAN "+sql, args...)
		if err != nil {
			t.Fatalf("%v: %s", err, sql)
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			// SEARCH t USING INDEX name (column=? AND column>?)
			if strings.HasPrefix(detail, "SEARCH t ") || strings.HasPrefix(detail, "SCAN t") || strings.HasPrefix(detail, "SEARCH tuple") {
				how, condition, _ := strings.Cut(detail, "(")
				fields := strings.Fields(how)
				accesses = append(accesses, access{fields[len(fields)-1], condition})
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return accesses
	}
	// The plan that prepared statements get, which depends on no argument.
	literals := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case []string:
			literals[i] = "ARRAY['" + strings.Join(arg, "','") + "']"
		case []int64:
			literals[i] = strings.ReplaceAll(fmt.Sprintf("ARRAY%d", arg), " ", ",")
		case string:
			literals[i] = "'" + arg + "'"
		default:
			literals[i] = fmt.Sprint(arg)
		}
	}
	var text string
	err := db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		if strings.Contains(sql, "AS last") || strings.Contains(sql, "expires_at = 0 OR") { // a page, or a precondition
			if _, err := tx.Exec(t.Context(), sqldb.IndexOrder); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(t.Context(), "PREPARE explained AS "+sql); err != nil {
			return err
		}
		if err := tx.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE explained ("+strings.Join(literals, ",")+")").Scan(&text); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "DEALLOCATE explained")
		return err
	})
	if err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	plans[0].Plan.visit(func(n planNode) {
		switch {
		case strings.HasPrefix(n.Index, "tuple") && n.Type != "Bitmap Index Scan":
			accesses = append(accesses, access{n.Index, n.Cond})
		case strings.HasPrefix(n.Relation, "tuple") && n.Type != "ModifyTable" && n.Type != "Tid Scan":
			accesses = append(accesses, access{n.Type, n.Cond})
		case n.Type == "Bitmap Index Scan":
			accesses = append(accesses, access{n.Index, n.Cond})
		}
	})
	return accesses
}

type planNode struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Plans    []planNode
}

func (n planNode) visit(f func(planNode)) {
	f(n)
	for _, child := range n.Plans {
		child.visit(f)
	}
}
