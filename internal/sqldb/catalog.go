package sqldb

import (
	"context"
	"fmt"
)

// Table is a table of the database.
type Table struct {
	Name string
	Key  []string // the columns of its primary key
}

// Rows of a table with its key, by the position in it.
const (
	catalogSQLite = `
		SELECT m.name, k.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS k
		WHERE m.type = 'table' AND k.pk > 0 AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS c WHERE c.name = $1)
		ORDER BY m.name, k.pk`
	catalogPostgres = `
		SELECT k.table_name, k.column_name
		FROM information_schema.table_constraints AS p
		JOIN information_schema.key_column_usage AS k
			ON k.table_schema = p.table_schema AND k.table_name = p.table_name AND k.constraint_name = p.constraint_name
		JOIN information_schema.columns AS c ON c.table_schema = p.table_schema AND c.table_name = p.table_name
		WHERE p.table_schema = current_schema() AND p.constraint_type = 'PRIMARY KEY' AND c.column_name = $1
		ORDER BY k.table_name, k.ordinal_position`
)

// TablesWith lists the tables that have a column and a primary key, by name.
func (db *DB) TablesWith(ctx context.Context, column string) (list []Table, err error) {
	query := catalogPostgres
	if db.Dialect() == SQLite {
		query = catalogSQLite
	}
	rows, err := db.Query(ctx, query, column)
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, key string
		if err := rows.Scan(&table, &key); err != nil {
			return nil, fmt.Errorf("read catalog: %w", err)
		}
		if n := len(list); n == 0 || list[n-1].Name != table {
			list = append(list, Table{Name: table})
		}
		t := &list[len(list)-1]
		t.Key = append(t.Key, key)
	}
	return list, rows.Err()
}
