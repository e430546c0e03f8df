package graph

import "hash/maphash"

// objectIndex finds objects by type and ID. It stores numbers and a part of each hash. The
// IDs are only stored in the objects; a map would store them twice. Collisions go to the
// next slot (linear probing).
type objectIndex struct {
	seed  maphash.Seed
	slots []indexSlot // a power of two
	used  int
}

type indexSlot struct {
	hash uint32
	next ObjectID // the object's number plus one; 0 for a free slot
}

func newObjectIndex() objectIndex {
	return objectIndex{seed: maphash.MakeSeed(), slots: make([]indexSlot, 16)}
}

func (x *objectIndex) hash(typ TypeID, id string) uint64 {
	return maphash.String(x.seed, id) ^ uint64(typ)*0x9e3779b97f4a7c15
}

// find returns the number of an object, or NoObject.
func (x *objectIndex) find(objects []Object, typ TypeID, id string) ObjectID {
	h := x.hash(typ, id)
	mask := len(x.slots) - 1
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s.next == 0 {
			return NoObject
		}
		if s.hash == uint32(h) {
			if o := &objects[s.next-1]; o.typ == typ && o.id == id {
				return s.next - 1
			}
		}
	}
}

// Lookup is an object that [Graph.FindAll] finds together with others.
type Lookup struct {
	Type  TypeID
	ID    string
	Found ObjectID // the result; NoObject if the graph does not have the object

	hash uint64
}

// findAll finds many objects at once. To find one takes three dependent reads of memory:
// its slot, the object and its ID. The loops make each of these reads for all objects
// before the next, so that the processor overlaps them.
func (x *objectIndex) findAll(objects []Object, all []Lookup) {
	mask := len(x.slots) - 1
	for i := range all {
		all[i].hash = x.hash(all[i].Type, all[i].ID)
	}
	for i := range all {
		s := x.slots[int(all[i].hash>>32)&mask]
		all[i].Found = NoObject
		if s.hash == uint32(all[i].hash) {
			all[i].Found = s.next - 1 // NoObject for a free slot
		}
	}
	for i := range all {
		a := &all[i]
		if a.Found != NoObject && (objects[a.Found].typ != a.Type || len(objects[a.Found].id) != len(a.ID)) {
			a.Found = NoObject
		}
	}
	for i := range all {
		a := &all[i]
		if a.Found == NoObject || objects[a.Found].id != a.ID {
			a.Found = x.find(objects, a.Type, a.ID) // not in the first slot, or not at all
		}
	}
}

// add adds an object that the index does not have.
func (x *objectIndex) add(objects []Object, number ObjectID) {
	if 4*(x.used+1) > 3*len(x.slots) {
		x.grow(objects)
	}
	x.used++
	o := &objects[number]
	x.put(x.hash(o.typ, o.id), number)
}

func (x *objectIndex) put(h uint64, number ObjectID) {
	mask := len(x.slots) - 1
	i := int(h>>32) & mask
	for x.slots[i].next != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = indexSlot{uint32(h), number + 1}
}

func (x *objectIndex) grow(objects []Object) {
	old := x.slots
	x.slots = make([]indexSlot, 2*len(old))
	for _, s := range old {
		if s.next != 0 {
			o := &objects[s.next-1]
			x.put(x.hash(o.typ, o.id), s.next-1)
		}
	}
}

// remove removes an object that the index has. Objects in later slots that would no
// longer be found move up.
func (x *objectIndex) remove(objects []Object, number ObjectID) {
	mask := len(x.slots) - 1
	home := func(s indexSlot) int {
		o := &objects[s.next-1]
		return int(x.hash(o.typ, o.id)>>32) & mask
	}
	i := home(indexSlot{next: number + 1})
	for x.slots[i].next != number+1 {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if x.slots[j].next == 0 {
			break
		}
		if (j-home(x.slots[j]))&mask >= (j-i)&mask { // its home is not after i
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = indexSlot{}
	x.used--
}
