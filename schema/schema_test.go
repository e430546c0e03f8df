package schema

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Short forms of rewrites, to keep the cases readable.
func this() Rewrite             { return Rewrite{Kind: This} }
func computed(r string) Rewrite { return Rewrite{Kind: Computed, Relation: r} }
func arrowTo(set, rel string) Rewrite {
	return Rewrite{Kind: TupleToUserset, Tupleset: set, Computed: rel}
}

func allTo(set, rel string) Rewrite {
	return Rewrite{Kind: TupleToUserset, Tupleset: set, Computed: rel, Mode: All}
}
func self() Rewrite                     { return Rewrite{Kind: Self} }
func union(c ...Rewrite) Rewrite        { return Rewrite{Kind: Union, Children: c} }
func intersection(c ...Rewrite) Rewrite { return Rewrite{Kind: Intersection, Children: c} }
func except(base, subtract Rewrite) Rewrite {
	return Rewrite{Kind: Exclusion, Base: &base, Subtract: &subtract}
}
func relation(name string, rw ...Rewrite) Relation { return Relation{Name: name, Rewrites: rw} }

func (r Relation) of(subjects ...string) Relation {
	r.Subjects = []SubjectType{}
	for _, s := range subjects {
		r.Subjects = append(r.Subjects, ParseSubjectType(s))
	}
	return r
}

