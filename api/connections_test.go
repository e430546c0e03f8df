package api_test

import (
	"slices"
	"strings"
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

// Nothing in a transaction needs a second connection: else as many requests as there are
// connections would wait for each other. With one connection each would wait for itself,
// until its deadline.
func TestOneConnection(t *testing.T) {
	w := newWorldOn(t, sqldb.Config{URL: pgtest.URL(t), MaxConns: 1}, nil)
	flows := []string{
		"types", "attributes", "bulk", "expiry",
		"users", "user_states", "groups", "group_members", "administrators", "import",
		"sign_in", "self_service", "sign_up", "password_reset", "authenticator_app", "email_change", "identities", "devices",
		"applications", "application_setup", "application_race", "registration", "client_changes",
		"authorization_code", "refresh_family", "consent", "token_exchange", "bound_tokens", "pushed_requests", "logout", "backchannel_logout",
		"scopes", "scope_race", "settings", "signing_keys", "idempotency",
	}
	slices.Sort(flows) // the order of TestConformance
	for _, name := range flows {
		t.Run(name, func(t *testing.T) {
			scenarios[name](t, w, w.tenant(t, strings.ReplaceAll(name, "_", "-")))
		})
	}
}
