package masterkey

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

const (
	// pageSize is how many values are sealed again in one transaction.
	pageSize = 100
	// passEvery is the pause between passes.
	passEvery = time.Minute
)

// Rotation seals again what is sealed under the older keys of a file.
type Rotation struct {
	DB *sqldb.DB
	// Key is the first key of the file, with the others, and with the keys of imported tenants.
	Key    *seal.Key
	Logger *slog.Logger
}

// Run repeats passes until ctx ends, if the file has several keys.
func (r Rotation) Run(ctx context.Context) {
	if len(r.Key.Others()) == 0 {
		return
	}
	jobs.Loop{Name: "rotate master key", Every: passEvery, Logger: r.Logger}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		sealed, err := r.Pass(ctx)
		if err == nil && sealed > 0 {
			r.Logger.InfoContext(ctx, "sealed values again under the first master key", "values", sealed, "key", r.Key.ID().String())
		}
		return err
	}))
}

// Pass seals all values again that are sealed under another key of the file, if its first key is
// the newest one: while the files of processes differ in their order, values go in one direction.
// It returns how many values it has sealed. A value that cannot be opened stays as it is; the pass
// goes on, and fails at its end.
func (r Rotation) Pass(ctx context.Context) (done int, err error) {
	list, err := records(ctx, r.DB)
	if err != nil || len(list) == 0 || list[0].id != r.Key.ID().String() {
		return 0, err
	}
	tables, err := r.DB.TablesWith(ctx, "tenant_id")
	if err != nil {
		return 0, err
	}
	keys := map[string][]string{} // by table
	for _, t := range tables {
		keys[t.Name] = t.Key
	}
	unreadable := 0
	for _, c := range sealed {
		for _, old := range r.Key.Others() {
			n, bad, err := r.column(ctx, c, keys[c.table], old.ID())
			if done += n; err != nil {
				return done, fmt.Errorf("seal %s.%s again: %w", c.table, c.name, err)
			}
			unreadable += bad
		}
	}
	if unreadable > 0 {
		return done, fmt.Errorf("%d sealed values are damaged; they were left as they are", unreadable)
	}
	return done, nil
}

// row is a row with a value that is sealed under another key.
type row struct {
	key    []any // of the row in its table
	tenant string
	of     string
	old    []byte
}

// column seals the values of a column again that are sealed under a key, in the order of the rows.
func (r Rotation) column(ctx context.Context, c column, key []string, under seal.KeyID) (done, unreadable int, err error) {
	low, high := under.Range()
	var last []any
	for {
		rows, err := r.page(ctx, c, key, low, high, last)
		if err != nil || len(rows) == 0 {
			return done, unreadable, err
		}
		last = rows[len(rows)-1].key
		fresh := make([][]byte, len(rows))
		for i, row := range rows {
			plain, err := r.Key.Open(row.tenant, c.idOf(row.of), row.old)
			if err != nil {
				unreadable++
				continue
			}
			fresh[i] = r.Key.Seal(row.tenant, c.idOf(row.of), plain)
		}
		replaced := 0
		err = r.DB.Tx(ctx, func(tx *sqldb.Tx) error {
			replaced = 0
			for i, row := range rows {
				if fresh[i] == nil {
					continue
				}
				n, err := tx.Exec(ctx, c.replace(key), append([]any{fresh[i], row.old}, row.key...)...)
				if err != nil {
					return err
				}
				replaced += int(n)
			}
			return nil
		})
		if done += replaced; err != nil {
			return done, unreadable, err
		}
	}
}

// page reads the next rows, from memory when it returns.
func (r Rotation) page(ctx context.Context, c column, key []string, low, high []byte, last []any) (list []row, err error) {
	rows, err := r.DB.Query(ctx, c.page(key, len(last) > 0), append([]any{low, high, pageSize}, last...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one := row{key: make([]any, len(key))}
		var of any
		dest := []any{&one.tenant, &of, &one.old}
		for i := range one.key {
			dest = append(dest, &one.key[i])
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		switch of := of.(type) {
		case string:
			one.of = of
		case []byte:
			one.of = string(of)
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// page selects rows whose value is from $1 to before $2, at most $3, after the one with the key $4…
func (c column) page(key []string, after bool) string {
	names := `"` + strings.Join(key, `", "`) + `"`
	position := ""
	if after {
		position = fmt.Sprintf(` AND (%s) > (%s)`, names, places(4, len(key)))
	}
	return fmt.Sprintf(`SELECT tenant_id, "%[1]s", "%[2]s", %[3]s FROM "%[4]s" WHERE "%[2]s" >= $1 AND "%[2]s" < $2%[5]s ORDER BY %[3]s LIMIT $3`,
		c.of, c.name, names, c.table, position)
}

// replace replaces the value $2 of the row with the key $3… by $1.
func (c column) replace(key []string) string {
	var where strings.Builder
	for i, name := range key {
		fmt.Fprintf(&where, ` AND "%s" = $%d`, name, i+3)
	}
	return fmt.Sprintf(`UPDATE "%[1]s" SET "%[2]s" = $1 WHERE "%[2]s" = $2%[3]s`, c.table, c.name, where.String())
}

func places(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", first+i)
	}
	return strings.Join(list, ", ")
}
