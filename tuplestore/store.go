package tuplestore

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// Revision is a tenant's position in its history. The first write is 1; a
// write that changes nothing takes none; revision order is commit order.
type Revision int64

// Head is the newest position of a tenant's history.
type Head struct {
	Revision Revision
	// SchemaRevision is the revision at which the schema document last changed;
	// 0 while the tenant has none.
	SchemaRevision Revision
	// Epoch identifies the history. To restore a backup starts another one, so that
	// revisions of the two are never compared.
	Epoch string
}

// Store stores the tuples of all tenants and their history. All methods are safe for
// concurrent use. A tenant need not be created: without writes it has an empty history at
// revision 0.
type Store interface {
	// Head reads the newest position. It reflects every write acknowledged, by
	// any process, before the call.
	Head(ctx context.Context, tenant string) (Head, error)

	// Latest reads the newest position together with the schema document that
	// holds there (nil if there is none), in one round trip.
	Latest(ctx context.Context, tenant string) (Head, []byte, error)

	// KnownHead is Head without I/O. It answers only if this process is the database's only
	// writer (memory, embedded SQLite) and has read the tenant's head.
	KnownHead(tenant string) (Head, bool)

	// Write commits w whole or not at all and returns after it is durable.
	// Errors: the request's own ([*ConflictError], or what Also returned), the
	// queue's ([*BusyError]), or the database's. After ctx ends, or Close while
	// the database leaves the outcome of a commit unknown
	// ([*stonetown/internal/sqldb.AmbiguousCommitError]), the write may or may not have been applied;
	// every other error means that it was not.
	Write(ctx context.Context, tenant string, w Write) (Result, error)

	// Changes returns the commits after a revision, oldest first, without gaps, at most
	// limit, including every one acknowledged before the call if the limit allows. It returns
	// fewer, the last one with More, if they have very many changes. It fails
	// with [ErrRevisionCollected] if the commits have been collected.
	Changes(ctx context.Context, tenant string, after Revision, limit int) ([]Commit, error)

	// KnownChanges is Changes without I/O and without a limit. It answers only if this process has
	// made the commits after the revision of an epoch, of which there is at least one, and still
	// has them. Another process can have made newer ones, unless this one is the database's only
	// writer; some can be newer than KnownHead.
	KnownChanges(tenant, epoch string, after Revision) ([]Commit, bool)

	// Since returns the head, and the tuples that the commits after a revision have changed. It is
	// for readers that only have to know what has changed: complete is false, and no tuple is
	// returned, if these commits have been collected, are more than a few hundred or very large,
	// or are of another history: the revision is beyond the head.
	Since(ctx context.Context, tenant string, after Revision) (head Head, changed []Tuple, complete bool, err error)

	// RevisionAt returns the newest revision committed at or before an instant, 0 if there is
	// none, and the epoch of the history. It fails with [ErrRevisionCollected] if that revision
	// has been collected. Commits that are in progress can still get a time before the present.
	RevisionAt(ctx context.Context, tenant string, instant time.Time) (rev Revision, epoch string, err error)

	// CommittedAt returns the time of a commit, the zero time for revision 0. It fails like the
	// reads of a [Snapshot].
	CommittedAt(ctx context.Context, tenant string, rev Revision) (time.Time, error)

	// Page lists tuples of the tenant's newest revision at a bounded cost: those that match f,
	// in the order of f, after the given record (nil: from the start), at most limit. Unless
	// f is contiguous ([Filter.Contiguous]) it examines at most reads tuples, and so can
	// return fewer than limit, even none, although there are more. next has the tuple after
	// which the next page continues; nil: there are no more. f has only fields of tuples and
	// a Presence.
	Page(ctx context.Context, tenant string, f Filter, after *Record, limit, reads int) (page []Record, next *Record, err error)

	// Snapshot returns the state of the tenant at rev. Reads fail with
	// [ErrRevisionCollected] below the retained history and with [ErrRevisionUnknown]
	// beyond the head.
	Snapshot(tenant string, rev Revision) Snapshot

	// SnapshotIn reads the tenant's newest revision through a transaction, on its
	// connection, for [Write.Also]. It does not reflect writes that commit together with
	// that one, which has to be [Write.Alone] if they matter.
	SnapshotIn(tx *Tx, tenant string) Snapshot

	// Close ends the store's own work: queued writes are refused, writes in progress are
	// finished. It does not close the database.
	Close() error
}

