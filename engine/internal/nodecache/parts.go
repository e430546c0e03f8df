package nodecache

import (
	"encoding/binary"
	"hash/maphash"
	"iter"

	"stonetown/tuplestore"
)

// View is the entries that hold for a request: those of an era at a revision. It is not safe for
// concurrent use.
type View struct {
	era      *Era
	revision int64
	name     []byte // of the last part
}

// At returns a view of the era at a revision whose changes, and those before, have been recorded.
func (e *Era) At(revision tuplestore.Revision) *View {
	return &View{era: e, revision: int64(revision)}
}

// The kinds of parts.
const (
	ofObject byte = iota
	ofTuple
	ofUsersets
	ofAll
)

// The names of parts begin with the era. Strings have their lengths, so no two names are equal.

func (e *Era) begin(b []byte, kind byte, o tuplestore.Object) []byte {
	b = append(binary.LittleEndian.AppendUint64(b[:0], e.number), kind)
	return appendString(appendString(b, o.Type), o.ID)
}

func (e *Era) object(b []byte, o tuplestore.Object) []byte { return e.begin(b, ofObject, o) }

func (e *Era) node(b []byte, kind byte, n tuplestore.Node) []byte {
	return appendString(e.begin(b, kind, n.Object), n.Relation)
}

func (e *Era) tuple(b []byte, t tuplestore.Tuple) []byte {
	b = appendString(e.begin(b, ofTuple, t.Object), t.Relation)
	return appendString(appendString(appendString(b, t.Subject.Type), t.Subject.ID), t.Subject.Relation)
}

// get returns the value of the part whose name is in v.name.
func (v *View) get() (string, bool) {
	c := v.era.cache
	k := key{maphash.Bytes(c.seeds[0], v.name), maphash.Bytes(c.seeds[1], v.name)}
	value, revision, ok := c.shard(k).get(k)
	if !ok {
		return "", false
	}
	// An entry that a request at a newer revision has put may lack what this one must see.
	if revision > v.revision || v.era.lastTouched(k) > revision {
		c.stale.Add(1)
		return "", false
	}
	return value, true
}

func (v *View) put(value string) {
	c := v.era.cache
	k := key{maphash.Bytes(c.seeds[0], v.name), maphash.Bytes(c.seeds[1], v.name)}
	c.shard(k).put(k, value, v.revision)
}

// larger is the value of an object that is not kept as a whole.
const larger = Tuples(rune(isLarger))

// Object returns all tuples of an object. It is not ok if they are not known. The answer that an
// object is too large may be old news, and only decides how it is read.
func (v *View) Object(o tuplestore.Object) (all Tuples, tooLarge, ok bool) {
	v.name = v.era.object(v.name, o)
	value, ok := v.get()
	return Tuples(value), Tuples(value) == larger, ok
}

// PutObject keeps all tuples of an object, and returns them.
func (v *View) PutObject(o tuplestore.Object, all tuplestore.WholeObject) Tuples {
	v.name = v.era.object(v.name, o)
	value := larger
	if !all.Larger {
		value = encode(all.Facts)
	}
	v.put(string(value))
	return value
}

// Tuple calls add with a tuple if it exists. It is not ok if that is not known.
func (v *View) Tuple(t tuplestore.Tuple, add func(tuplestore.Fact)) (ok bool) {
	v.name = v.era.tuple(v.name, t)
	return v.some(t.Object, add)
}

// PutTuple keeps a tuple, or that it does not exist.
func (v *View) PutTuple(t tuplestore.Tuple, found []tuplestore.Fact) {
	v.name = v.era.tuple(v.name, t)
	v.put(string(encode(found)))
}

// Node calls add with all tuples of a node, or those that name usersets. It is not ok if these
// are not known.
func (v *View) Node(n tuplestore.Node, onlyUsersets bool, add func(tuplestore.Fact)) (ok bool) {
	v.name = v.era.node(v.name, kindOf(onlyUsersets), n)
	return v.some(n.Object, add)
}

// maxNode is the number of tuples of the largest node that is kept.
const maxNode = 1024

// PutNode keeps all tuples of a node, or those that name usersets, unless they are many.
func (v *View) PutNode(n tuplestore.Node, onlyUsersets bool, found []tuplestore.Fact) {
	if len(found) <= maxNode {
		v.name = v.era.node(v.name, kindOf(onlyUsersets), n)
		v.put(string(encode(found)))
	}
}

