package api_test

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

const (
	roundTripsFile = "../docs/performance.md"
	roundTripsHead = "| request | round trips |\n|---|---|\n"
)

// TestRequestRoundTrips counts the round trips of requests to PostgreSQL and compares them with
// the table in docs/performance.md. A request must not take more, and fewer belong into the
// table.
func TestRequestRoundTrips(t *testing.T) {
	w := newWorldOn(t, sqldb.Config{URL: pgtest.URL(t), MaxConns: 2}, nil)
	c := w.tenant(t, "round-trips")
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("ann"))
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": "task", "relations": []any{object{"name": "assignee", "cardinality": "one", "on_second": "replace"}}})
	member(t, c, "ann@example.com")
	machine := w.application(t, c, "resources:read")
	branded := w.tenant(t, "round-trips-branded")
	branded.want(t, 200, "", "PATCH", brandingPath, object{"display_name": "Acme"})
	p := newParty(t, c, object{
		"allowed_scopes": []any{"openid", "offline_access", "me:read", "resources:read"}, "token_exchange": exchanging(),
	})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	tokens := func() map[string]any {
		t.Helper()
		return p.exchange(t, p.code(t, url.Values{"scope": {"openid offline_access me:read"}}), nil).body
	}
	access := tokens()["access_token"].(string)
	good := func(a answer) {
		t.Helper()
		if a.status/100 != 2 {
			t.Fatalf("%d %s", a.status, a.text)
		}
	}

	w.quiet()
	var table strings.Builder
	table.WriteString(roundTripsHead)
	number := 0 // of the request: no two write the same
	for _, op := range []struct {
		name string
		// prepare returns the request to count.
		prepare func() func() answer
	}{
		{"check", func() func() answer {
			return func() answer {
				return c.do(t, "POST", checkPath, check(user("ann"), "view", resource("document", "d")))
			}
		}},
		{"write one relation", func() func() answer {
			return func() answer {
				return relate(t, c, "document", fmt.Sprint("d", number), "viewer", user("ann"))
			}
		}},
		{"replace one relation", func() func() answer {
			return func() answer {
				return relate(t, c, "task", "t", "assignee", user(fmt.Sprint(number)))
			}
		}},
		{"create a user, with a password", func() func() answer {
			return func() answer {
				return c.do(t, "POST", "/api/v1/users", object{"email": fmt.Sprintf("u%d@example.com", number), "email_verified": true, "password": secret})
			}
		}},
		{"client credentials", func() func() answer {
			return func() answer { return c.form(t, nil, credentials(machine.id, machine.secret)) }
		}},
		{"issue a code, by session", func() func() answer {
			return func() answer {
				a, to := p.ask(t, url.Values{"scope": {"openid"}})
				if a.status == 302 && to.Query().Has("code") {
					a.status = 200
				}
				return a
			}
		}},
		{"redeem a code", func() func() answer {
			code := p.code(t, url.Values{"scope": {"openid offline_access"}})
			return func() answer { return p.exchange(t, code, nil) }
		}},
		{"refresh", func() func() answer {
			token := tokens()["refresh_token"].(string)
			return func() answer { return p.refresh(t, token, nil) }
		}},
		{"exchange a token", func() func() answer {
			return func() answer { return p.swap(t, access, url.Values{"scope": {"me:read"}}) }
		}},
		{"introspect an access token", func() func() answer {
			return func() answer {
				return p.present(t, introspectPath, basic(p.id, p.secret), url.Values{"token": {access}})
			}
		}},
		{"sign in with a password", func() func() answer {
			time.Sleep(250 * time.Millisecond) // hashing takes so long elsewhere that revocations and the version of the tenants are read again
			return func() answer { return signIn(t, c, "ann@example.com", secret, "complete") }
		}},
		{"read one's profile, by session", func() func() answer {
			mine := c.with(p.session)
			return func() answer { return mine.do(t, "GET", mePath+"/profile", nil) }
		}},
		{"show the sign-in page", func() func() answer {
			return func() answer { return answer{status: c.visit(t, "GET", "/auth/sign-in", nil, nil).status} }
		}},
		{"show the sign-in page, with a branding", func() func() answer {
			return func() answer { return answer{status: branded.visit(t, "GET", "/auth/sign-in", nil, nil).status} }
		}},
	} {
		// The first requests prepare their statements, and some read revocations on behalf
		// of all. So the least of several is what the request needs.
		least := int64(math.MaxInt64)
		for range 10 {
			number++
			allowed(t, c, user("ann"), "view", "document", "d") // reads revocations if it is time
			send := op.prepare()
			before := w.db.Stats().RoundTrips
			good(send())
			least = min(least, w.db.Stats().RoundTrips-before)
		}
		fmt.Fprintf(&table, "| %s | %d |\n", op.name, least)
	}
	text, err := os.ReadFile(roundTripsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), roundTripsHead)
	documented, _, _ := strings.Cut(rest, "\n\n")
	if !found || roundTripsHead+strings.TrimSuffix(documented, "\n")+"\n" != table.String() {
		t.Errorf("%s has another table than\n%s", roundTripsFile, table.String())
	}
}