func TestInvalidTypes(t *testing.T) {
	deep := this()
	for range MaxDepth {
		deep = union(deep)
	}
	many := make([]Rewrite, MaxRewrites)
	for i := range many {
		many[i] = this()
	}
	doc := func(relations ...Relation) []Type { return []Type{{Name: "doc", Relations: relations}} }
	for name, c := range map[string]struct {
		types        []Type
		path, reason string
		rewrite      bool
	}{
		"type name":            {[]Type{{Name: "Doc"}}, "name", "name_invalid", false},
		"reserved type":        {[]Type{{Name: "check"}}, "name", "name_reserved", false},
		"system type":          {[]Type{{Name: "group"}}, "name", "name_reserved", false},
		"system type, webhook": {[]Type{{Name: "webhook_subscription"}}, "name", "name_reserved", false},
		"type twice":           {[]Type{{Name: "doc"}, {Name: "doc"}}, "name", "duplicate", false},
		"unknown cardinality":  {doc(Relation{Name: "r", Cardinality: "two"}), "relations[0].cardinality", "unknown_value", false},
		"unknown on_second":    {doc(Relation{Name: "r", Cardinality: One, OnSecond: "keep"}), "relations[0].on_second", "unknown_value", false},
		"on_second of many":    {doc(Relation{Name: "r", Cardinality: Many, OnSecond: Replace}), "relations[0].on_second", "conflict", false},
		"one of no tuples":     {doc(relation("a"), Relation{Name: "r", Cardinality: One, Rewrites: []Rewrite{computed("a")}}), "relations[1].cardinality", "conflict", false},
		"long note":            {[]Type{{Name: "doc", Deprecated: strings.Repeat("é", MaxNote+1)}}, "deprecated", "too_long", false},
		"note of two lines":    {doc(Relation{Name: "r", Deprecated: "use\r\nX-Header: y"}), "relations[0].deprecated", "invalid", false},
		"note that is no text": {doc(Relation{Name: "r", Deprecated: "a\xff"}), "relations[0].deprecated", "invalid", false},
		"long description":     {[]Type{{Name: "doc", Description: strings.Repeat("x", MaxText+1)}}, "description", "too_long", false},
		"relation name":        {doc(relation("a b")), "relations[0].name", "name_invalid", false},
		"empty relation name":  {doc(relation("")), "relations[0].name", "name_invalid", false},
		"relation twice":       {doc(relation("a"), relation("a")), "relations[1].name", "duplicate", false},
		"unknown kind":         {doc(relation("a", Rewrite{Kind: "magic"})), "relations[0].rewrites[0].kind", "unknown_kind", true},
		"unknown computed":     {doc(relation("a", this(), computed("b"))), "relations[0].rewrites[1].relation", "unknown_relation", true},
		"missing tupleset":     {doc(relation("a", arrowTo("parent", "a"))), "relations[0].rewrites[0].tupleset", "missing_tupleset", true},
		"derived tupleset":     {doc(relation("o"), relation("p", computed("o")), relation("a", arrowTo("p", "a"))), "relations[2].rewrites[0].tupleset", "missing_tupleset", true},
		"arrow without name":   {doc(relation("p"), relation("a", arrowTo("p", ""))), "relations[1].rewrites[0].computed", "unknown_relation", true},
		"empty union":          {doc(relation("a", union())), "relations[0].rewrites[0].children", "missing_field", true},
		"no base":              {doc(relation("a", Rewrite{Kind: Exclusion})), "relations[0].rewrites[0].base", "missing_field", true},
		"no subtract":          {doc(relation("a", Rewrite{Kind: Exclusion, Base: &Rewrite{Kind: This}})), "relations[0].rewrites[0].subtract", "missing_field", true},
		"nested path":          {doc(relation("a", except(this(), intersection(this(), computed("x"))))), "relations[0].rewrites[0].subtract.children[1].relation", "unknown_relation", true},
		"too deep":             {doc(relation("a", deep)), "relations[0].rewrites[0]" + strings.Repeat(".children[0]", MaxDepth), "depth", true},
		"too many rewrites":    {doc(relation("a", append(many, this())...)), "relations[0].rewrites[200]", "too_many", true},
		"only each other":      {doc(relation("a", computed("b")), relation("b", computed("a"))), "relations[0].rewrites[0]", "cycle_without_this", true},
		"never by both":        {doc(relation("x"), relation("a", intersection(computed("x"), computed("a")))), "relations[1].rewrites[0]", "cycle_without_this", true},
		"unproductive base":    {doc(relation("x"), relation("a", except(computed("a"), computed("x")))), "relations[1].rewrites[0]", "cycle_without_this", true},
		"unknown mode":         {doc(relation("p"), relation("a", Rewrite{Kind: TupleToUserset, Tupleset: "p", Computed: "a", Mode: "most"})), "relations[1].rewrites[0].mode", "unknown_value", true},
		"mode elsewhere":       {doc(relation("a", Rewrite{Kind: This, Mode: All})), "relations[0].rewrites[0].mode", "unknown_value", true},
		"all of a derived set": {doc(relation("o"), relation("p", computed("o")), relation("a", allTo("p", "a"))), "relations[2].rewrites[0].tupleset", "missing_tupleset", true},
		"all leading nowhere":  {doc(relation("p").of("user"), relation("a", allTo("p", "b"))), "relations[1].rewrites[0]", "unknown_relation", true},
		"subject form":         {doc(relation("a").of("user#")), "relations[0].subjects[0]", "subject_type_invalid", false},
		"subject relation":     {doc(relation("a").of("doc#b")), "relations[0].subjects[0]", "subject_type_invalid", false},
		"arrow to nowhere":     {doc(relation("p").of("user"), relation("a", arrowTo("p", "b"))), "relations[1].rewrites[0]", "unknown_relation", true},
		"own absence":          {doc(relation("a", except(this(), computed("a")))), "relations[0].rewrites[0].subtract", "recursion_through_exclusion", true},
		"absence by two":       {doc(relation("a", except(this(), computed("b"))), relation("b", except(this(), computed("a")))), "relations[0].rewrites[0].subtract", "recursion_through_exclusion", true},
		"double negation":      {doc(relation("a", except(this(), except(this(), computed("a"))))), "relations[0].rewrites[0].subtract.subtract", "recursion_through_exclusion", true},
		"action name":          {[]Type{{Name: "doc", Relations: []Relation{relation("a")}, Actions: map[string]string{"": "a"}}}, "actions", "name_invalid", false},
		"action relation":      {[]Type{{Name: "doc", Relations: []Relation{relation("a")}, Actions: map[string]string{"sign": "b"}}}, "actions.sign", "unknown_relation", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.types)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Compile: %v, want an *Error", err)
			}
			if e.Path != c.path || e.Reason != c.reason || e.IsRewrite() != c.rewrite {
				t.Errorf("got path %q reason %q rewrite %v; want %q %q %v (%s)", e.Path, e.Reason, e.IsRewrite(), c.path, c.reason, c.rewrite, e)
			}
		})
	}
}

