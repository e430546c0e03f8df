package bench

import (
	"math/rand/v2"
	"strconv"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Docs is a shared drive: 50,000 documents in a tree of 2,000 folders, 10,000 users, 200
// groups that view folders. Access to a document mostly comes from a folder far above, so a
// check visits up to six folders and as many groups.
//
// The generator is deterministic, so that figures of different engines are about the same
// 165,998 tuples.
type Docs struct {
	groups    [docsGroups][]int // members
	folders   [docsFolders]docsFolder
	documents [docsDocuments]docsDocument

	members [docsGroups]map[int]bool
}

const (
	docsUsers      = 10_000
	docsGroups     = 200
	docsGroupSize  = 50
	docsFolders    = 2000
	docsDocuments  = 50_000
	docsTuples     = 165_998
	docsDepth      = 7 // objects on the longest path below the document: six folders and a group
	docsGenerators = 42
)

var docsLevels = []int{2, 8, 32, 128, 512, 1318}

type docsFolder struct {
	parent        int // -1 for a root
	owner, viewer int // a user, a group
}

type docsDocument struct{ folder, owner, viewer int }

// NewDocs draws the workload.
func NewDocs() *Docs {
	r := rand.New(rand.NewPCG(docsGenerators, docsGenerators))
	d := new(Docs)
	for g := range d.groups {
		d.members[g] = make(map[int]bool, docsGroupSize)
		for len(d.groups[g]) < docsGroupSize {
			u := r.IntN(docsUsers)
			if !d.members[g][u] {
				d.members[g][u] = true
				d.groups[g] = append(d.groups[g], u)
			}
		}
	}
	f, above := 0, 0 // the folder, the first of the level above
	for level, size := range docsLevels {
		start := f
		for i := range size {
			parent := -1
			if level > 0 {
				parent = above + i%docsLevels[level-1]
			}
			d.folders[f] = docsFolder{parent: parent, owner: r.IntN(docsUsers), viewer: r.IntN(docsGroups)}
			f++
		}
		above = start
	}
	for i := range d.documents {
		doc := docsDocument{folder: r.IntN(docsFolders), owner: r.IntN(docsUsers)}
		for doc.viewer = r.IntN(docsUsers); doc.viewer == doc.owner; {
			doc.viewer = r.IntN(docsUsers)
		}
		d.documents[i] = doc
	}
	return d
}

// Name implements [Workload].
func (d *Docs) Name() string { return "docs" }

// Types implements [Workload].
func (d *Docs) Types() []schema.Type {
	this := schema.Rewrite{Kind: schema.This}
	computed := func(r string) schema.Rewrite { return schema.Rewrite{Kind: schema.Computed, Relation: r} }
	parent := func(r string) schema.Rewrite {
		return schema.Rewrite{Kind: schema.TupleToUserset, Tupleset: "parent", Computed: r}
	}
	people := []schema.SubjectType{{Type: schema.UserType}, {Type: schema.GroupType, Relation: schema.GroupMember}}
	return []schema.Type{
		{Name: "folder", Relations: []schema.Relation{
			{Name: "parent", Subjects: []schema.SubjectType{{Type: "folder"}}},
			{Name: "owner", Subjects: people[:1]},
			{Name: "editor", Subjects: people[:1], Rewrites: []schema.Rewrite{this, computed("owner"), parent("editor")}},
			{Name: "viewer", Subjects: people, Rewrites: []schema.Rewrite{this, computed("editor"), parent("viewer")}},
		}},
		{Name: "document", Relations: []schema.Relation{
			{Name: "parent", Subjects: []schema.SubjectType{{Type: "folder"}}},
			{Name: "owner", Subjects: people[:1]},
			{Name: "editor", Subjects: people[:1], Rewrites: []schema.Rewrite{this, computed("owner")}},
			{Name: "viewer", Subjects: people, Rewrites: []schema.Rewrite{this, computed("editor"), parent("viewer")}},
		}},
	}
}

func named(prefix string, n int) string { return prefix + strconv.Itoa(n) }

func user(n int) tuplestore.Subject {
	return tuplestore.Subject{Type: schema.UserType, ID: named("u", n)}
}

func object(typ, prefix string, n int) tuplestore.Object {
	return tuplestore.Object{Type: typ, ID: named(prefix, n)}
}

// Tuples implements [Workload].
func (d *Docs) Tuples(yield func(tuplestore.Tuple) bool) {
	ok := true
	put := func(object tuplestore.Object, relation string, subject tuplestore.Subject) {
		ok = ok && yield(tuplestore.Tuple{Object: object, Relation: relation, Subject: subject})
	}
	folder := func(n int) tuplestore.Object { return tuplestore.Object{Type: "folder", ID: named("f", n)} }
	below := func(n int) tuplestore.Subject { return tuplestore.Subject{Type: "folder", ID: named("f", n)} }
	for g, members := range d.groups {
		for _, u := range members {
			put(tuplestore.Object{Type: schema.GroupType, ID: named("g", g)}, schema.GroupMember, user(u))
		}
	}
	for n, f := range d.folders {
		if f.parent >= 0 {
			put(folder(n), "parent", below(f.parent))
		}
		put(folder(n), "owner", user(f.owner))
		put(folder(n), "viewer", tuplestore.Subject{Type: schema.GroupType, ID: named("g", f.viewer), Relation: schema.GroupMember})
	}
	for n, doc := range d.documents {
		document := tuplestore.Object{Type: "document", ID: named("d", n)}
		put(document, "parent", below(doc.folder))
		put(document, "owner", user(doc.owner))
		put(document, "viewer", user(doc.viewer))
	}
}

// Zipf is the same drive with other questions: some documents and users are far more
// frequent than others. The frequency of the n-th is proportional to 1/n^1.1, so that more
// than one question in three is about the ten most frequent documents.
func (d *Docs) Zipf() Workload { return docsZipf{d} }

type docsZipf struct{ *Docs }

// docs implements [onDocs], here and in what embeds it.
func (d *Docs) docs() *Docs { return d }

func (docsZipf) Name() string { return "docs-zipf" }

func (z docsZipf) Questioner(seed, worker uint64) Questioner {
	q := z.questioner(seed, worker)
	for _, field := range []struct {
		draw *func() int
		of   int
	}{{&q.document, docsDocuments}, {&q.user, docsUsers}} {
		zipf := rand.NewZipf(q.rand, 1.1, 1, uint64(field.of-1))
		*field.draw = func() int { return int(zipf.Uint64()) }
	}
	return q
}

// docsQuestioner draws half of the questions about any user and half about a user who is
// known to have access, mostly through the group of a folder above.
type docsQuestioner struct {
	docs           *Docs
	rand           *rand.Rand
	user, document func() int
}

// Questioner implements [Workload].
func (d *Docs) Questioner(seed, worker uint64) Questioner { return d.questioner(seed, worker) }

func (d *Docs) questioner(seed, worker uint64) *docsQuestioner {
	r := rand.New(rand.NewPCG(seed, worker))
	return &docsQuestioner{
		docs: d, rand: r,
		user:     func() int { return r.IntN(docsUsers) },
		document: func() int { return r.IntN(docsDocuments) },
	}
}

// New implements [Growing]: another document, with only one viewer.
func (d *Docs) New(worker uint64, n int) (tuplestore.Tuple, Question) {
	document, viewer := object("document", "new"+strconv.FormatUint(worker, 10)+"-", n), user(n%docsUsers)
	return tuplestore.Tuple{Object: document, Relation: "viewer", Subject: viewer},
		Question{Subject: viewer, Resource: document, Action: "view", Allowed: true}
}

// Next implements [Questioner].
func (q *docsQuestioner) Next() Question {
	u, n := q.draw()
	return q.docs.question(u, n)
}

// Batch implements [Questioner]. The user may view half of the documents asked about; a user
// who may view hardly any, or nearly all, is not asked about. Of documents drawn without regard
// to the user, 8 percent would be allowed.
func (q *docsQuestioner) Batch(size int) []Question {
	var u int
	var documents [2][]int // that the user may not view, and may
	for min(len(documents[0]), len(documents[1])) < docsDocuments/100 {
		u, _ = q.draw()
		documents = q.docs.divide(u)
	}
	batch := make([]Question, size)
	for i := range batch {
		from := documents[q.rand.IntN(2)]
		batch[i] = q.docs.question(u, from[q.document()%len(from)])
	}
	return batch
}

// divide returns the documents that a user may not view, and those that the user may.
func (d *Docs) divide(u int) (documents [2][]int) {
	var folders [docsFolders]bool // that the user may view; a parent comes before its children
	for n, f := range d.folders {
		folders[n] = f.owner == u || d.members[f.viewer][u] || f.parent >= 0 && folders[f.parent]
	}
	for n, doc := range d.documents {
		if doc.owner == u || doc.viewer == u || folders[doc.folder] {
			documents[1] = append(documents[1], n)
		} else {
			documents[0] = append(documents[0], n)
		}
	}
	return documents
}

// draw draws a user and a document.
func (q *docsQuestioner) draw() (u, n int) {
	n = q.document()
	doc := q.docs.documents[n]
	if q.rand.IntN(2) == 0 {
		return q.user(), n
	}
	switch k := q.rand.IntN(10); k {
	case 0:
		return doc.owner, n
	case 1:
		return doc.viewer, n
	}
	var above []int
	for f := doc.folder; f >= 0; f = q.docs.folders[f].parent {
		above = append(above, f)
	}
	group := q.docs.folders[above[q.rand.IntN(len(above))]].viewer
	return q.docs.groups[group][q.rand.IntN(docsGroupSize)], n
}

func (d *Docs) question(u, n int) Question {
	return Question{
		Subject: user(u), Resource: tuplestore.Object{Type: "document", ID: named("d", n)},
		Action: "view", Allowed: d.mayView(u, n),
	}
}

// mayView is the oracle: the answer from the generator's own arrays.
func (d *Docs) mayView(u, n int) bool {
	doc := &d.documents[n]
	if doc.owner == u || doc.viewer == u {
		return true
	}
	for f := doc.folder; f >= 0; f = d.folders[f].parent {
		if d.folders[f].owner == u || d.members[d.folders[f].viewer][u] {
			return true
		}
	}
	return false
}
