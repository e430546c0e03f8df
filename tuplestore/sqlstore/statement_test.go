package sqlstore

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
)

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
