package authority

import (
	"context"
	"errors"
	"testing"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

func TestChecker(t *testing.T) {
	store := memstore.New(memstore.Config{})
	e, err := engine.New(engine.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	holds := func(scope string, s tuplestore.Subject) engine.WriteOp {
		return engine.WriteOp{Resource: tuplestore.Object{Type: schema.ScopeType, ID: scope}, Relation: schema.ScopeHolder, Subject: s}
	}
	staff := tuplestore.Subject{Type: schema.GroupType, ID: "staff", Relation: schema.GroupMember}
	_, err = e.Write(t.Context(), "t", engine.WriteRequest{Ops: []engine.WriteOp{
		holds("users:write", staff), holds("groups:write", staff), holds("orders:ship", staff),
		holds("users:write", tuplestore.Subject{Type: schema.ApplicationType, ID: "client_a"}),
		{Resource: staff.Object(), Relation: schema.GroupMember, Subject: tuplestore.Subject{Type: schema.UserType, ID: "usr_boss"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := New(e, []string{"users:write", "groups:write", "webhooks:write"})
	as := func(typ, id string, scopes ...string) context.Context {
		return With(t.Context(), func() Caller { return Caller{typ, id, scopes} })
	}
	user, application := schema.UserType, schema.ApplicationType
	for name, tc := range map[string]struct {
		ctx    context.Context
		give   []string
		denied string // scope; empty: allowed
	}{
		"the product":             {t.Context(), []string{"users:write", "webhooks:write"}, ""},
		"anonymous":               {With(t.Context(), func() Caller { return Caller{} }), []string{"users:write"}, "users:write"},
		"anonymous, nothing":      {With(t.Context(), func() Caller { return Caller{} }), nil, ""},
		"held":                    {as(user, "usr_boss", "users:write", "groups:write"), []string{"users:write", "groups:write"}, ""},
		"not compared":            {as(user, "usr_eve"), []string{"orders:ship", "me:read"}, ""},
		"not in the token":        {as(user, "usr_boss", "users:write"), []string{"users:write", "groups:write"}, "groups:write"},
		"in the token only":       {as(user, "usr_eve", "users:write"), []string{"users:write"}, "users:write"},
		"held by nobody":          {as(user, "usr_boss", "webhooks:write"), []string{"webhooks:write"}, "webhooks:write"},
		"an application":          {as(application, "client_a", "users:write"), []string{"users:write"}, ""},
		"an application's other":  {as(application, "client_a", "users:write", "groups:write"), []string{"groups:write"}, "groups:write"},
		"an id of the other type": {as(user, "client_a", "users:write"), []string{"users:write"}, "users:write"},
	} {
		err := c.MayGive(tc.ctx, "t", tc.give)
		var denied *DeniedError
		if errors.As(err, &denied) != (tc.denied != "") || denied != nil && denied.Scope != tc.denied || denied == nil && err != nil {
			t.Errorf("%s: %v, want %q", name, err, tc.denied)
		}
	}

	for name, tc := range map[string]struct {
		ctx    context.Context
		userID string
		want   bool
	}{
		"an equal":           {as(user, "usr_boss", "users:write", "groups:write"), "usr_boss", true},
		"one who holds less": {as(application, "client_a", "users:write"), "usr_eve", true},
		"one who holds more": {as(application, "client_a", "users:write"), "usr_boss", false},
		"the product":        {t.Context(), "usr_boss", true},
	} {
		if err := c.MayManage(tc.ctx, "t", tc.userID); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}

	var none *Checker
	if none.MayGive(as(user, "usr_boss", "users:write"), "t", []string{"users:write"}) == nil || none.MayManage(as(user, "usr_boss"), "t", "usr_eve") == nil {
		t.Error("without a checker everything is allowed")
	}
	if err := none.MayGive(t.Context(), "t", []string{"users:write"}); err != nil {
		t.Error(err)
	}
}