func kindOf(onlyUsersets bool) byte {
	if onlyUsersets {
		return ofUsersets
	}
	return ofAll
}

func (v *View) some(o tuplestore.Object, add func(tuplestore.Fact)) (ok bool) {
	value, ok := v.get()
	if ok {
		Tuples(value).Each(o, add)
	}
	return ok
}

// What follows the relation in the value of a tuple.
const (
	plainSubject = iota
	usersetSubject
	noSubject // a presence

	qualified = 4
)

// Tuples are tuples of an object, without the object.
type Tuples string

// The first byte of tuples.
const (
	noUsersets = iota // no tuple names a userset
	hasUsersets
	isLarger // the tuples of an object that is not kept as a whole
)

func encode(facts []tuplestore.Fact) Tuples {
	b := append(make([]byte, 0, 1+32*len(facts)), noUsersets)
	for i := range facts {
		f := &facts[i]
		form := byte(plainSubject)
		switch {
		case f.IsPresence():
			form = noSubject
		case f.Subject.IsUserset():
			form, b[0] = usersetSubject, hasUsersets
		}
		if f.Qualifier != (tuplestore.Qualifier{}) {
			form |= qualified
		}
		b = append(appendString(b, f.Relation), form)
		if form != noSubject {
			b = appendString(appendString(b, f.Subject.Type), f.Subject.ID)
		}
		if form&3 == usersetSubject {
			b = appendString(b, f.Subject.Relation)
		}
		if form&qualified != 0 {
			b = appendString(appendString(binary.AppendVarint(b, f.ExpiresAt), f.Condition), f.Context)
		}
	}
	return Tuples(b)
}

// Each calls add with all tuples, which are of an object. Their strings share the memory of t.
func (t Tuples) Each(o tuplestore.Object, add func(tuplestore.Fact)) {
	for f := range t.of(o) {
		add(*f)
	}
}

// Tuple calls add with a tuple, if it is one of them.
func (t Tuples) Tuple(tuple tuplestore.Tuple, add func(tuplestore.Fact)) {
	for f := range t.of(tuple.Object) {
		if f.Subject == tuple.Subject && f.Relation == tuple.Relation {
			add(*f)
			return
		}
	}
}

// Node calls add with the tuples of a relation, or those that name usersets.
func (t Tuples) Node(n tuplestore.Node, onlyUsersets bool, add func(tuplestore.Fact)) {
	if onlyUsersets && t[0] != hasUsersets {
		return
	}
	for f := range t.of(n.Object) {
		if f.Relation == n.Relation && (!onlyUsersets || f.Subject.Relation != "") {
			add(*f)
		}
	}
}

// of yields the tuples, each valid until the next.
func (t Tuples) of(o tuplestore.Object) iter.Seq[*tuplestore.Fact] {
	return func(yield func(*tuplestore.Fact) bool) {
		f := tuplestore.Fact{Tuple: tuplestore.Tuple{Object: o}}
		for rest := string(t[1:]); rest != ""; {
			f.Relation, rest = nextString(rest)
			form := rest[0]
			rest = rest[1:]
			f.Subject = tuplestore.Subject{}
			if form != noSubject {
				f.Subject.Type, rest = nextString(rest)
				f.Subject.ID, rest = nextString(rest)
			}
			if form&3 == usersetSubject {
				f.Subject.Relation, rest = nextString(rest)
			}
			f.Qualifier = tuplestore.Qualifier{}
			if form&qualified != 0 {
				n, size := uvarint(rest)
				f.ExpiresAt = int64(n>>1) ^ -int64(n&1) // as binary.Varint
				f.Condition, rest = nextString(rest[size:])
				f.Context, rest = nextString(rest)
			}
			if !yield(&f) {
				return
			}
		}
	}
}

func nextString(rest string) (s, after string) {
	n, size := uint64(rest[0]), 1
	if n >= 0x80 {
		n, size = uvarint(rest)
	}
	return rest[size : size+int(n)], rest[size+int(n):]
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// uvarint is [binary.Uvarint] for strings.
func uvarint(s string) (n uint64, size int) {
	for i := 0; ; i++ {
		n |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, i + 1
		}
	}
}
