package audit

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// anyOp returns an operation. Most of its texts are not valid, so that it is refused after its event
// is made.
func anyOp(random *rand.Rand) engine.WriteOp {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	text := func() string {
		return pick("", "doc", "d-1", "usr_k3q7v2m5x4r6t2w7a2c3d4e5f6", `"`, `\"`, "<b>&amp;</b>", "née 李 👩\u200d💻", "\u2028\u2029", "\x00\n\x1f\x7f", "a\xffb", "\xed\xa0\x80")
	}
	op := engine.WriteOp{
		Delete:   random.IntN(4) == 0,
		Resource: tuplestore.Object{Type: text(), ID: text()}, Relation: text(),
		Subject: tuplestore.Subject{Type: pick(text(), schema.GroupType), ID: text(), Relation: pick("", text(), schema.GroupMember)},
	}
	if random.IntN(2) == 0 {
		op.ExpiresAt = time.Unix(random.Int64N(4e9), random.Int64N(1e9)).In(time.FixedZone("", 3600*random.IntN(12)))
	}
	if random.IntN(2) == 0 {
		op.Condition = text()
	}
	if random.IntN(2) == 0 {
		op.Context = jsontext.Value(pick(`{}`, `null`, ` { "b" : [1.0, 1e3], "a":"<\u0041\u2028\/>" } `))
	}
	return op
}

// The event of one relation is encoded as package json would encode it.
func TestRelationEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	type event struct {
		Relation engine.RelationDocument `json:"relation"`
		Replaced bool                    `json:"replaced,omitzero"`
	}
	members := map[string]int{}
	for range 5000 {
		op := anyOp(random)
		replaced := random.IntN(3) == 0
		want, err := json.Marshal(event{op.Document(), replaced}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			t.Fatal(err)
		}
		if got := relationEvent(op, replaced); string(got) != string(want) {
			t.Fatalf("%s, want %s", got, want)
		}
		var found struct {
			Relation map[string]any `json:"relation"`
		}
		if err := json.Unmarshal(want, &found, jsontext.AllowInvalidUTF8(true)); err != nil {
			t.Fatal(err)
		}
		for name := range found.Relation {
			members[name]++
		}
	}
	for _, name := range []string{"condition", "expires_at", "relation", "resource", "subject"} {
		if members[name] == 0 {
			t.Errorf("no event had the member %s", name)
		}
	}
}

// The event of a bulk write is encoded as package json would encode it.
func TestBulkEvents(t *testing.T) {
	type change struct {
		Op     string `json:"op"`
		Result string `json:"result"`
		engine.RelationDocument
	}
	type event struct {
		Created    int      `json:"created"`
		Updated    int      `json:"updated"`
		Deleted    int      `json:"deleted"`
		Operations []change `json:"operations"`
	}
	random := rand.New(rand.NewPCG(7, 11))
	unchanged := 0
	for range 1000 {
		ops := make([]engine.WriteOp, 1+random.IntN(5))
		results := tuplestore.Result{Statuses: make([]tuplestore.Status, len(ops)), Counts: make([]int, len(ops)), Replaced: map[int][]tuplestore.Tuple{}}
		var want event
		for i := range ops {
			op := anyOp(random)
			ops[i] = op
			count := func(counter *int, name, result string, of engine.WriteOp) {
				*counter++
				results.Counts[i]++
				want.Operations = append(want.Operations, change{name, result, of.Document()})
			}
			switch changes := random.IntN(3) > 0; {
			case op.Delete && changes:
				results.Statuses[i] = tuplestore.Deleted
				count(&want.Deleted, "delete", "deleted", op)
			case op.Delete:
				results.Statuses[i] = tuplestore.Deleted
			case !changes:
				results.Statuses[i] = tuplestore.Existed
			case random.IntN(3) == 0:
				results.Statuses[i] = tuplestore.Updated
				count(&want.Updated, "create", "updated", op)
			case random.IntN(2) == 0:
				results.Statuses[i] = tuplestore.Created
				count(&want.Created, "create", "created", op)
			default:
				results.Statuses[i] = tuplestore.Replaced
				for range 1 + random.IntN(2) {
					gone := anyOp(random)
					results.Replaced[i] = append(results.Replaced[i], tuplestore.Tuple{Object: gone.Resource, Relation: gone.Relation, Subject: gone.Subject})
					gone = engine.WriteOp{Delete: true, Resource: gone.Resource, Relation: gone.Relation, Subject: gone.Subject}
					count(&want.Deleted, "delete", "deleted", gone)
				}
				if random.IntN(2) == 0 { // otherwise the relation itself existed
					count(&want.Created, "create", "created", op)
				}
			}
		}
		got, changed := bulkApplied(t.Context(), ops, results)
		if changed != (len(want.Operations) > 0) {
			t.Fatalf("changed is %v, want %+v", changed, want)
		}
		if !changed {
			unchanged++
			continue
		}
		text, err := json.Marshal(want, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Data) != string(text) {
			t.Fatalf("%s, want %s", got.Data, text)
		}
	}
	if unchanged == 0 {
		t.Error("every write changed something")
	}
}

// BenchmarkRelationEvent makes the stored form of the event of one relation.
func BenchmarkRelationEvent(b *testing.B) {
	ctx := eventlog.WithOrigin(context.Background(), func() eventlog.Origin {
		return eventlog.Origin{
			Actor:    eventlog.Actor{Type: "application", ID: "app_k3q7v2m5x4r6t2w7a2c3d4e5f6"},
			ClientID: "client_k3q7v2m5x4r6t2w7a2c3d4e5f6", RequestID: "req_k3q7v2m5x4r6t2w7a2c3d4e5f6", ClientIP: "192.0.2.7",
		}
	})
	op := engine.WriteOp{
		Resource: tuplestore.Object{Type: "doc", ID: "d-1"}, Relation: "viewer",
		Subject: tuplestore.Subject{Type: schema.UserType, ID: "usr_k3q7v2m5x4r6t2w7a2c3d4e5f6"},
	}
	b.ReportAllocs()
	for b.Loop() {
		relationCreated(ctx, op).Text()
	}
}

// BenchmarkBulkEvent makes the stored form of the event of a bulk write of 500 relations.
func BenchmarkBulkEvent(b *testing.B) {
	ops := make([]engine.WriteOp, 500)
	results := tuplestore.Result{Statuses: make([]tuplestore.Status, len(ops)), Counts: make([]int, len(ops))}
	for i := range ops {
		ops[i] = engine.WriteOp{
			Resource: tuplestore.Object{Type: "doc", ID: "d-1"}, Relation: "viewer",
			Subject: tuplestore.Subject{Type: schema.UserType, ID: "usr_k3q7v2m5x4r6t2w7a2c3d4e5f6"},
		}
		results.Counts[i] = 1
	}
	b.ReportAllocs()
	for b.Loop() {
		event, _ := bulkApplied(b.Context(), ops, results)
		_ = event.Text()
	}
}
