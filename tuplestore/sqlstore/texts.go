package sqlstore

import "sync"

// texts are the statements of lookups, which are built once for each shape.
type texts struct{ built sync.Map } // textShape -> string

// textShape is what the text of a lookup depends on.
type textShape struct {
	of    textKind
	parts int // one bit for each partKind
}

type textKind int

const (
	ofFind textKind = iota
	ofTouched
	ofWhole
)

func shapeOf(parts []part) (shape int) {
	for _, p := range parts {
		shape |= 1 << p.kind
	}
	return shape
}

// of returns the text of a shape.
func (t *texts) of(shape textShape, build func() string) string {
	if text, ok := t.built.Load(shape); ok {
		return text.(string)
	}
	text := build()
	t.built.Store(shape, text)
	return text
}