// A relation may reach itself through an exclusion along links or usersets: whether the
// recursion ends depends on the tuples.
func TestRecursionThroughData(t *testing.T) {
	doc := func(relations ...Relation) []Type { return []Type{{Name: "doc", Relations: relations}} }
	for name, c := range map[string]struct {
		types []Type
		local bool
	}{
		"arrow":           {doc(relation("p").of("doc"), relation("a", except(this(), arrowTo("p", "a")))), true},
		"arrow of all":    {doc(relation("p").of("doc"), relation("a", except(this(), allTo("p", "a")))), true},
		"open link":       {doc(relation("p"), relation("a", except(this(), arrowTo("p", "a")))), true},
		"userset":         {doc(relation("b").of("doc#a"), relation("a", except(this(), computed("b")))), true},
		"own userset":     {doc(relation("a", except(computed("b"), this())).of("doc#a"), relation("b")), true},
		"double negation": {doc(relation("p").of("doc"), relation("a", except(this(), except(this(), arrowTo("p", "a"))))), true},
		"mutual": {doc(relation("p").of("doc"), relation("r"),
			relation("a", except(computed("r"), arrowTo("p", "b"))), relation("b", except(computed("r"), arrowTo("p", "a")))), true},
		"no recursion":       {doc(relation("p").of("doc"), relation("r"), relation("a", except(this(), arrowTo("p", "r")))), false},
		"recursion of bases": {doc(relation("p").of("doc"), relation("r"), relation("a", except(arrowTo("p", "a"), computed("r")))), false},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := mustCompile(t, c.types...)
			for _, l := range c2.Logic {
				if l.Kind == Exclusion && l.Local != c.local {
					t.Errorf("exclusion is local: %v, want %v", l.Local, c.local)
				}
			}
		})
	}
}

// The usersets that open relations may name must not close a recursion through an
// exclusion, also beside local exclusions.
func TestOpenRelationsBesideLocalExclusions(t *testing.T) {
	c := mustCompile(t, Type{Name: "doc", Relations: []Relation{
		relation("p").of("doc"),
		relation("banned"),
		relation("viewer", except(this(), arrowTo("p", "viewer"))),
		relation("reader", except(computed("viewer"), computed("banned"))),
	}})
	for _, c2 := range []struct {
		relation, subject string
		want              Refusal
	}{
		{"viewer", "doc#viewer", Allowed},
		{"viewer", "doc#banned", Allowed},
		{"banned", "doc#viewer", LeadsBack}, // viewer is part of reader
		{"banned", "doc#reader", LeadsBack},
	} {
		if got := c.Allows("doc", c2.relation, ParseSubjectType(c2.subject)); got != c2.want {
			t.Errorf("doc#%s naming %s: %q, want %q", c2.relation, c2.subject, got, c2.want)
		}
	}
}

func TestTypesMayReferToLaterOnes(t *testing.T) {
	doc := Type{Name: "doc", Relations: []Relation{
		relation("parent").of("folder"), relation("viewer", this(), arrowTo("parent", "viewer")).of("team#member"),
	}}
	if _, err := Compile([]Type{doc}); err != nil {
		t.Fatalf("a type that names undefined ones: %v", err)
	}
	folder := Type{Name: "folder", Relations: []Relation{relation("owner")}}
	_, err := Compile([]Type{doc, folder})
	var e *Error
	if !errors.As(err, &e) || e.Type != "doc" || e.Reason != "unknown_relation" {
		t.Errorf("a folder without viewer: %v, want unknown_relation in doc", err)
	}
}

