package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"stonetown/internal/ratelimit"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

// BenchmarkCallbacks completes sign-ins at providers in the same process, one after the other: the
// answer is verified, the account found by its identity, and a session begun. The provider signs before
// the clock starts. The signatures alone are BenchmarkSignature of package relyingparty and
// BenchmarkFinish of package serviceprovider.
func BenchmarkCallbacks(b *testing.B) {
	const users = 100
	unlimited := func(c *server.Config) {
		for _, counted := range ratelimit.All() {
			c.RateLimits[counted] = ratelimit.Limit{}
		}
		c.AccessLog = false
	}
	for database, at := range databases {
		run := func(kind string, prepare func(w *world, c *client) (answer func(user int) object)) {
			b.Run(database+"/"+kind, func(b *testing.B) {
				w := newWorldOn(b, sqldb.Config{URL: at(b)}, nil, unlimited)
				c := w.tenant(b, "bench")
				answer := prepare(w, c)
				request := func(user int) *http.Request {
					body, err := json.Marshal(answer(user))
					if err != nil {
						b.Fatal(err)
					}
					req, err := http.NewRequestWithContext(b.Context(), "POST", c.server.URL+authPath+"/federation/complete", bytes.NewReader(body))
					if err != nil {
						b.Fatal(err)
					}
					req.Host = c.host
					req.Header.Set("Content-Type", "application/json")
					return req
				}
				// The client of the tests compares every response with the document.
				complete := func(req *http.Request) {
					res, err := http.DefaultClient.Do(req)
					if err != nil {
						b.Fatal(err)
					}
					defer res.Body.Close()
					if text, err := io.ReadAll(res.Body); err != nil || !bytes.Contains(text, []byte(`"session_token"`)) {
						b.Fatalf("%s, %v", text, err)
					}
				}
				for user := range users { // the first sign-in creates the account
					complete(request(user))
				}
				n := 0
				for b.Loop() {
					b.StopTimer()
					req := request(n % users)
					b.StartTimer()
					complete(req)
					n++
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "callbacks/s")
			})
		}
		email := func(user int) string { return fmt.Sprintf("user%d@example.org", user) }
		run("OIDC", func(w *world, c *client) func(int) object {
			p := newOpenID(b, w)
			staff(b, c, p, nil)
			return func(user int) object {
				started := c.start(b, "staff", "")
				return started.complete("staff", p.signIn(b, started.request, object{"sub": fmt.Sprint(user), "email": email(user), "email_verified": true}))
			}
		})
		run("SAML", func(w *world, c *client) func(int) object {
			p := newSAML(w)
			partner(b, c, p, object{"trust_email": true})
			return func(user int) object {
				started, request := c.startSAML(b, p, "")
				name := samltest.Response{Attributes: map[string][]string{"mail": {email(user)}}, Session: "s"}
				name.NameID.Value, name.NameID.Format = fmt.Sprint(user), samlPersistent
				return started.complete("partner", url.Values(p.Respond(b, request, name)))
			}
		})
	}
}
