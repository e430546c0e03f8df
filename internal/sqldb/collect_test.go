package sqldb

import (
	"slices"
	"strings"
	"testing"
)

// lines collects lines and inserts them as one text.
type lines []string

func (l *lines) Queue(_ Dialect, b *Batch) {
	b.Queue(`INSERT INTO notes (id, body) VALUES (9, $1)`, []any{strings.Join(*l, " ")}, nil)
}

// Callers share a collector, whose statements come after all others and are sent once.
func TestCollect(t *testing.T) {
	onEach(t, func(t *testing.T, db *DB) {
		exec(t, db, `CREATE TABLE notes (id INTEGER NOT NULL, body TEXT NOT NULL)`)
		type key struct{}
		var b Batch
		add := func(line string) {
			l := b.Collect(key{}, func() Collector { return new(lines) }).(*lines)
			*l = append(*l, line)
		}
		add("one")
		b.Queue(`INSERT INTO notes (id, body) VALUES (1, 'first')`, nil, nil)
		add("two")
		if b.Len() != 3 {
			t.Errorf("the batch has %d additions, want 3", b.Len())
		}
		err := db.Tx(t.Context(), func(tx *Tx) error {
			if err := tx.Send(t.Context(), &b); err != nil {
				return err
			}
			var after Batch
			after.Queue(`UPDATE notes SET body = body || '!' WHERE id = 9`, nil, nil)
			return tx.Send(t.Context(), &after)
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Texts(db.Query(t.Context(), `SELECT body FROM notes ORDER BY id`))
		if err != nil || !slices.Equal(got, []string{"first", "one two!"}) {
			t.Errorf("stored %q, %v", got, err)
		}
	})
}
