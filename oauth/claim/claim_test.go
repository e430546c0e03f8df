package claim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"stonetown/engine"
	"stonetown/oauth/access"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// answers is an engine whose questions end in an error.
type answers struct {
	err  error
	seen []engine.Consistency
}

func (a *answers) Check(_ context.Context, _ string, req engine.CheckRequest) (*engine.CheckResponse, error) {
	a.seen = append(a.seen, req.Consistency)
	return &engine.CheckResponse{Decisions: make([]engine.Decision, len(req.Queries)), Token: fmt.Sprint("after ", len(a.seen))}, a.err
}

func (a *answers) ListResources(_ context.Context, _ string, req engine.ListResourcesRequest) (*engine.ResourceList, error) {
	a.seen = append(a.seen, req.Consistency)
	return &engine.ResourceList{Token: fmt.Sprint("after ", len(a.seen))}, a.err
}

func (a *answers) Type(context.Context, string, string) (schema.Type, error) {
	return schema.Type{Relations: []schema.Relation{{Name: "viewer"}}}, nil
}

func request(claims ...client.Claim) claim.Request {
	return claim.Request{
		App: client.Application{Options: client.Options{Claims: claims}}, Subject: tuplestore.Subject{Type: "user", ID: "u"}, User: &access.User{ID: "u"},
		Has: func(string) bool { return false }, Where: client.ClaimPlaces,
	}
}

func of(source client.ClaimSource) client.Claim {
	return client.Claim{Name: "x", Where: []client.ClaimPlace{client.InIDToken}, Source: source}
}

var (
	relations = client.ClaimSource{Relations: &client.ObjectRelations{Type: "app", ID: "x"}}
	resources = client.ClaimSource{Resources: &client.TypeAction{Type: "app", Action: "view"}}
)

// TestErrors: what the data cause leaves a claim out, what the server causes is its error.
func TestErrors(t *testing.T) {
	broken := errors.New("database")
	for _, source := range []client.ClaimSource{relations, resources} {
		for _, tc := range []struct {
			err  error
			want claim.Reason
		}{
			{&engine.UnknownTypeError{Type: "app"}, claim.NoRelation},
			{&engine.UndefinedRelationError{Type: "app", Relation: "view"}, claim.NoRelation},
			{&engine.ConditionError{}, claim.Undecided},
			{&engine.NegativeCycleError{}, claim.Undecided},
			{fmt.Errorf("list: %w", &engine.BudgetError{}), claim.TooComplex},
			{broken, ""},
			{context.DeadlineExceeded, ""},
		} {
			got, err := claim.NewFinder(&answers{err: tc.err}, nil).Find(t.Context(), request(of(source)))
			if tc.want == "" {
				if !errors.Is(err, tc.err) {
					t.Errorf("%v: %v", tc.err, err)
				}
				continue
			}
			if want := []claim.Omission{{Name: "x", Reason: tc.want}}; err != nil || len(got.In) > 0 || !reflect.DeepEqual(got.Omitted, want) {
				t.Errorf("%v: %+v %v", tc.err, got, err)
			}
		}
	}
}

// TestOneRevision: questions about one token are answered at one revision.
func TestOneRevision(t *testing.T) {
	e := new(answers)
	second := of(relations)
	second.Name = "y"
	third := of(resources)
	third.Name = "z"
	if _, err := claim.NewFinder(e, nil).Find(t.Context(), request(of(resources), second, third)); err != nil {
		t.Fatal(err)
	}
	want := []engine.Consistency{{}, {Mode: engine.Exactly, Token: "after 1"}, {Mode: engine.Exactly, Token: "after 2"}}
	if !reflect.DeepEqual(e.seen, want) {
		t.Errorf("%+v", e.seen)
	}
}

// TestReserved: a claim that was stored before its name was reserved is in no token.
func TestReserved(t *testing.T) {
	c := of(client.ClaimSource{Attribute: "id"})
	c.Name = "sub"
	got, err := claim.NewFinder(new(answers), nil).Find(t.Context(), request(c))
	if err != nil || len(got.In) > 0 {
		t.Errorf("%+v %v", got, err)
	}
}

