// Package sqlstore is the tuple store in a database: embedded SQLite,
// PostgreSQL or CockroachDB, told apart only by [sqldb.Dialect].
//
// # Rows
//
// Alice is made a viewer of a document by the third write of tenant t, and is
// removed by the fifth:
//
//	tenant_heads            t  rev=5
//	tenant_commits          t  rev=3  changes=[["doc","1","viewer","user","alice",""]]
//	tenant_commits          t  rev=5  changes=[["doc","1","viewer","user","alice","","-"]]
//	relation_tuple_history  t  doc 1 viewer user alice  created_rev=3 deleted_rev=5
//
// In between, her row was in relation_tuples, which holds what exists now. So a
// snapshot at revision r is the live rows with created_rev <= r and the history
// rows with created_rev <= r < deleted_rev, and never changes. Every read takes
// its rows and the tenant's head from one statement, and hence from one state
// of the database: it knows exactly whether r is collected or not yet there.
//
// # Writing
//
// All writers of a tenant update its row in tenant_heads first, and so take
// turns; revision order is commit order. Because that row is the bottleneck,
// writers wait in this process ([fairqueue]) and are committed in groups, each
// group in one READ COMMITTED transaction of two round trips:
//
//	BEGIN; lock the head; read receipts and all rows the group asks about
//	(validate each write in Go, in order; run its Also, ask its Attach)
//	run what is attached; write the net effects of all; set the head; COMMIT
//
// Each write still has a revision, a receipt and an error of its own. If an
// Also fails, the transaction is rolled back and the group is run again without
// that write.
//
// A tuple that is put with another qualifier moves to the history, like one that is
// deleted, and comes back with the new ones.
//
// # When a commit's outcome is unknown
//
// A connection can break after COMMIT was sent. Then the group is run again,
// as often as it takes: the lock on the head waits out the transaction that
// may be in flight, and the receipts, which commit together with the writes,
// tell which of them were applied. Nothing is ever replayed blindly.
//
// # On SQLite
//
// The process owns the file, and this package is the only one to write these
// tables. So it remembers every head, and knows without asking when there is
// nothing new. There must be one Store to a database.
package sqlstore