func mustCompile(t *testing.T, types ...Type) *Compiled {
	t.Helper()
	c, err := Compile(types)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFlatten(t *testing.T) {
	c := mustCompile(t,
		Type{Name: "folder", Relations: []Relation{
			relation("parent"), relation("owner"),
			relation("editor", this(), computed("owner"), arrowTo("parent", "editor")),
			relation("viewer", this(), computed("editor"), arrowTo("parent", "viewer")),
		}},
		Type{Name: "doc", Relations: []Relation{
			relation("banned"), relation("owner"),
			relation("viewer", union(this(), except(computed("owner"), computed("banned")))),
			relation("reader", computed("viewer"), computed("owner")),
		}})
	rule := func(typ, rel string) Rule {
		id, ok := c.Rule(typ, rel)
		if !ok {
			t.Fatalf("no rule for %s#%s", typ, rel)
		}
		return c.Rules[id]
	}
	viewer := rule("folder", "viewer")
	if want := []string{"viewer", "editor", "owner"}; !cmp.Equal(viewer.Direct, want) {
		t.Errorf("folder#viewer reads %v, want %v", viewer.Direct, want)
	}
	if want := []Arrow{{"parent", "viewer"}}; !cmp.Equal(viewer.Arrows, want) {
		t.Errorf("folder#viewer follows %v, want %v: viewer includes editor everywhere", viewer.Arrows, want)
	}
	if editor := rule("folder", "editor"); !cmp.Equal(editor.Arrows, []Arrow{{"parent", "editor"}}) {
		t.Errorf("folder#editor follows %v", editor.Arrows)
	}
	reader, docViewer := rule("doc", "reader"), rule("doc", "viewer")
	if !cmp.Equal(reader.Logic, docViewer.Logic) || len(reader.Logic) != 1 {
		t.Errorf("reader has logic %v, viewer %v; want the same single exclusion", reader.Logic, docViewer.Logic)
	}
	if want := []string{"viewer", "owner"}; !cmp.Equal(reader.Direct, want) {
		t.Errorf("doc#reader reads %v, want %v", reader.Direct, want)
	}
}

func TestArrowIsKeptIfOneTypeDiffers(t *testing.T) {
	c := mustCompile(t,
		Type{Name: "folder", Relations: []Relation{relation("editor"), relation("viewer", this(), computed("editor"))}},
		Type{Name: "vault", Relations: []Relation{relation("editor"), relation("viewer")}},
		Type{Name: "doc", Relations: []Relation{relation("parent"), relation("viewer", arrowTo("parent", "editor"), arrowTo("parent", "viewer"))}})
	id, _ := c.Rule("doc", "viewer")
	if got := len(c.Rules[id].Arrows); got != 2 {
		t.Errorf("doc#viewer follows %v, want both: a vault's viewer does not include its editor", c.Rules[id].Arrows)
	}
}

func TestActionRelation(t *testing.T) {
	c := mustCompile(t,
		Type{Name: "doc", Relations: []Relation{relation("owner"), relation("editor"), relation("viewer"), relation("sign")}, Actions: map[string]string{"view": "owner", "publish": "editor"}},
		Type{Name: "lock", Relations: []Relation{relation("view")}})
	for _, c2 := range []struct {
		typ, action, relation string
		ok                    bool
	}{
		{"doc", "view", "owner", true},      // the type's own mapping comes first
		{"doc", "publish", "editor", true},  //
		{"doc", "edit", "editor", true},     // convention
		{"doc", "delete", "owner", true},    //
		{"doc", "sign", "sign", true},       // the relation of the same name
		{"doc", "viewer", "viewer", true},   //
		{"lock", "view", "view", true},      // no viewer, so the convention does not apply
		{"lock", "edit", "edit", false},     //
		{"nothing", "view", "", false},      //
		{"group", "member", "member", true}, // system types too
		{"webhook_subscription", "manage", "owner", true},
		{"webhook_subscription", "view", "viewer", true},
		{"webhook_subscription", "edit", "edit", false},
	} {
		relation, ok := c.ActionRelation(c2.typ, c2.action)
		if ok != c2.ok || ok && relation != c2.relation {
			t.Errorf("ActionRelation(%s, %s) = %q, %v; want %q, %v", c2.typ, c2.action, relation, ok, c2.relation, c2.ok)
		}
	}
}

func TestAllows(t *testing.T) {
	c := mustCompile(t,
		Type{Name: "folder", Relations: []Relation{relation("viewer")}},
		Type{Name: "doc", Relations: []Relation{
			relation("open"),
			relation("closed").of("user", "group", "user:*", "folder#viewer"),
			relation("derived", computed("open")),
			relation("banned"),
			relation("reader", except(this(), computed("banned"))),
			relation("guest", except(computed("open"), this())),
		}})
	for _, c2 := range []struct {
		relation, subject string
		want              Refusal
	}{
		{"open", "user", Allowed},
		{"open", "application", Allowed},
		{"open", "folder", Allowed},
		{"open", "group", Allowed}, // means group#member
		{"open", "folder#viewer", Allowed},
		{"open", "doc#reader", Allowed},
		{"open", "user:*", WildcardRefused},
		{"open", "ghost", UnknownType},
		{"open", "folder#owner", UndefinedRelation},
		{"closed", "user", Allowed},
		{"closed", "user:*", Allowed},
		{"closed", "group#member", Allowed},
		{"closed", "folder", TypeRefused},
		{"closed", "group:*", WildcardRefused},
		{"derived", "user", NotDirect},
		{"banned", "user", Allowed},
		{"banned", "group#member", Allowed},
		{"banned", "doc#reader", LeadsBack}, // banned is subtracted from reader
		{"banned", "doc#open", LeadsBack},   // and open may name reader
		{"banned", "doc#banned", Allowed},
		{"reader", "doc#reader", Allowed},
		{"guest", "user", Allowed},
		{"guest", "doc#guest", LeadsBack}, // it subtracts its own tuples
		{"missing", "user", UndefinedRelation},
	} {
		if got := c.Allows("doc", c2.relation, ParseSubjectType(c2.subject)); got != c2.want {
			t.Errorf("doc#%s naming %s: %q, want %q", c2.relation, c2.subject, got, c2.want)
		}
		listed := slices.Contains(c.Subjects("doc", c2.relation), ParseSubjectType(c2.subject))
		if listed != (c2.want == Allowed) {
			t.Errorf("doc#%s naming %s: listed %v, refusal %q", c2.relation, c2.subject, listed, c2.want)
		}
	}
}

func TestDocumentRoundTrip(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 27, 0, 123e6, time.UTC)
	types := []Type{
		{Name: "doc", Description: "a document", CreatedAt: at, UpdatedAt: at.Add(time.Hour), Actions: map[string]string{"sign": "owner"}, Relations: []Relation{
			relation("parent").of(), relation("owner").of("user", "group", "user:*"), relation("open"),
			relation("viewer", this(), union(computed("owner"), intersection(this(), arrowTo("parent", "viewer"))), except(this(), computed("open"))),
		}},
		{Name: "empty", CreatedAt: at, UpdatedAt: at},
		{Name: "old", Deprecated: "use doc", CreatedAt: at, UpdatedAt: at, Relations: []Relation{
			{Name: "owner", Cardinality: One, OnSecond: Replace}, {Name: "editor", Cardinality: One, Deprecated: "use owner"},
		}},
	}
	got, err := Decode(Encode(types))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(types, got); diff != "" {
		t.Errorf("document changed on its way (-want +got):\n%s", diff)
	}
	if got, err := Decode(nil); err != nil || got != nil {
		t.Errorf("Decode(nil) = %v, %v", got, err)
	}
	if _, err := Decode([]byte("{")); err == nil {
		t.Error("a broken document was read")
	}
}

