package resources

import (
	"context"
	"strconv"
	"strings"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

func putAttributes(ctx context.Context, tx *sqldb.Tx, tenant string, o tuplestore.Object, attributes []byte, now time.Time) error {
	var value *string // NULL: cleared
	if attributes != nil {
		text := string(attributes)
		value = &text
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO resource_attributes (tenant_id, type, external_id, attributes, updated_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, type, external_id)
		DO UPDATE SET attributes = excluded.attributes, updated_at = excluded.updated_at`,
		tenant, o.Type, o.ID, value, now.UnixMicro())
	return err
}

func deleteAttributes(ctx context.Context, tx *sqldb.Tx, tenant string, o tuplestore.Object) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM resource_attributes WHERE tenant_id = $1 AND type = $2 AND external_id = $3`,
		tenant, o.Type, o.ID)
	return err
}

// eachAttributes reads the rows of a page of resources of one type.
func eachAttributes(ctx context.Context, db *sqldb.DB, tenant string, page []engine.Registration, row func(id string, attributes []byte, updatedAt time.Time) error) error {
	args := []any{tenant, page[0].Position.Object.Type}
	var places strings.Builder
	for i, r := range page {
		if i > 0 {
			places.WriteString(", ")
		}
		args = append(args, r.Object.ID)
		places.WriteString("$" + strconv.Itoa(len(args)))
	}
	rows, err := db.Query(ctx, `
		SELECT external_id, attributes, updated_at FROM resource_attributes
		WHERE tenant_id = $1 AND type = $2 AND external_id IN (`+places.String()+`)`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var attributes *string
		var updated int64
		if err := rows.Scan(&id, &attributes, &updated); err != nil {
			return err
		}
		var value []byte
		if attributes != nil {
			value = []byte(*attributes)
		}
		if err := row(id, value, time.UnixMicro(updated).UTC()); err != nil {
			return err
		}
	}
	return rows.Err()
}
