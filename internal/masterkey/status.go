package masterkey

import (
	"context"
	"fmt"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// Use describes a key of a deployment.
type Use struct {
	ID      string
	InFile  bool
	Known   bool  // a process was started with it as its first key
	Newest  bool  // it was the last one for which that happened
	Retired bool  // it is refused
	Values  int64 // that are sealed under it
}

// Status describes the keys of a file in their order, then the other ones that processes have
// sealed under, the newest first. It counts the sealed values, which reads all of them. It fails
// with [seal.ErrWrongKey] or [ErrRetired].
func Status(ctx context.Context, db *sqldb.DB, key *seal.Key) (list []Use, err error) {
	known, err := records(ctx, db)
	if err != nil {
		return nil, err
	}
	if len(known) > 0 {
		if _, err := withRoot(key, known); err != nil {
			return nil, err
		}
	}
	for _, k := range all(key) {
		list = append(list, Use{ID: k.ID().String(), InFile: true})
	}
	for position, r := range known {
		i := 0
		for i < len(list) && list[i].ID != r.id {
			i++
		}
		if i == len(list) {
			list = append(list, Use{ID: r.id})
		}
		list[i].Known, list[i].Newest, list[i].Retired = true, position == 0, r.retired
	}
	for i := range list {
		id, err := seal.ParseKeyID(list[i].ID)
		if err != nil {
			return nil, err
		}
		low, high := id.Range()
		for _, c := range sealed {
			var n int64
			err := db.QueryRow(ctx, `SELECT count(*) FROM "`+c.table+`" WHERE "`+c.name+`" >= $1 AND "`+c.name+`" < $2`, low, high).Scan(&n)
			if err != nil {
				return nil, fmt.Errorf("count sealed values: %w", err)
			}
			list[i].Values += n
		}
	}
	return list, nil
}
