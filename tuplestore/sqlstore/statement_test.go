package sqlstore

import (
	"reflect"
	"slices"
	"strconv"
	"testing"

	"stonetown/internal/pgtest"
)

// If there are few rows, a server gets the columns that are usually alike as values if all of them are
// alike, and as arrays otherwise, so that it prepares two statements at most.
func TestFewRowsAreRead(t *testing.T) {
	db := openDB(t, pgtest.URL(t))
	for i, c := range []struct {
		actors []string
		times  []int64
		arrays int
	}{
		{[]string{"ann", "ann", "ann"}, []int64{5, 5, 5}, 1},
		{[]string{"ann", "bob", "ann"}, []int64{5, 5, 5}, 3},
		{[]string{"ann", "ann", "ann"}, []int64{5, 5, 6}, 3},
	} {
		s := &statement{dialect: db.Dialect()}
		from := s.rows(column{name: "a", texts: []string{"x", "x", "x"}}, column{name: "b", texts: c.actors, alike: true}, column{name: "c", ints: c.times, alike: true})
		rows, err := db.Query(t.Context(), "SELECT k.a, k.b, k.c FROM "+from, s.args...)
		if err != nil {
			t.Fatal(err)
		}
		for row := range 3 {
			var a, b string
			var at int64
			if !rows.Next() || rows.Scan(&a, &b, &at) != nil || a != "x" || b != c.actors[row] || at != c.times[row] {
				t.Errorf("case %d, row %d: %q %q %d, %v", i, row, a, b, at, rows.Err())
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		arrays := 0
		for _, arg := range s.args {
			if reflect.TypeOf(arg).Kind() == reflect.Slice {
				arrays++
			}
		}
		if arrays != c.arrays {
			t.Errorf("case %d: %d arrays, want %d", i, arrays, c.arrays)
		}
	}
}

// Columns with one value in all rows are sent in another way if there are many rows.
func TestRowsAreRead(t *testing.T) {
	const many = 2 * manyRows
	same, numbers, texts := slices.Repeat([]string{"same"}, many), slices.Repeat([]int64{7}, many), make([]string, many)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := openDB(t, d.url(t))
			for _, c := range []struct {
				columns  []column
				distinct int
			}{
				{[]column{{name: "a", texts: same}}, 1},
				{[]column{{name: "a", texts: texts}}, many},
				{[]column{{name: "a", texts: same}, {name: "b", ints: numbers}}, 1},
				{[]column{{name: "b", ints: numbers}, {name: "a", texts: texts}, {name: "c", texts: same}}, many},
			} {
				s := &statement{dialect: db.Dialect()}
				from := s.rows(c.columns...)
				sum, want := "0", 0
				if slices.ContainsFunc(c.columns, func(c column) bool { return c.name == "b" }) {
					sum, want = "sum(k.b)", 7*many
				}
				var rows, distinct, of int
				err := db.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT k.a), "+sum+" FROM "+from, s.args...).Scan(&rows, &distinct, &of)
				if err != nil || rows != many || distinct != c.distinct || of != want {
					t.Errorf("%s: %d rows, %d of them different, sum %d, %v", from, rows, distinct, of, err)
				}
				arrays := 0
				for _, arg := range s.args {
					if reflect.TypeOf(arg).Kind() == reflect.Slice {
						arrays++
					}
				}
				if arrays > 1 {
					t.Errorf("%s: %d arrays, of which one differs at most", from, arrays)
				}
			}
		})
	}
}
