package oauth_test

import (
	"errors"
	"testing"
	"time"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// Unvetted clients are counted by source, and those that no user signs in to are deleted.
func TestUnvettedClientsAreBounded(t *testing.T) {
	w := newWorld(t)
	register := func(tenant protocol.Tenant, by string) (client.Registered, error) {
		return w.Clients.Register(t.Context(), tenant, client.Metadata{RedirectURIs: []string{"https://agent.example.com/cb"}, AuthMethod: client.NoClientAuth}, by)
	}
	var used client.Registered
	for range client.MaxUnvetted {
		var err error
		if used, err = register(tenantA, ""); err != nil {
			t.Fatal(err)
		}
	}
	_, err := register(tenantA, "")
	if refused, ok := errors.AsType[*protocol.Error](err); !ok || refused.Code != protocol.InvalidRequest {
		t.Fatalf("beyond the bound: %v", err)
	}
	invited, err := register(tenantA, "usr_admin")
	if err != nil {
		t.Errorf("with a token: %v", err)
	}
	if _, err := register(tenantB, ""); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := w.db.Exec(t.Context(), `UPDATE applications SET last_used_at = 1 WHERE client_id = $1`, used.Application.ClientID); err != nil {
		t.Fatal(err)
	}
	left := func() (n int64) {
		t.Helper()
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM applications WHERE tenant_id = $1`, tenantA.ID).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	forget := func() {
		t.Helper()
		for range 12 { // a hundred at a time
			if err := w.Clients.ForgetUnvetted(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.clock.add(client.UnvettedFor - time.Minute)
	if forget(); left() != client.MaxUnvetted+1 {
		t.Errorf("%d applications before the time", left())
	}
	w.clock.add(2 * time.Minute)
	if forget(); left() != 2 {
		t.Errorf("%d applications are left", left())
	}
	for _, kept := range []client.Registered{used, invited} {
		if _, err := w.Clients.ByClientID(t.Context(), tenantA.ID, kept.Application.ClientID); err != nil {
			t.Error(err)
		}
	}
	if _, err := register(tenantA, ""); err != nil {
		t.Errorf("later: %v", err)
	}
}
