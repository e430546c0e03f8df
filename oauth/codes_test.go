package oauth_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"stonetown/internal/pgtest"
	"stonetown/oauth"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
)

const (
	codeCallback = "https://app.example.com/cb"
	// The pair of RFC 7636, appendix B.
	codeVerifier, codeChallenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// onProcesses runs a test on a database that one process has, or that two share.
func onProcesses(t *testing.T, test func(t *testing.T, w *world, processes []*oauth.Service)) {
	t.Run("SQLite", func(t *testing.T) {
		w := newWorldOn(t, open(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db")))
		test(t, w, []*oauth.Service{w.Service})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.URL(t)
		w := newWorldOn(t, open(t, url))
		test(t, w, []*oauth.Service{w.Service, w.service(open(t, url), 1)})
	})
}

// coding creates an application, and returns its request to redeem codes.
func (w *world) coding() (client.Application, grants.Request) {
	setup := *client.Server.Defaults()
	setup.Name, setup.RedirectURIs, setup.AllowedScopes = "codes", []string{codeCallback}, []string{"openid", "offline_access"}
	app, secret := w.application(tenantA, setup)
	r := request(app, secret)
	r.GrantType, r.RedirectURI, r.CodeVerifier = protocol.GrantAuthorizationCode, codeCallback, codeVerifier
	return app, r
}

func (w *world) codeOf(by *oauth.Service, app client.Application) (string, error) {
	return by.Authorization.IssueCode(w.t.Context(), tenantA, authorization.Request{
		ClientID: app.ClientID, RedirectURI: codeCallback, Scopes: []string{"openid", "offline_access"}, Challenge: codeChallenge,
	}, access.Authentication{UserID: "usr_1", SessionID: "ses_1", Methods: []string{"pwd"}, AuthTime: w.clock.Now()})
}

// Codes of one user are issued and redeemed by many requests at once, of two processes. Each code
// leads to tokens once, and the tokens end because it was presented again (RFC 6749 §4.1.2).
// A code that is presented with a wrong verifier is not used by that.
func TestCodesAtOnce(t *testing.T) {
	onProcesses(t, func(t *testing.T, w *world, processes []*oauth.Service) {
		const codes, times = 12, 6
		app, redeem := w.coding()
		var all sync.WaitGroup
		var mu sync.Mutex
		refresh := map[string][]string{} // tokens by code
		for i := range codes {
			all.Go(func() {
				code, err := w.codeOf(processes[i%len(processes)], app)
				if err != nil {
					t.Error(err)
					return
				}
				for n := range times {
					all.Go(func() {
						process, r := processes[n%len(processes)], redeem
						r.Code = code
						if n%3 == 2 {
							r.CodeVerifier = codeVerifier + "x"
						}
						got, err := process.Grants.Token(t.Context(), tenantA, r)
						if err != nil && !errors.Is(err, access.ErrInvalidGrant) {
							t.Error(err)
						}
						if err == nil {
							mu.Lock()
							refresh[code] = append(refresh[code], got.RefreshToken)
							mu.Unlock()
						}
					})
				}
			})
		}
		all.Wait()
		if len(refresh) != codes {
			t.Errorf("%d of %d codes led to tokens", len(refresh), codes)
		}
		for _, tokens := range refresh {
			if len(tokens) != 1 {
				t.Errorf("a code led to tokens %d times", len(tokens))
			}
			again := redeem
			again.GrantType, again.Code, again.RefreshToken = protocol.GrantRefreshToken, "", tokens[0]
			if _, err := processes[0].Grants.Token(t.Context(), tenantA, again); !errors.Is(err, access.ErrInvalidGrant) {
				t.Errorf("a refresh token of a code that was used twice: %v", err)
			}
		}
	})
}

// A user who ends the access of an application while codes are issued for it keeps no access that
// the list of applications does not show.
func TestCodesWhileAccessEnds(t *testing.T) {
	onProcesses(t, func(t *testing.T, w *world, processes []*oauth.Service) {
		app, _ := w.coding()
		for range 10 {
			var all sync.WaitGroup
			for i := range 8 {
				process := processes[i%len(processes)]
				all.Go(func() {
					if _, err := w.codeOf(process, app); err != nil {
						t.Error(err)
					}
				})
				if i%4 == 3 {
					all.Go(func() {
						err := process.Access.EndAuthorization(t.Context(), tenantA, "usr_1", app.ID)
						if err != nil && !errors.Is(err, access.ErrNoAuthorization) {
							t.Error(err)
						}
					})
				}
			}
			all.Wait()
			var live, listed int64
			err := errors.Join(
				w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM grants WHERE tenant_id = $1 AND revoked_at = 0`, tenantA.ID).Scan(&live),
				w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM authorizations WHERE tenant_id = $1`, tenantA.ID).Scan(&listed),
			)
			if err != nil || live > 0 && listed != 1 {
				t.Errorf("%d live grants, and %d applications in the list, %v", live, listed, err)
			}
		}
	})
}
