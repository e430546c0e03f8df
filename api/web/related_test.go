package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// The handler of a related operation decides about tokens without the scope.
func TestRelatedOperations(t *testing.T) {
	runs := 0
	op := Operation{ID: "change", Method: "POST", Path: "/things", Scope: "things:write", Related: true, Idempotent: true}
	var f *fixture
	f = newFixture(t, nil, route{op: op, do: func(w http.ResponseWriter, r *http.Request) {
		info := InfoOf(r.Context())
		runs++
		if info.Principal.Subject == "usr_1" {
			f.server.Fail(w, r, InsufficientScope(info, "things:write"))
			return
		}
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, runs)
	}})
	f.principals["weak"] = &token.Principal{Subject: "client_1", ClientID: "client_1", Scopes: scope.Set{}, ExpiresAt: time.Now().Add(time.Hour)}
	f.principals["bound"] = &token.Principal{Subject: "usr_1", ClientID: "client_1", Thumbprint: "x", ExpiresAt: time.Now().Add(time.Hour)}

	want(t, "no token", f.do("POST", "/things", "", ""), 401, "unauthenticated")
	want(t, "no valid token", f.do("POST", "/things", "x", ""), 401, "invalid_token")
	want(t, "must enrol", f.do("POST", "/things", "enrol", ""), 401, "insufficient_user_authentication")
	if runs != 0 {
		t.Fatalf("the handler ran %d times", runs)
	}
	if a := f.do("POST", "/things", "weak", ""); a.Code != 200 {
		t.Errorf("without the scope: %d %s", a.Code, a.Body)
	}
	refused := f.do("POST", "/things", "user", "")
	want(t, "refused by the handler", refused, 403, "insufficient_scope")
	const challenge = `error="insufficient_scope", scope="things:write"`
	if refused.detail("required_scope") != "things:write" || !strings.HasSuffix(refused.Header()["Www-Authenticate"][0], challenge) {
		t.Errorf("%s %v", refused.Body, refused.Header())
	}
	refused = f.do("POST", "/things", "", "", "Authorization", "DPoP bound", "DPoP", "proof")
	if first := refused.Header()["Www-Authenticate"][0]; refused.Code != 403 || !strings.HasPrefix(first, "DPoP ") || !strings.HasSuffix(first, challenge) {
		t.Errorf("bound: %d %v", refused.Code, refused.Header())
	}

	// A key is not shared by tokens with and without the scope of one caller.
	strong, weak := f.do("POST", "/things", "app", "", "Idempotency-Key", "k"), f.do("POST", "/things", "weak", "", "Idempotency-Key", "k")
	if strong.Body.String() == weak.Body.String() || weak.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("with the scope %s, without %s %v", strong.Body, weak.Body, weak.Header())
	}
	if again := f.do("POST", "/things", "weak", "", "Idempotency-Key", "k"); again.Body.String() != weak.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %s %v", again.Body, again.Header())
	}
}
