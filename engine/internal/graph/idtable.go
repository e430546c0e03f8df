package graph

// idTable is a large set of objects: a hash table of their numbers with linear probing. A
// lookup mostly reads one cache line, and an iteration reads memory in order.
type idTable struct {
	slots []ObjectID // a power of two; NoObject is a free one
	len   int
}

func newIDTable(size int) *idTable {
	t := &idTable{slots: make([]ObjectID, size)}
	for i := range t.slots {
		t.slots[i] = NoObject
	}
	return t
}

// home is the first slot in which an object is looked up.
func (t *idTable) home(id ObjectID) int {
	return int(uint64(id)*0x9e3779b97f4a7c15>>32) & (len(t.slots) - 1)
}

// slot is the slot that has the object, or the free one where it would be added.
func (t *idTable) slot(id ObjectID) int {
	i := t.home(id)
	for t.slots[i] != id && t.slots[i] != NoObject {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

func (t *idTable) has(id ObjectID) bool { return id != NoObject && t.slots[t.slot(id)] == id }

// add adds an object and reports whether it is new.
func (t *idTable) add(id ObjectID) bool {
	i := t.slot(id)
	if t.slots[i] == id {
		return false
	}
	t.slots[i] = id
	t.len++
	if 4*t.len > 3*len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	return true
}

func (t *idTable) resize(size int) {
	larger := newIDTable(size)
	for _, id := range t.slots {
		if id != NoObject {
			larger.slots[larger.slot(id)] = id
		}
	}
	t.slots = larger.slots
}

// remove removes an object and reports whether the set had it. Objects in later slots that
// would no longer be found move up.
func (t *idTable) remove(id ObjectID) bool {
	i, mask := t.slot(id), len(t.slots)-1
	if t.slots[i] != id {
		return false
	}
	for j := (i + 1) & mask; t.slots[j] != NoObject; j = (j + 1) & mask {
		if (j-t.home(t.slots[j]))&mask >= (j-i)&mask { // its home is not after i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = NoObject
	t.len--
	if 8*t.len < len(t.slots) && len(t.slots) > 4*maxSorted {
		t.resize(len(t.slots) / 2)
	}
	return true
}
