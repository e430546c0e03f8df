package engine

import "hash/maphash"

// objectIndex finds objects by what they are called. It holds numbers and a part
// of each hash, and leaves the names to the objects: a map would keep them twice.
// Collisions go to the next slot (linear probing).
type objectIndex struct {
	seed  maphash.Seed
	slots []indexSlot // a power of two
	used  int
}

type indexSlot struct {
	hash uint32
	next objectID // the object's number plus one; 0 for a free slot
}

func newObjectIndex() objectIndex {
	return objectIndex{seed: maphash.MakeSeed(), slots: make([]indexSlot, 16)}
}

func (x *objectIndex) hash(typ typeID, id string) uint64 {
	return maphash.String(x.seed, id) ^ uint64(typ)*0x9e3779b97f4a7c15
}

// find returns the number of an object, or noObject.
func (x *objectIndex) find(objects []object, typ typeID, id string) objectID {
	h := x.hash(typ, id)
	mask := len(x.slots) - 1
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s.next == 0 {
			return noObject
		}
		if s.hash == uint32(h) {
			if o := &objects[s.next-1]; o.typ == typ && o.id == id {
				return s.next - 1
			}
		}
	}
}

// sought is an object that is looked for together with others.
type sought struct {
	typ    typeID
	id     string
	number objectID // what was found, or noObject
	hash   uint64
}

// findAll finds many objects at once. Each is three steps away in memory: its slot,
// itself, its name. They are taken together, step by step, so that the processor
// waits for many at the same time and not for one after another.
func (x *objectIndex) findAll(objects []object, all []sought) {
	mask := len(x.slots) - 1
	for i := range all {
		all[i].hash = x.hash(all[i].typ, all[i].id)
	}
	for i := range all {
		s := x.slots[int(all[i].hash>>32)&mask]
		all[i].number = noObject
		if s.hash == uint32(all[i].hash) {
			all[i].number = s.next - 1 // noObject for a free slot
		}
	}
	for i := range all {
		a := &all[i]
		if a.number != noObject && (objects[a.number].typ != a.typ || len(objects[a.number].id) != len(a.id)) {
			a.number = noObject
		}
	}
	for i := range all {
		a := &all[i]
		if a.number == noObject || objects[a.number].id != a.id {
			a.number = x.find(objects, a.typ, a.id) // not in the first slot, or not at all
		}
	}
}

// add puts in an object that is not there.
func (x *objectIndex) add(objects []object, number objectID) {
	if 4*(x.used+1) > 3*len(x.slots) {
		x.grow(objects)
	}
	x.used++
	o := &objects[number]
	x.put(x.hash(o.typ, o.id), number)
}

func (x *objectIndex) put(h uint64, number objectID) {
	mask := len(x.slots) - 1
	i := int(h>>32) & mask
	for x.slots[i].next != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = indexSlot{uint32(h), number + 1}
}

func (x *objectIndex) grow(objects []object) {
	old := x.slots
	x.slots = make([]indexSlot, 2*len(old))
	for _, s := range old {
		if s.next != 0 {
			o := &objects[s.next-1]
			x.put(x.hash(o.typ, o.id), s.next-1)
		}
	}
}

// remove takes out an object that is there. Those behind it that would no longer
// be found move up.
func (x *objectIndex) remove(objects []object, number objectID) {
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
		if (j-home(x.slots[j]))&mask >= (j-i)&mask { // it may stand as far forward as i
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = indexSlot{}
	x.used--
}
