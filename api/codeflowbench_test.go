package api_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

// BenchmarkCodeFlow signs users who have a session in to an application, 16 at once: the request of
// the browser for a code, and the application's request for tokens. The users are members of a group
// with a scope. One user who signs in again and again shares rows that many users do not.
func BenchmarkCodeFlow(b *testing.B) {
	const atOnce = 16
	for database, at := range databases {
		for _, users := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/users=%d", database, users), func(b *testing.B) {
				w := newWorldOn(b, sqldb.Config{URL: at(b)}, nil, func(c *server.Config) {
					for _, counted := range ratelimit.All() {
						c.RateLimits[counted] = ratelimit.Limit{}
					}
					c.AccessLog, c.Logger = false, slog.New(slog.DiscardHandler)
				})
				c := w.tenant(b, "bench")
				c.want(b, 201, "", "POST", "/api/v1/scopes", object{"name": "print", "description": "Print", "entitlement": "group"})
				group := c.want(b, 201, "", "POST", "/api/v1/groups", object{"slug": "staff", "name": "Staff", "scopes": []any{"print"}}).data()["id"].(string)
				p := newParty(b, c, nil)
				cookies := make([]string, users)
				for i := range users {
					email := fmt.Sprintf("user%d@example.com", i)
					c.want(b, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": member(b, c, email)})
					cookies[i] = "__Host-sid=" + signIn(b, c, email, secret, "complete").data()["session_token"].(string)
				}
				client := http.Client{
					Transport:     &http.Transport{MaxIdleConnsPerHost: atOnce},
					CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
				}
				send := func(method, path, body string, header http.Header) (*http.Response, []byte, error) {
					req, err := http.NewRequestWithContext(b.Context(), method, c.server.URL+path, strings.NewReader(body))
					if err != nil {
						return nil, nil, err
					}
					req.Host, req.Header = c.host, header
					res, err := client.Do(req)
					if err != nil {
						return nil, nil, err
					}
					defer res.Body.Close()
					text, err := io.ReadAll(res.Body)
					return res, text, err
				}
				flow := func(cookie string) error {
					res, text, err := send("GET", "/oauth2/authorize?"+p.request(nil).Encode(), "", http.Header{"Cookie": {cookie}})
					if err != nil {
						return err
					}
					to, err := res.Location()
					if err != nil {
						return fmt.Errorf("%s %s: %w", res.Status, text, err)
					}
					_, text, err = send("POST", "/oauth2/token", url.Values{
						"grant_type": {"authorization_code"}, "client_id": {p.id}, "client_secret": {p.secret}, "code": {to.Query().Get("code")},
						"redirect_uri": {callback}, "code_verifier": {verifier},
					}.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
					if err == nil && !bytes.Contains(text, []byte(`"id_token"`)) || !bytes.Contains(text, []byte("print")) {
						err = fmt.Errorf("%s", text)
					}
					return err
				}
				if err := flow(cookies[0]); err != nil { // makes the signing keys
					b.Fatal(err)
				}
				var n atomic.Int64
				before := w.db.Stats()
				b.ResetTimer()
				b.SetParallelism(atOnce / 2)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := flow(cookies[n.Add(1)%int64(users)]); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "flows/s")
				b.ReportMetric(float64(w.db.Stats().Statements-before.Statements)/float64(b.N), "statements/flow")
			})
		}
	}
}