// TestStoredForms reads the documents that earlier releases stored, and shows that earlier
// releases refuse a newer kind instead of misreading it.
func TestStoredForms(t *testing.T) {
	old := `{"types":[{"name":"doc","relations":[{"name":"parent","subjects":["doc"]},{"name":"a","rewrites":[{"kind":"tuple_to_userset","tupleset":"parent","computed":"a"}],"subjects":null}]}]}`
	types, err := Decode([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	want := []Rewrite{arrowTo("parent", "a")}
	if diff := cmp.Diff(want, types[0].Relations[1].Rewrites); diff != "" {
		t.Errorf("an arrow without a mode (-want +got):\n%s", diff)
	}
	types[0].Relations[1].Rewrites = []Rewrite{allTo("parent", "a"), self()}
	stored := Encode(types)
	if strings.Contains(string(stored), `"tuple_to_userset"`) {
		t.Errorf("an intersection arrow is stored as one of any, which a release without them would take it for: %s", stored)
	}
	again, err := Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(types, again); diff != "" {
		t.Errorf("document changed on its way (-want +got):\n%s", diff)
	}
}

// Compiling any document ends without a panic, in a compiled form or in an *Error. A
// document that compiles is the same after it was stored.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"types":[{"name":"doc","relations":[{"name":"a","rewrites":[{"kind":"exclusion","base":{"kind":"this"},"subtract":{"kind":"computed","relation":"b"}}]},{"name":"b","subjects":["user:*","doc#a"]}]}]}`))
	f.Add([]byte(`{"types":[{"name":"f","relations":[{"name":"p"},{"name":"v","rewrites":[{"kind":"self"},{"kind":"tuple_to_userset_all","tupleset":"p","computed":"v"}]}]}]}`))
	f.Add([]byte(`{"types":[{"name":"f","relations":[{"name":"p"},{"name":"v","rewrites":[{"kind":"union","children":[{"kind":"this"},{"kind":"tuple_to_userset","tupleset":"p","computed":"v"}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		types, err := Decode(document)
		if err != nil {
			return
		}
		c, err := Compile(types)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" || e.Message == "" || !json.Valid([]byte(`"`+e.Reason+`"`)) {
				t.Fatalf("unclear error %#v", err)
			}
			return
		}
		again, err := Decode(Encode(types))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(again); err != nil {
			t.Fatalf("compiled before it was stored, not after: %v", err)
		}
		for _, l := range c.Logic {
			if len(l.Operands) == 0 {
				t.Fatal("logic without operands")
			}
		}
	})
}