// Snapshot is a tenant's tuples at one revision.
type Snapshot interface {
	Revision() Revision

	// Find answers one level of an evaluation in one round trip: the requested tuples that
	// exist, in no particular order and without duplicates. Of a node of l.Usersets only
	// the usersets are read, however many members it has.
	Find(ctx context.Context, l Lookup) ([]Fact, error)

	// Touched returns the newest revision, up to this one, at which a tuple that l requests was
	// created, changed or deleted; 0 if none was. Deletions before the retained history may
	// be missing.
	Touched(ctx context.Context, l Lookup) (Revision, error)

	// List returns the tuples that match f, in the order of f, after the given
	// record (nil: from the start), at most limit.
	List(ctx context.Context, f Filter, after *Record, limit int) ([]Record, error)

	// Scan yields every tuple that matches f, in primary-key order, reading in
	// pages. The sequence ends at the first error.
	Scan(ctx context.Context, f Filter) iter.Seq2[Record, error]

	// Schema returns the tenant's schema document at this revision and the revision at
	// which it was put; nil and 0 if there was none.
	Schema(ctx context.Context) ([]byte, Revision, error)
}

// WholeFinder is a [Snapshot] that finds whole objects.
type WholeFinder interface {
	// FindWhole is Find of the newest revision. It also finds all tuples of some objects, in the
	// same round trip.
	FindWhole(ctx context.Context, l Lookup, objects []Object) (Whole, error)
}

// Whole is the result of [WholeFinder.FindWhole].
type Whole struct {
	// Newest: the snapshot is of the newest revision. Otherwise the rest is empty.
	Newest  bool
	Found   []Fact        // the requested tuples, possibly with duplicates
	Objects []WholeObject // the objects, in the order of the request
}

// WholeObject is all tuples of an object, its presence among them.
type WholeObject struct {
	Facts []Fact
	// Larger: the object has more than MaxWhole tuples, of which Facts has none.
	Larger bool
}

// MaxWhole is the number of tuples of the largest object that is found as a whole.
const MaxWhole = 64

// Lookup is a request for tuples of a snapshot.
type Lookup struct {
	Tuples   []Tuple // those of these that exist
	Usersets []Node  // the tuples of these nodes whose subject is a userset
	All      []Node  // all tuples of these nodes
	// Naming requests all tuples whose subject is one of these objects, as such or as a
	// userset of it.
	Naming []Object
}

// Requests reports whether the lookup requests a tuple.
func (l Lookup) Requests(t Tuple) bool {
	return slices.Contains(l.Tuples, t) || slices.Contains(l.All, t.Node()) ||
		t.Subject.IsUserset() && slices.Contains(l.Usersets, t.Node()) ||
		!t.IsPresence() && slices.Contains(l.Naming, t.Subject.Object())
}

// Filter selects the tuples that equal every non-empty field. A filter has an ObjectType or a
// SubjectType, or is empty (every tuple): each is served by an index, of objects or of
// subjects.
type Filter struct {
	ObjectType, ObjectID   string
	Relation               string
	SubjectType, SubjectID string
	SubjectRelation        string
	Condition              string // of the qualifier; with an ObjectType, served by an index too
	Presence               PresenceFilter
	// SubjectsOutside, if not nil, selects only tuples whose subject has none of these
	// shapes.
	SubjectsOutside []SubjectShape
	// Crowded selects only tuples whose node has further tuples. Only List and Scan do so, and
	// Absent of a write that is Alone; with an ObjectType. One tuple does not decide it, so
	// Matches ignores it.
	Crowded bool
	// Newest orders by descending revision and then descending primary key
	// instead of ascending primary key. Only List does so, and only for
	// presences of one ObjectType.
	Newest bool
}

// Matches reports whether the filter selects t.
func (f Filter) Matches(t Fact) bool {
	equal := func(want, got string) bool { return want == "" || want == got }
	return equal(f.ObjectType, t.Object.Type) && equal(f.ObjectID, t.Object.ID) &&
		equal(f.Relation, t.Relation) &&
		equal(f.SubjectType, t.Subject.Type) && equal(f.SubjectID, t.Subject.ID) &&
		equal(f.SubjectRelation, t.Subject.Relation) &&
		equal(f.Condition, t.Condition) &&
		(f.Presence == WithPresence || t.IsPresence() == (f.Presence == OnlyPresence)) &&
		!slices.Contains(f.SubjectsOutside, t.Subject.Shape())
}

