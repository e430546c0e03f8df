package webhooks

import (
	"testing"

	"stonetown/internal/eventlog"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/tuplestore"
	"stonetown/webhooks"
)

// Only applications and users in person have the relations of owners and viewers.
func TestCaller(t *testing.T) {
	app, user := tuplestore.Subject{Type: "application", ID: "client_a"}, tuplestore.Subject{Type: "user", ID: "usr_a"}
	actor := eventlog.Actor{Type: "application", ID: "client_b"}
	for name, tc := range map[string]struct {
		principal token.Principal
		want      webhooks.Caller
	}{
		"an application":                 {token.Principal{Subject: "client_a", ClientID: "client_a"}, webhooks.Caller{Subject: app}},
		"a user in a session":            {token.Principal{Subject: "usr_a", ClientID: token.FirstParty, SessionID: "ses_a"}, webhooks.Caller{Subject: user}},
		"an application for a user":      {token.Principal{Subject: "usr_a", ClientID: "client_a", SessionID: "ses_a"}, webhooks.Caller{}},
		"an application for another one": {token.Principal{Subject: "client_a", ClientID: "client_b"}, webhooks.Caller{}},
		"delegated by an application":    {token.Principal{Subject: "client_a", ClientID: "client_a", Actor: actor}, webhooks.Caller{}},
		"delegated by a user":            {token.Principal{Subject: "usr_a", ClientID: token.FirstParty, Actor: actor}, webhooks.Caller{}},
		"exchanged by an application":    {token.Principal{Subject: "client_a", ClientID: "client_a", Ancestors: make([]token.Ancestor, 1)}, webhooks.Caller{}},
		"with the scope to read":         {token.Principal{Subject: "usr_a", ClientID: "client_a", Scopes: scope.Set{"webhooks:read": {}}}, webhooks.Caller{Reads: true}},
		"with the scope to write":        {token.Principal{Subject: "client_a", ClientID: "client_a", Scopes: scope.Set{"webhooks:write": {}}}, webhooks.Caller{Writes: true, Subject: app}},
	} {
		if got := callerOf(&tc.principal); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