// TestVerifiedAddress: an address that was not proved is in no claim.
func TestVerifiedAddress(t *testing.T) {
	r := request(of(client.ClaimSource{Attribute: "email"}))
	r.User = &access.User{ID: "u", Email: "ann@example.com"}
	for verified, want := range map[bool]string{false: "", true: `"ann@example.com"`} {
		r.User.EmailVerified = verified
		got, err := claim.NewFinder(new(answers), nil).Find(t.Context(), r)
		if value := got.In[client.InIDToken]["x"]; err != nil || string(value) != want {
			t.Errorf("verified %t: %s %v", verified, value, err)
		}
	}
}

// FuzzAttribute: attributes are JSON of users, and a claim is part of it or absent.
func FuzzAttribute(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"x"]}}`), "a.b")
	f.Add([]byte(`{"a":null,"":{"":1}}`), ".")
	f.Add([]byte(`[]`), "a")
	f.Fuzz(func(t *testing.T, attributes []byte, path string) {
		r := request(of(client.ClaimSource{Attribute: client.AttributePrefix + path}))
		r.User.Attributes = attributes
		got, err := claim.NewFinder(new(answers), nil).Find(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := got.In[client.InIDToken]["x"]
		if ok == (len(got.Omitted) == 1) || ok && !json.Valid(value) {
			t.Errorf("%s of %s: %s %+v", path, attributes, value, got.Omitted)
		}
	})
}

// TestClaimsOfSignIn: first-party applications get the claims of a sign-in, after their own, as far as there
// is room. A name that is reserved by now is left out.
func TestClaimsOfSignIn(t *testing.T) {
	finder := claim.NewFinder(&answers{}, nil)
	own := of(client.ClaimSource{Attribute: "id"})
	for _, tc := range []struct {
		name       string
		firstParty bool
		signIn     string
		where      []client.ClaimPlace
		want       map[client.ClaimPlace]map[string]json.RawMessage
	}{
		{"a third party", false, `{"team":"ops"}`, client.ClaimPlaces, map[client.ClaimPlace]map[string]json.RawMessage{
			client.InIDToken: {"x": json.RawMessage(`"u"`)},
		}},
		{"all places", true, `{"team":"ops"}`, client.ClaimPlaces, map[client.ClaimPlace]map[string]json.RawMessage{
			client.InIDToken: {"x": json.RawMessage(`"u"`), "team": json.RawMessage(`"ops"`)}, client.InAccessToken: {"team": json.RawMessage(`"ops"`)}, client.InUserInfo: {"team": json.RawMessage(`"ops"`)},
		}},
		{"the same name", true, `{"x":"ops"}`, []client.ClaimPlace{client.InIDToken, client.InUserInfo}, map[client.ClaimPlace]map[string]json.RawMessage{
			client.InIDToken: {"x": json.RawMessage(`"u"`)}, client.InUserInfo: {"x": json.RawMessage(`"ops"`)},
		}},
		{"reserved names", true, `{"sub":"v","acr":"aal2","two words":1}`, []client.ClaimPlace{client.InAccessToken}, map[client.ClaimPlace]map[string]json.RawMessage{}},
		{"no room", true, fmt.Sprintf(`{"a":%q,"b":1}`, strings.Repeat("x", client.MaxClaimBytes)), []client.ClaimPlace{client.InAccessToken}, map[client.ClaimPlace]map[string]json.RawMessage{
			client.InAccessToken: {"b": json.RawMessage(`1`)},
		}},
		{"none", true, "", []client.ClaimPlace{client.InAccessToken}, map[client.ClaimPlace]map[string]json.RawMessage{}},
	} {
		r := request(own)
		r.App.FirstParty, r.SignIn, r.Where = tc.firstParty, tc.signIn, tc.where
		if got, err := finder.Find(t.Context(), r); err != nil || !reflect.DeepEqual(got.In, tc.want) {
			t.Errorf("%s: %s, %v, want %s", tc.name, got.In, err, tc.want)
		}
	}
}
