package sqldb

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	err = db.catalog(ctx, func(table, key string) error {
		if n := len(list); n == 0 || list[n-1].Name != table {
			list = append(list, Table{Name: table})
		}
		t := &list[len(list)-1]
		t.Key = append(t.Key, key)
		return nil
	}, query, column)
	return list, err
}

// TenantTable is a table whose rows are of tenants.
type TenantTable struct {
	Table
	// Column names the tenant of a row: tenant_id, or tenant_number in tables without it.
	Column string
}

// Tenant returns the value of the column for a tenant.
func (t TenantTable) Tenant(id string) any {
	if t.Column == numberColumn {
		return TenantNumber(id)
	}
	return id
}

const (
	idColumn     = "tenant_id"
	numberColumn = "tenant_number"
)

// TenantTables lists the tables whose rows are of tenants, by name.
func (db *DB) TenantTables(ctx context.Context) (list []TenantTable, err error) {
	for _, column := range []string{idColumn, numberColumn} {
		tables, err := db.TablesWith(ctx, column)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			if !slices.ContainsFunc(list, func(have TenantTable) bool { return have.Name == t.Name }) {
				list = append(list, TenantTable{t, column})
			}
		}
	}
	slices.SortFunc(list, func(a, b TenantTable) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Type is the type of a column.
type Type string

// The types of columns that the product uses.
const (
	Text    Type = "text"
	Integer Type = "integer" // 64 bits
	Boolean Type = "boolean"
	Bytes   Type = "bytes"
)

// types are the names of the types in the catalogs, in lower case.
var types = map[string]Type{
	"text":   Text,
	"bigint": Integer, "integer": Integer, "smallint": Integer,
	"boolean": Boolean,
	"bytea":   Bytes, "blob": Bytes,
}

// Column is a column of a table.
type Column struct {
	Name     string
	Type     Type
	Nullable bool
}

// Columns lists the columns of a table, by name. It fails if one has a type that is not among the
// constants.
func (db *DB) Columns(ctx context.Context, table string) (list []Column, err error) {
	query := `
		SELECT column_name, data_type || CASE is_nullable WHEN 'YES' THEN '?' ELSE '' END FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 ORDER BY column_name`
	if db.Dialect() == SQLite {
		query = `SELECT name, type || CASE "notnull" WHEN 0 THEN '?' ELSE '' END FROM pragma_table_info($1) ORDER BY name`
	}
	err = db.catalog(ctx, func(column, declared string) error {
		declared, nullable := strings.CutSuffix(declared, "?")
		of, ok := types[strings.ToLower(declared)]
		if !ok {
			return fmt.Errorf("column %s.%s has the type %s", table, column, declared)
		}
		list = append(list, Column{column, of, nullable})
		return nil
	}, query, table)
	return list, err
}

// catalog reads two texts of each row.
func (db *DB) catalog(ctx context.Context, row func(a, b string) error, query, arg string) error {
	rows, err := db.Query(ctx, query, arg)
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return fmt.Errorf("read catalog: %w", err)
		}
		if err := row(a, b); err != nil {
			return fmt.Errorf("read catalog: %w", err)
		}
	}
	return rows.Err()
}
