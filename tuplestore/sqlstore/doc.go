// Package sqlstore is the tuple store in a database: embedded SQLite, PostgreSQL or
// CockroachDB, which differ only by [sqldb.Dialect].
//
// # Rows
//
// Alice is made a viewer of a document by the third write of tenant t, and is
// removed by the fifth:
//
//	tenant_heads            t  rev=5
//	tenant_commits          t  rev=3  changes=[["doc","1","viewer","user","alice",""]]
//	tenant_commits          t  rev=5  changes=[["doc","1","viewer","user","alice","","-"]]
//	tuple_history           t  doc:1 viewer user:alice  created_rev=3 deleted_rev=5
//
// A commit also has the event of its write, if the write has one, for the event log; see
// [tuplestore.Write.Event].
//
// Rows of tuples name the tenant by its number ([sqldb.TenantNumber]), and objects and subjects by
// their text, type:id. That makes rows and index entries smaller, and most comparisons in an index
// are of the number and of one text. A type has no colon, so no two objects have the same text.
//
// Between the two, the row was in tuples, which has the live tuples. A snapshot at
// revision r consists of the live rows with created_rev <= r and the history rows with
// created_rev <= r < deleted_rev, and never changes. Every read gets its rows and the
// tenant's head from one statement, and therefore from one state of the database: whether r
// is collected or in the future is exact.
//
// # Writing
//
// All writes of a tenant lock its row in tenant_heads first, so revision order is commit
// order. Because that row is the bottleneck, writes are queued in this process
// ([fairqueue]) and committed in groups, each group in one READ COMMITTED transaction of
// two round trips:
//
//	BEGIN; lock the head; read receipts and all rows the group asks about
//	(validate each write in Go, in order; run its Also, ask its Attach)
//	run what is attached; write the net effects of all; set the head; COMMIT
//
// A group takes one round trip if the process knows what exists (known.go): its writes then come
// with what their callers have read at earlier revisions, and this process has made all commits
// since.
//
// Each write has a revision and an error of its own and, with a commit ID, a receipt. If an Also
// fails, the transaction is rolled back and the group is run again without that write.
//
// Bulk loads are prepared ahead, before they have the lock: while one commits, the next are decided
// on the state after it and, on PostgreSQL, copied. A load that was prepared for another state
// starts over.
//
// A tuple whose qualifier is replaced moves to the history, as a deleted one does, and is
// inserted again with the new qualifier.
//
// # When a commit's outcome is unknown
//
// A connection can break after COMMIT was sent. The group is then run again until the
// outcome is known: the lock on the head waits for the transaction that may be in progress,
// and rows that commit together with the writes show what was applied: the receipts and, for
// writes without a commit ID, whose outcomes are in memory, the first event of the transaction. If it
// has none, or is not the first attempt, it has one receipt for all of them.
// No write is repeated without this check. A transaction of one round trip may even begin later;
// then it finds another head than the one it requires, and fails.
//
// # Read leases
//
// Processes can hold leases of a tenant, under which they answer without asking what is the newest
// revision. A group that takes a revision reads the holders in its first batch, after the lock, and
// tells them before it commits ([Revoker]). It deletes the rows of those that do not answer, and
// waits until their leases have ended (package readlease).
//
// # On SQLite
//
// The process owns the file, and only this package writes these tables. It therefore keeps
// every head in memory, and needs no query to find that nothing is new. A database must
// have only one Store.
package sqlstore
