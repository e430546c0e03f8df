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

// The event of one relation is encoded as package json would encode it.
func TestRelationEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	// Most of the texts are not valid in an operation, which is refused after its event is made.
	text := func() string {
		return pick("", "doc", "d-1", "usr_k3q7v2m5x4r6t2w7a2c3d4e5f6", `"`, `\"`, "<b>&amp;</b>", "née 李 👩\u200d💻", "\u2028\u2029", "\x00\n\x1f\x7f", "a\xffb", "\xed\xa0\x80")
	}
	type event struct {
		Relation engine.RelationDocument `json:"relation"`
		Replaced bool                    `json:"replaced,omitzero"`
	}
	members := map[string]int{}
	for range 5000 {
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
