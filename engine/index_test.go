package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The index finds what a map finds, whatever comes and goes.
func TestObjectIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := newGraph()
	model := map[objectKey]objectID{}
	for range 200_000 {
		key := objectKey{typeID(r.IntN(2)), fmt.Sprint(r.IntN(3000))}
		want, known := model[key]
		got := g.index.find(g.objects, key.typ, key.id)
		if known != (got != noObject) || known && got != want {
			t.Fatalf("%v is %d, want %d (%v)", key, got, want, known)
		}
		switch {
		case !known:
			number := objectID(len(g.objects))
			g.objects = append(g.objects, object{id: key.id, typ: key.typ})
			g.index.add(g.objects, number)
			model[key] = number
		case r.IntN(3) == 0:
			g.index.remove(g.objects, got)
			delete(model, key)
		}
	}
	var all []sought
	for typ := range 3 {
		for n := range 4000 {
			all = append(all, sought{typ: typeID(typ), id: fmt.Sprint(n)})
		}
	}
	g.index.findAll(g.objects, all)
	for _, a := range all {
		want, known := model[objectKey{a.typ, a.id}]
		if known != (a.number != noObject) || known && a.number != want {
			t.Errorf("together: %v %s is %d, want %d (%v)", a.typ, a.id, a.number, want, known)
		}
	}
	if g.index.used != len(model) || len(model) < 1000 {
		t.Errorf("%d objects, want %d", g.index.used, len(model))
	}
}
