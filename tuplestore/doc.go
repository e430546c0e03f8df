// Package tuplestore stores relation tuples with their history. All data that decides access
// is a tuple of a tenant, or the tenant's schema document, at a revision. The package orders
// tuples in time. It does not interpret them and never reads a schema.
//
// This package has the types and the [Store] interface. Package memstore implements it in
// memory, package sqlstore on SQLite, PostgreSQL and CockroachDB, and package storetest is the
// conformance suite for both.
//
// # Revisions
//
// A tenant's history is a sequence of writes. Each write that changes something is one
// [Revision]: the first is 1, there are no gaps, and revision order is commit order. One
// number therefore identifies a state of a tenant: its tuples, its registered objects and its
// schema.
//
//	revision  write                                      tuples afterwards
//	0                                                    none
//	1         create doc:1#viewer@user:ann               ann
//	2         create doc:1#viewer@user:bob, put schema   ann, bob
//	3         delete doc:1#viewer@user:ann               bob
//	-         create doc:1#viewer@user:bob               bob (existed: still 3)
//
// The net effect counts. A tuple that a write creates and deletes, or deletes and creates
// again unchanged, does not change; it keeps its origin, and a write without other changes
// takes no revision. To put a schema document always takes a revision, because the store cannot
// compare the meaning of two documents.
//
// Revisions of different tenants are unrelated. Those of one tenant are comparable within an
// epoch ([Head.Epoch]). A restored backup goes back in time, so revisions issued after the
// backup was made would be issued again with another meaning. The restore therefore starts a new
// epoch.
//
// # Presence
//
// An object can be registered although no relation names it. That is a tuple, too: its
// [Presence], with an empty relation and an empty subject. Registration and deletion of objects
// are therefore part of the same history, and "this object does not exist" is as consistent as
// any other answer. Filters omit presences by default ([PresenceFilter]).
//
// # Qualifiers
//
// A tuple can have a [Qualifier]: it holds until an instant, or only while a condition is met.
// The qualifier is not part of the tuple's identity: the same tuple never exists with two
// qualifiers. To create a tuple that exists with another qualifier replaces the qualifier, which
// is a change. It ends one existence of the tuple and begins the next, with an origin of its
// own, so that every revision has the qualifier of its time.
//
//	revision  write                                       status   qualifier afterwards
//	4         create doc:1#viewer@user:cid, until noon    Created  until noon
//	-         create doc:1#viewer@user:cid, until noon    Existed  until noon
//	5         create doc:1#viewer@user:cid, if on_call    Updated  if on_call
//	6         delete doc:1#viewer@user:cid                Deleted
//
// The store does not read the clock: a tuple that has expired exists, is found and violates
// preconditions until it is deleted. Its readers decide whether it holds at their instant, and
// a writer can name an instant by which preconditions are judged ([Write.Now]).
//
// # Writes
//
// A [Write] is validated as a whole, at one point of the history:
//
//  1. If its commit ID is known, the result of the first write with this ID is returned, and
//     nothing else happens. The same ID on a write with other contents fails with
//     [ErrCommitIDReused].
//  2. If the schema is not the one by which the write was validated ([Write.IfSchema]), it
//     fails with [ErrSchemaChanged]. A writer that validates its tuples without a lock then
//     has to validate them again.
//  3. If a tuple exists that must be absent ([Write.Absent]), it fails with a
//     [*ConflictError]; if another precondition is not met ([Write.Preconditions]), with a
//     [*PreconditionError].
//  4. Its ops are applied in order, each to the result of the one before. To create a tuple
//     that exists changes at most its qualifier, to delete a missing one is a
//     [*ConflictError], to delete what matches a filter never fails. There are also ops that
//     require a new tuple, and that accept a missing one.
//  5. [Write.Also] adds the caller's own rows to the same transaction: rows that must not
//     exist without the tuples, nor the tuples without them. It may read, and refuse the write.
//  6. [Write.Attach] adds rows that cannot be refused, such as events and idempotency
//     records. It gets the result, and takes no round trip.
//  7. All of it commits, or none.
//
// When Write has returned, the write is durable, and part of every Head that any process on the
// same database reads afterwards. There is no delay and no cache in between.
//
// A refused write is not recorded; the same commit ID may be used again.
//
// # Queues and group commit
//
// All writes of a tenant lock the row of its head, and a durable commit takes the time of the
// disk and the network. Writes are therefore queued in the process, and one transaction commits
// a whole group of them. Each write is validated as if it were alone, after those before it, and
// has a revision and an error of its own. A write that fails does not affect the others of its
// group, even if a statement of its Also failed. Only a failing statement of Attach, which is
// sent together with those of all writes, fails the group.
//
// Writes to one resource (the object of the first op) commit in the order of their arrival, and
// the queue is fair between resources: a burst of writes to one resource delays only that
// resource. The queue is bounded for each resource and for the tenant. A write to a full queue
// fails at once with a [*BusyError]. A write whose context ends in the queue is withdrawn.
//
// # Snapshots and history
//
// A [Snapshot] is the state of a tenant at a revision, regardless of later writes. It holds no
// resource open. Each existence of a tuple with the same qualifier is the half-open interval of
// revisions [created, deleted), and a snapshot at r consists of those with
// created <= r < deleted. For the example above, SQL stores have
//
//	live table      doc:1#viewer@user:bob  created 2
//	history table   doc:1#viewer@user:ann  created 1  deleted 3
//	changelog       1 +ann    2 +bob    3 -ann
//
// Almost all reads are about the live table, which has no history. The history is kept for a
// retention time. Reads of an older revision fail with [ErrRevisionCollected], reads of a future
// one with [ErrRevisionUnknown]. No read ever answers for another revision than the requested
// one.
//
// Reads are designed for evaluation by level: [Snapshot.Find] answers for a whole frontier in
// one round trip, by the primary key, by an index of usersets, so that a group with a million
// members costs no more than the groups nested in it, and by an index of subjects, for reverse
// traversals.
//
// # Changelog
//
// [Store.Changes] is the history as a sequence of [Commit]. Caches, other processes and watchers
// follow it. What it returns after a revision begins with the next one, has no gaps, and
// includes every commit acknowledged before the call, up to the limit. A reader that has the
// state at r and applies the commits after r has the state at each of them. The newest commit is
// never collected; a follower that gets [ErrRevisionCollected], or another revision than the one
// after its own, must load a snapshot.
//
// # Failures
//
//   - The process ends: an acknowledged write is stored; another one is stored whole or not at
//     all.
//   - The connection is lost around COMMIT: the store looks up the write's commit ID instead of
//     sending the write again, so it is applied once. Only if the caller's context ends first is
//     the outcome unknown to the caller, which can then send the write again with the same ID.
//   - The database requires a retry: the group is validated again from the beginning. Also and
//     Attach may therefore run more than once.
//   - Two processes write to one tenant: the lock on the head row orders their groups. Fairness
//     and bounds hold within each process.
//
// # Text
//
// IDs, names, actors, commit IDs, contexts and documents are valid UTF-8 without NUL, compared
// byte by byte, and otherwise opaque. The store validates none of them; its callers do. Types
// and object IDs are not empty; relations and subjects are empty together, in presences only.
//
// # Not included
//
// Schemas, evaluation, authorization, caches, notification of changes, and transactions of
// several tenants.
package tuplestore
