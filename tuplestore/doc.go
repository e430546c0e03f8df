// Package tuplestore keeps relation tuples with their history. It is the
// ground the engine stands on: everything that decides access is a tuple of a
// tenant, or that tenant's schema document, at a revision. The package knows
// how tuples are ordered in time and nothing about what they mean: it never
// looks into a schema.
//
// This package holds the vocabulary and the [Store] interface. Package
// memstore implements it in memory, package sqlstore on SQLite, PostgreSQL and
// CockroachDB, and package storetest is the suite that both must pass.
//
// # Revisions
//
// A tenant's history is a sequence of writes. Each write that changes
// something is one [Revision]: the first is 1, there are no gaps, and revision
// order is commit order. So one number names everything that was ever true of
// a tenant: its tuples, its registered objects and its schema.
//
//	revision  write                                      tuples afterwards
//	0                                                    none
//	1         create doc:1#viewer@user:ann               ann
//	2         create doc:1#viewer@user:bob, put schema   ann, bob
//	3         delete doc:1#viewer@user:ann               bob
//	-         create doc:1#viewer@user:bob               bob (already so: still 3)
//
// What counts is the net effect. A tuple that a write creates and deletes, or
// deletes and creates again as it was, did not change; it keeps its origin, and
// a write of nothing else takes no revision. Putting a schema document always takes
// one, for the store cannot tell whether two documents mean the same.
//
// Revisions of different tenants have nothing to do with each other. Those of
// one tenant are comparable within an epoch ([Head.Epoch]): restoring a backup
// goes back in time, and numbers handed out after that backup was made would
// be given a second meaning. It therefore starts a new epoch.
//
// # Presence
//
// An object can be registered although no relation names it. That is a tuple
// too, [Presence], with an empty relation and an empty subject. Registration
// and deletion of objects are thereby part of the same history, and "there is
// no such object" is an answer as consistent as any other. Filters leave
// presences out unless they ask for them ([PresenceFilter]).
//
// # Qualifier
//
// A tuple can hold on [Qualifier]: until an instant, or only while a condition is
// met. They are a value that belongs to the tuple, and not a part of what it
// is: there is never the same tuple on two sets of qualifier. Creating it on others
// replaces them, which is a change like any other. It ends one existence of the
// tuple and begins the next, with an origin of its own, so that every revision
// has the qualifier of its time.
//
//	revision  write                                       status   qualifier afterwards
//	4         create doc:1#viewer@user:cid, until noon    Created  until noon
//	-         create doc:1#viewer@user:cid, until noon    Existed  until noon
//	5         create doc:1#viewer@user:cid, if on_call    Updated  if on_call
//	6         delete doc:1#viewer@user:cid                Deleted
//
// The store keeps qualifier and does not look at the clock: a tuple that has
// expired exists, is found and stands in the way of preconditions until it is
// deleted. Whether it counts is for its readers to say, who know what time it
// is for them.
//
// # Writes
//
// A [Write] is validated as a whole, at one point of the history:
//
//  1. Was its commit ID seen before? Then the first result is returned, and
//     nothing else happens. The same ID on a write with other contents fails
//     with [ErrCommitIDReused].
//  2. Is the schema the one it was validated by ([Write.IfSchema])? Otherwise it
//     fails with [ErrSchemaChanged]. This is how a writer that validated its
//     tuples without holding a lock learns that it must do so again.
//  3. Is there nothing that must be absent ([Write.Absent])? Otherwise it
//     fails with a [*ConflictError].
//  4. Its ops are applied one after the other, each to what the one before
//     left. Creating what exists changes nothing but its qualifier, deleting what is
//     missing is a [*ConflictError], deleting what matches a filter never fails.
//  5. [Write.Also] adds the caller's own rows to the same transaction: domain
//     rows that must not exist without the tuple nor the tuple without them. It
//     may read, and refuse the write.
//  6. [Write.Attach] adds rows that cannot be refused, such as events and
//     idempotency records. It knows the result, and costs no round trip.
//  7. All of it commits, or none.
//
// Once Write has returned, the write is durable and part of every Head, by any
// process on the same database, that is asked for afterwards. There is no
// delay and no cache in between.
//
// A refused write is not remembered; the same commit ID may be tried again.
//
// # Waiting and group commit
//
// All writes of a tenant meet at one point, the row that holds its head, and a
// durable commit takes as long as the disk and the network say. So writes
// queue in the process and one transaction carries a whole group of them.
// Callers do not notice: each write is validated as if it were alone, after those before it,
// has a revision of its own and an error of its own. One that fails leaves its
// neighbours as they are, even when it was a statement of Also that failed. Only
// a failing statement of Attach, which travels with those of all, takes the
// group down.
//
// Writes to one resource (the object of the first op) commit in the order in
// which they came, and resources take turns. A burst on one resource waits
// behind itself, not in front of others. Both the line of one resource and all
// lines of a tenant are bounded; who finds them full is refused at once with a
// [*BusyError]. A write whose context ends while it waits is withdrawn.
//
// # Snapshots and history
//
// A [Snapshot] is the tenant exactly as it was after a revision, whatever was
// written since. It holds nothing open: it is a revision and a promise. Each
// existence of a tuple with the same qualifier is the half-open interval of revisions
// [created, deleted), and a snapshot at r consists of those with
// created <= r < deleted. For the example above, SQL stores keep
//
//	live table      doc:1#viewer@user:bob  created 2
//	history table   doc:1#viewer@user:ann  created 1  deleted 3
//	changelog       1 +ann    2 +bob    3 -ann
//
// The live table is what almost all reads are about, and stays free of the
// past. The history is kept for a retention time; a revision that is older
// answers [ErrRevisionCollected], one that is still to come
// [ErrRevisionUnknown]. No read ever answers for another revision than the one
// asked for.
//
// Reads are made for evaluation in levels: [Snapshot.Find] takes a whole
// frontier and answers it in one round trip, through the primary key, an index
// of usersets, so that a group with a million members costs no more than the
// few groups nested in it, and an index of subjects, for those who walk from
// the subject to the objects.
//
// # Changelog
//
// [Store.Changes] is the history as a sequence of [Commit], and the one way by
// which caches, other nodes and watchers follow. What it returns after a
// revision begins with the next one, has no gaps, and includes every commit
// acknowledged before the call, up to the limit. Who has the state at r and
// applies the commits after r has the state at each of them. The newest commit
// is never collected; so a follower that is told [ErrRevisionCollected], or is
// given another revision than the one after its own, must load a snapshot.
//
// # When things fail
//
//   - The process dies: a write that was acknowledged is there; one that was
//     not is there as a whole or not at all.
//   - The connection is lost around COMMIT: the store looks for the write's
//     commit ID instead of sending it again, so it is applied once. Only when
//     the caller's context ends first is the outcome unknown to the caller,
//     who can then send the write again under the same ID.
//   - The database asks for a retry: the group is validated again from the
//     beginning, which is why Also and Attach may run more than once.
//   - Two processes write to one tenant: the head row's lock puts their groups
//     in sequence. Turns and bounds hold within each process.
//
// # Text
//
// Ids, names, actors, commit IDs, contexts and documents are valid UTF-8 without
// NUL, compared byte by byte, and otherwise opaque. The store checks none of them:
// what is allowed is for its callers to say. Types and object IDs are not
// empty; relations and subjects are empty together, in presences only.
//
// # What is not here
//
// No schema, no evaluation, no authorization, no caching, no notification of
// changes, and no transaction that spans tenants.
package tuplestore
