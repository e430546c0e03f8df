//go:build !js

package tuplestore

import "stonetown/internal/sqldb"

// Tx is a transaction of the database that has the tuples, and Batch is statements for one. A store
// in memory has neither.
type (
	Tx    = sqldb.Tx
	Batch = sqldb.Batch
)
