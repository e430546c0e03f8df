package sqlstore

import (
	"slices"
	"strconv"
	"testing"
)

// Columns with one value in all rows are sent in another way on SQLite.
func TestRowsAreRead(t *testing.T) {
	const many = 2 * fewRows
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
				var rows, distinct int
				err := db.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT k.a) FROM "+from, s.args...).Scan(&rows, &distinct)
				if err != nil || rows != many || distinct != c.distinct {
					t.Errorf("%s: %d rows, %d of them different, %v", from, rows, distinct, err)
				}
			}
		})
	}
}
