package nodecache

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"stonetown/tuplestore"
)

func fact(object, relation, subject string) tuplestore.Fact {
	typ, id, _ := strings.Cut(object, ":")
	f := tuplestore.Fact{Tuple: tuplestore.Tuple{Object: tuplestore.Object{Type: typ, ID: id}, Relation: relation}}
	named, userset, _ := strings.Cut(subject, "#")
	f.Subject.Type, f.Subject.ID, _ = strings.Cut(named, ":")
	f.Subject.Relation = userset
	return f
}

// lookUp returns the tuples of an object that a view has.
func lookUp(v *View, o tuplestore.Object) (facts []tuplestore.Fact, isLarger, ok bool) {
	all, isLarger, ok := v.Object(o)
	if ok && !isLarger {
		all.Each(o, func(f tuplestore.Fact) { facts = append(facts, f) })
	}
	return facts, isLarger, ok
}

func TestWhatIsPutIsFound(t *testing.T) {
	era := New(1 << 20).NewEra()
	v := era.At(7)
	qualified := fact("doc:1", "viewer", "group:g#member")
	qualified.Qualifier = tuplestore.Qualifier{ExpiresAt: -1, Condition: "near", Context: `{"limit":5}`}
	late := fact("doc:1", "viewer", "user:*")
	late.ExpiresAt = 1 << 60
	facts := []tuplestore.Fact{
		{Tuple: tuplestore.Presence(qualified.Object)}, fact("doc:1", "owner", "user:"+strings.Repeat("x", 300)), qualified, late,
	}
	v.PutObject(qualified.Object, tuplestore.WholeObject{Facts: facts})
	if got, isLarger, ok := lookUp(v, qualified.Object); !reflect.DeepEqual(got, facts) || isLarger || !ok {
		t.Errorf("%+v, larger %v, known %v", got, isLarger, ok)
	}
	none := tuplestore.Object{Type: "doc", ID: "none"}
	if _, _, ok := lookUp(v, none); ok {
		t.Error("an object is known that was not put")
	}
	v.PutObject(none, tuplestore.WholeObject{})
	if got, isLarger, ok := lookUp(v, none); got != nil || isLarger || !ok {
		t.Errorf("an object without tuples: %+v, larger %v, known %v", got, isLarger, ok)
	}
	v.PutObject(none, tuplestore.WholeObject{Larger: true})
	if got, isLarger, ok := lookUp(v, none); got != nil || !isLarger || !ok {
		t.Errorf("a large object: %+v, larger %v, known %v", got, isLarger, ok)
	}
	found := 0
	count := func(tuplestore.Fact) { found++ }
	v.PutTuple(late.Tuple, []tuplestore.Fact{late})
	v.PutNode(late.Node(), true, nil)
	v.PutNode(late.Node(), false, facts[2:])
	if !v.Tuple(late.Tuple, count) || !v.Node(late.Node(), true, count) || !v.Node(late.Node(), false, count) || found != 3 {
		t.Errorf("%d tuples of parts that were put, want 3", found)
	}
	if v.Tuple(facts[1].Tuple, count) || v.Node(facts[1].Node(), true, count) {
		t.Error("parts are known that were not put")
	}
	if _, _, ok := lookUp(era.cache.NewEra().At(7), none); ok {
		t.Error("an entry of another era was found")
	}
	if _, _, ok := lookUp(era.At(6), none); ok {
		t.Error("an entry of a newer revision was found")
	}
}