// Compare orders records as List does: by primary key; without an ObjectType, by subject and
// then by primary key; for [Filter.Newest], by descending revision and then descending
// primary key. It returns -1, 0 or 1.
func (f Filter) Compare(a, b Record) int {
	if f.Newest {
		return cmp.Or(cmp.Compare(b.CreatedRevision, a.CreatedRevision), b.Tuple.Compare(a.Tuple))
	}
	if f.BySubject() {
		return cmp.Or(cmp.Compare(a.Subject.ID, b.Subject.ID), a.Tuple.Compare(b.Tuple))
	}
	return a.Tuple.Compare(b.Tuple)
}

// BySubject reports whether List orders by subject: f has a SubjectType and no ObjectType.
func (f Filter) BySubject() bool { return f.ObjectType == "" && f.SubjectType != "" }

// Contiguous reports whether an index has the relations that f selects side by side: its
// fields are the first ones of object type, object ID, relation, subject type, subject ID
// and subject relation, with at least the object, or the first ones of subject type, subject
// ID, object type, object ID, relation and subject relation. To find some of them, or that
// there are none, then takes the same time however many other tuples there are.
func (f Filter) Contiguous() bool {
	if f.Condition != "" || f.Presence != WithoutPresence || f.SubjectsOutside != nil || f.Newest || f.Crowded {
		return false
	}
	// A type has registrations between its relations.
	return f.ObjectID != "" && first(f.ObjectType, f.ObjectID, f.Relation, f.SubjectType, f.SubjectID, f.SubjectRelation) ||
		first(f.SubjectType, f.SubjectID, f.ObjectType, f.ObjectID, f.Relation, f.SubjectRelation)
}

// first reports whether some fields have values, and only the first ones.
func first(fields ...string) bool {
	n := slices.Index(append(fields, ""), "")
	return n > 0 && strings.Join(fields[n:], "") == ""
}

// PresenceFilter selects relations, presence tuples or both.
type PresenceFilter int

const (
	WithoutPresence PresenceFilter = iota // relations only
	OnlyPresence                          // registered objects only
	WithPresence                          // both
)

// SubjectShape is a kind of subject, which schemas allow or forbid.
type SubjectShape struct {
	Type     string
	Relation string // userset relation; empty for objects and wildcards
	Wildcard bool
}

// Shape is the subject's kind.
func (s Subject) Shape() SubjectShape {
	return SubjectShape{s.Type, s.Relation, s.ID == Wildcard && s.Relation == ""}
}

// Record is a stored tuple with its origin.
type Record struct {
	Fact
	CreatedRevision Revision
	CreatedAt       time.Time
	CreatedBy       string // the actor of the write that created it
}

