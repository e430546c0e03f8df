package engine

// idTable is a set of many objects: a hash table of nothing but their numbers, with
// linear probing. One look finds out whether a member of a million is there, and
// walking over all is walking over memory.
type idTable struct {
	slots []objectID // a power of two; noObject is a free one
	len   int
}

func newIDTable(size int) *idTable {
	t := &idTable{slots: make([]objectID, size)}
	for i := range t.slots {
		t.slots[i] = noObject
	}
	return t
}

// home is the slot at which an id is looked for first.
func (t *idTable) home(id objectID) int {
	return int(uint64(id)*0x9e3779b97f4a7c15>>32) & (len(t.slots) - 1)
}

// slot is where an id is, or belongs.
func (t *idTable) slot(id objectID) int {
	i := t.home(id)
	for t.slots[i] != id && t.slots[i] != noObject {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

func (t *idTable) has(id objectID) bool { return id != noObject && t.slots[t.slot(id)] == id }

// add reports whether the id was not there.
func (t *idTable) add(id objectID) bool {
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
		if id != noObject {
			larger.slots[larger.slot(id)] = id
		}
	}
	t.slots = larger.slots
}

// remove reports whether the id was there. Those behind it that would no longer be
// found move up.
func (t *idTable) remove(id objectID) bool {
	i, mask := t.slot(id), len(t.slots)-1
	if t.slots[i] != id {
		return false
	}
	for j := (i + 1) & mask; t.slots[j] != noObject; j = (j + 1) & mask {
		if (j-t.home(t.slots[j]))&mask >= (j-i)&mask { // it may stand as far forward as i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = noObject
	t.len--
	if 8*t.len < len(t.slots) && len(t.slots) > 4*maxSorted {
		t.resize(len(t.slots) / 2)
	}
	return true
}