// FuzzValue encodes and decodes tuples with any strings.
func FuzzValue(f *testing.F) {
	f.Add("viewer", "user", "ann", "", "", "", int64(0))
	f.Add("viewer", "group", "g", "member", "near", `{"limit":5}`, int64(-5))
	f.Fuzz(func(t *testing.T, relation, typ, id, userset, condition, context string, expires int64) {
		o := tuplestore.Object{Type: "doc", ID: "1"}
		want := []tuplestore.Fact{
			{Tuple: tuplestore.Presence(o)},
			{
				Tuple:     tuplestore.Tuple{Object: o, Relation: "r" + relation, Subject: tuplestore.Subject{Type: typ, ID: id, Relation: userset}},
				Qualifier: tuplestore.Qualifier{ExpiresAt: expires, Condition: condition, Context: context},
			},
			fact("doc:1", "owner", "user:ann"),
		}
		var got []tuplestore.Fact
		encode(want).Each(o, func(f tuplestore.Fact) { got = append(got, f) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// Whatever is put, the cache has at most its size, and at least most of it once it was full.
func TestCacheIsBounded(t *testing.T) {
	for _, size := range []int64{1 << 12, 1 << 16, 4 << 20} {
		c := New(size)
		r := rand.New(rand.NewPCG(1, 2))
		era := c.NewEra()
		for n := range 50_000 {
			v := era.At(tuplestore.Revision(n))
			o := tuplestore.Object{Type: "doc", ID: fmt.Sprint(r.IntN(40_000))}
			all := tuplestore.WholeObject{}
			for range r.IntN(8) {
				all.Facts = append(all.Facts, fact("doc:"+o.ID, "viewer", "user:"+strings.Repeat("u", r.IntN(40))))
			}
			if _, _, ok := lookUp(v, o); !ok {
				v.PutObject(o, all)
			}
			if n%1000 != 0 {
				continue
			}
			entries := int64(0)
			for i := range c.shards {
				s := &c.shards[i]
				if s.bytes() > s.max {
					t.Fatalf("%d bytes in a shard of %d", s.bytes(), s.max)
				}
				entries += int64(len(s.entries))
			}
			if bytes := c.Stats().Bytes; bytes > size || entries*entryBytes > size {
				t.Fatalf("%d bytes in %d entries of a cache of %d", bytes, entries, size)
			}
		}
		if s := c.Stats(); s.Bytes < size*3/4 || s.Evictions == 0 {
			t.Errorf("size %d: %+v", size, s)
		}
		c.Resize(size / 4)
		if s := c.Stats(); s.Bytes > size/4+placeBytes*leastPlaces {
			t.Errorf("%d bytes after the size became %d", s.Bytes, size/4)
		}
	}
}

// What is used often stays while much that is used once passes.
func TestScansDisplaceLittle(t *testing.T) {
	c := New(1 << 18)
	v := c.NewEra().At(1)
	often := func(n int) tuplestore.Object { return tuplestore.Object{Type: "often", ID: fmt.Sprint(n)} }
	const hot = 200
	for round := range 50 {
		missed := 0
		for n := range hot {
			if _, _, ok := lookUp(v, often(n)); !ok {
				missed++
				v.PutObject(often(n), tuplestore.WholeObject{})
			}
		}
		if round > 10 && missed > hot/50 {
			t.Fatalf("round %d: %d of %d are gone", round, missed, hot)
		}
		for n := range 2000 {
			v.PutObject(tuplestore.Object{Type: "once", ID: fmt.Sprint(round, ".", n)}, tuplestore.WholeObject{})
		}
	}
}

// An entry is found only if its part has not changed since, whatever shares its place in the table
// and however the table has grown. Most that hold are found.
func TestEntriesHoldUntilTheirPartChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 6 {
		c := New(8 << 20)
		era := c.NewEra()
		objects := 1 + r.IntN(3000)
		version := map[string]int{} // by part: how often it has changed
		tuple := func() tuplestore.Fact {
			subject := fmt.Sprint("user:", r.IntN(3))
			if r.IntN(3) == 0 {
				subject = "group:g#member"
			}
			return fact(fmt.Sprint("doc:", r.IntN(objects)), "viewer", subject)
		}
		put := map[string]int{} // the version that was put
		held, found := 0, 0
		for revision := tuplestore.Revision(1); revision < 2000; revision++ {
			var changed []tuplestore.Tuple
			for range r.IntN(4) {
				changed = append(changed, tuple().Tuple)
			}
			for _, t := range changed {
				version["object "+t.Object.String()]++
				version["tuple "+t.String()]++
				version["all "+t.Object.String()]++
				if t.Subject.IsUserset() {
					version["usersets "+t.Object.String()]++
				}
			}
			era.Touch(changed, revision)
			v := era.At(revision)
			for range 4 {
				f := tuple()
				none := func(tuplestore.Fact) {}
				for name, part := range map[string]struct {
					find func() bool
					put  func()
				}{
					"object " + f.Object.String():   {func() bool { _, _, ok := v.Object(f.Object); return ok }, func() { v.PutObject(f.Object, tuplestore.WholeObject{}) }},
					"tuple " + f.String():           {func() bool { return v.Tuple(f.Tuple, none) }, func() { v.PutTuple(f.Tuple, nil) }},
					"all " + f.Object.String():      {func() bool { return v.Node(f.Node(), false, none) }, func() { v.PutNode(f.Node(), false, nil) }},
					"usersets " + f.Object.String(): {func() bool { return v.Node(f.Node(), true, none) }, func() { v.PutNode(f.Node(), true, nil) }},
				} {
					at, wasPut := put[name]
					holds := wasPut && at == version[name]
					if holds {
						held++
					}
					switch ok := part.find(); {
					case ok && !holds:
						t.Fatalf("revision %d: %s was found, which has changed or was never put", revision, name)
					case ok:
						found++
					default:
						part.put()
						put[name] = version[name]
					}
				}
			}
		}
		if found < held*3/4 {
			t.Errorf("%d objects: of %d entries that hold %d were found", objects, held, found)
		}
		if bytes := c.tables.Load(); bytes > 8<<20/tablesShare || bytes <= placeBytes*leastPlaces {
			t.Errorf("the table has %d bytes", bytes)
		}
		if era.End(); c.tables.Load() != 0 {
			t.Errorf("%d bytes of tables without an era", c.tables.Load())
		}
	}
}

// Requests at several revisions share the cache with a tenant that moves on.
func TestConcurrentUse(t *testing.T) {
	c := New(1 << 16)
	era := c.NewEra()
	o := tuplestore.Object{Type: "doc", ID: "1"}
	var mu sync.RWMutex // guards the position, as the engine's does
	revision := tuplestore.Revision(0)
	state := map[tuplestore.Revision]int{0: 0} // the number of tuples
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 5000 {
				mu.RLock()
				at, n := revision, state[revision]
				mu.RUnlock()
				v := era.At(at)
				facts, _, ok := lookUp(v, o)
				if ok && len(facts) != n {
					t.Errorf("revision %d: %d tuples, want %d", at, len(facts), n)
					return
				}
				if !ok {
					all := tuplestore.WholeObject{}
					for i := range n {
						all.Facts = append(all.Facts, fact("doc:1", "viewer", fmt.Sprint("user:", i)))
					}
					v.PutObject(o, all)
				}
			}
		})
	}
	for n := range 2000 {
		mu.Lock()
		next, tuples := revision+1, state[revision]
		changed := []tuplestore.Tuple{fact(fmt.Sprint("doc:other", n), "viewer", "user:ann").Tuple}
		if n%3 == 0 {
			tuples = (tuples + 1) % 5
			changed = append(changed, fact("doc:1", "viewer", "user:ann").Tuple)
		}
		era.Touch(changed, next)
		state[next], revision = tuples, next
		mu.Unlock()
	}
	readers.Wait()
}