// Write is one caller's request: all of it is applied, or none.
type Write struct {
	// CommitID makes the write idempotent: a second write with the same ID returns the
	// result of the first and changes nothing. Empty: a random one.
	CommitID string
	// Request, if not empty, is compared to recognize a write that is sent again under its
	// commit ID, instead of IfSchema, Absent, Ops and PutSchema. It is for writes that depend
	// on stored data, which may differ when the write is sent again.
	Request string
	Actor   string
	// IfSchema, if not nil, requires the schema to be the one put at this
	// revision (0: none); otherwise the write fails with [ErrSchemaChanged].
	IfSchema *Revision
	// Absent lists filters that must match no tuple before the write. The error counts those
	// that do.
	Absent []Filter
	// Preconditions must all be met before the write; the first one that is not refuses it.
	Preconditions []Precondition
	// Now is the instant, in microseconds since 1970, by which tuples have expired for
	// Preconditions, CreateNew and Others, which ignore these; 0: none has. It is not compared to
	// recognize a write that is sent again.
	Now int64
	// Ops are applied in order; each sees the effect of those before it.
	Ops []Op
	// LikelyNew: the tuples of Ops, apart from presences, probably do not exist. A store can then
	// insert them first, and look at what exists only if that fails.
	LikelyNew bool
	// Known, if not nil, is what the caller knows of the tuples of Ops. If they decide the write
	// ([Write.DependsOnTuples]) and the store knows what has changed since, it need not read them. The
	// result is the same.
	Known *Known
	// PutSchema, if not nil, replaces the schema document.
	PutSchema []byte
	// Also adds the caller's own rows to the transaction. It runs after the ops have been
	// validated and before the commit, may run more than once (a transaction can be
	// retried), and its error aborts this write only. On a store without SQL tx is nil.
	Also func(ctx context.Context, tx *Tx) error
	// Alone: the write commits in a transaction of its own, for an Also that must see
	// every write before it.
	Alone bool
	// Turn, if not nil, is the place of the write in a sequence. If an earlier write of it was not
	// applied, this one fails with [ErrSequenceEnded].
	Turn *Turn
	// Attach queues statements, or none, that commit with this write and are sent with its
	// own, so that they take no round trip. It runs after Also, gets the result of the
	// write, and may run more than once; it also runs for a write that changes nothing, but
	// not for one that is sent again. Its statements must be certain to succeed: one that
	// fails also fails the writes that are committed together with this one. They run in
	// the order of the writes and may come before the rows of the tuples. On a store
	// without SQL it is not called.
	Attach func(r Result, b *Batch)
	// Event returns the text of the event of this write for package eventlog, or nothing. No other
	// write may have the same text. It is stored in the row of the commit, so that it costs no
	// statement. Event is called before Attach, only for a write that takes a revision, and may run
	// more than once. On a store without SQL it is not called.
	Event func(r Result) string
}

// Precondition requires that tuples exist, or that none does.
type Precondition struct {
	Filter Filter
	// Exists: a tuple must match the filter. Otherwise none may.
	Exists bool
}

// Op is one change to the tuples.
type Op struct {
	Kind      OpKind
	Tuple     Tuple     // not of DeleteMatching
	Qualifier Qualifier // Create, CreateNew; of Expire, ExpiresAt
	Others    Others    // Create, CreateNew
	Match     Filter    // DeleteMatching
}

// Others is what a Create or CreateNew does with the other tuples of its node. Those that have
// expired by [Write.Now] are deleted, unless all are kept.
type Others int

const (
	KeepOthers    Others = iota
	RefuseOthers         // another tuple is a conflict
	ReplaceOthers        // deletes them
)

// OpKind is a kind of [Op].
type OpKind int

const (
	Create         OpKind = iota // creating an existing tuple changes at most its qualifier
	Delete                       // deleting a missing tuple is a conflict
	DeleteMatching               // deletes all tuples that match, if any
	Expire                       // deletes a tuple if it exists and expired at or before Qualifier.ExpiresAt
	CreateNew                    // creating an existing tuple is a conflict, unless it has expired
	DeleteExisting               // deletes a tuple if it exists
)

// Status is the outcome of an [Op].
type Status int

const (
	Created Status = iota
	Existed
	Deleted
	Updated // the tuple existed, with another qualifier
	// Replaced: other tuples of the node were deleted, and the tuple was created, or existed.
	Replaced
)

// Result is the outcome of a write.
type Result struct {
	// Revision is the revision of the write or, if it changed nothing, the tenant's newest
	// when it was validated.
	Revision Revision
	Epoch    string
	// Statuses has one entry per op.
	Statuses []Status
	// Counts has one entry per op: how many tuples it created, updated or deleted.
	Counts []int
	// Replaced has the tuples that ops of status Replaced have deleted, by the index of the op;
	// nil for a write that was sent again.
	Replaced map[int][]Tuple
}

// Commit is one revision of the changelog.
type Commit struct {
	Revision Revision
	// At is by the clock of the process that committed, and not before that of the revision
	// before. While that clock is behind another's, commits have the same time.
	At      time.Time
	Actor   string
	Changes []Change // net effect, in order; each tuple at most once
	Schema  []byte   // the new schema document; nil if this commit put none
	// More: later commits were left out of [Store.Changes], although its limit allowed them.
	More bool
}

// Change is a tuple that was created, got another qualifier, or was deleted.
type Change struct {
	Tuple     Tuple
	Qualifier Qualifier // zero if Deleted
	Deleted   bool
}
