package engine

import "slices"

// userset is a node as a subject.
type userset struct {
	object   objectID
	relation relationID
}

// usersetList is a set of usersets that is walked far more often than changed:
// a list, with the positions indexed once searching it would cost too much.
type usersetList struct {
	list  []userset
	index map[userset]int
}

// maxScanned is the longest list that is searched from end to end.
const maxScanned = 64

func (l *usersetList) position(us userset) int {
	if l.index == nil {
		return slices.Index(l.list, us)
	}
	if i, ok := l.index[us]; ok {
		return i
	}
	return -1
}

func (l *usersetList) has(us userset) bool { return l.position(us) >= 0 }

// add reports whether the userset was not there.
func (l *usersetList) add(us userset) bool {
	if l.has(us) {
		return false
	}
	l.list = append(l.list, us)
	switch {
	case l.index != nil:
		l.index[us] = len(l.list) - 1
	case len(l.list) > maxScanned:
		l.index = make(map[userset]int, 2*len(l.list))
		for i, have := range l.list {
			l.index[have] = i
		}
	}
	return true
}

// remove reports whether the userset was there.
func (l *usersetList) remove(us userset) bool {
	i := l.position(us)
	if i < 0 {
		return false
	}
	last := len(l.list) - 1
	l.list[i] = l.list[last]
	l.list = l.list[:last]
	if l.index != nil {
		delete(l.index, us)
		if i != last {
			l.index[l.list[i]] = i
		}
	}
	return true
}
