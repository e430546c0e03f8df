package graph

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The index finds the objects that a map finds, while objects are added and removed.
func TestObjectIndexEqualsMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := New()
	model := map[Key]ObjectID{}
	for range 200_000 {
		key := Key{TypeID(r.IntN(2)), fmt.Sprint(r.IntN(3000))}
		want, known := model[key]
		got := g.index.find(&g.objects, key.Type, key.ID)
		if known != (got != NoObject) || known && got != want {
			t.Fatalf("%v is %d, want %d (%v)", key, got, want, known)
		}
		switch {
		case !known:
			number := ObjectID(g.objects.add(Object{id: key.ID, typ: key.Type}, g.w))
			g.index.add(&g.objects, number, g.w)
			model[key] = number
		case r.IntN(3) == 0:
			g.index.remove(&g.objects, got, g.w)
			delete(model, key)
		}
	}
	var all []Lookup
	for typ := range 3 {
		for n := range 4000 {
			all = append(all, Lookup{Type: TypeID(typ), ID: fmt.Sprint(n)})
		}
	}
	g.index.findAll(&g.objects, all)
	for _, a := range all {
		want, known := model[Key{a.Type, a.ID}]
		if known != (a.Found != NoObject) || known && a.Found != want {
			t.Errorf("together: %v %s is %d, want %d (%v)", a.Type, a.ID, a.Found, want, known)
		}
	}
	if g.index.objects != len(model) || len(model) < 1000 {
		t.Errorf("%d objects, want %d", g.index.objects, len(model))
	}
}
