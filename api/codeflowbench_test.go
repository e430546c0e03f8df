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
	for database, at := range databases {
		for _, users := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/users=%d", database, users), func(b *testing.B) {
				newCodeFlow(b, at(b), users, nil, nil).run(b)
			})
		}
	}
}

// BenchmarkTokenContents compares sign-ins whose tokens have more in them: configured claims of an
// attribute and groups; claims of the relations to a resource and a list of ten resources, which the
// engine answers; and authorization details of ten resources, which the engine checks.
func BenchmarkTokenContents(b *testing.B) {
	var details []any
	for i := range 10 {
		details = append(details, detail("document", []any{"view"}, []any{fmt.Sprint("d", i)}))
	}
	for database, at := range databases {
		for name, contents := range map[string]struct {
			claims  []any
			request url.Values
		}{
			"plain":      {},
			"attributes": {claims: []any{configured("mail", object{"attribute": "email"}, "id_token", "access_token"), configured("groups", object{"groups": "slug"}, "id_token", "access_token")}},
			"relations": {claims: []any{
				configured("roles", object{"relations": object{"type": "document", "id": "d0"}}, "id_token", "access_token"),
				configured("documents", object{"resources": object{"type": "document", "action": "view"}}, "id_token"),
			}},
			"details": {request: asking(b, details...)},
		} {
			b.Run(database+"/"+name, func(b *testing.B) {
				newCodeFlow(b, at(b), 64, contents.claims, contents.request).run(b)
			})
		}
	}
}

// codeFlow is an application, and users with sessions.
type codeFlow struct {
	*client
	w       *world
	party   *relyingParty
	request url.Values
	cookies []string
	browser http.Client
}

const flowsAtOnce = 16

func newCodeFlow(b *testing.B, database string, users int, claims []any, request url.Values) *codeFlow {
	w := newWorldOn(b, sqldb.Config{URL: database}, nil, func(c *server.Config) {
		for _, counted := range ratelimit.All() {
			c.RateLimits[counted] = ratelimit.Limit{}
		}
		c.AccessLog, c.Logger = false, slog.New(slog.DiscardHandler)
	})
	c := w.tenant(b, "bench")
	define(b, c)
	c.want(b, 201, "", "POST", "/api/v1/scopes", object{"name": "print", "description": "Print", "entitlement": "group"})
	group := c.want(b, 201, "", "POST", groupsPath, object{"slug": "staff", "name": "Staff", "scopes": []any{"print"}}).data()["id"].(string)
	for i := range 10 {
		relate(b, c, "document", fmt.Sprint("d", i), "viewer", object{"type": "group", "id": group})
	}
	form := object{}
	if claims != nil {
		form["claims"] = claims
	}
	f := &codeFlow{client: c, w: w, party: newParty(b, c, form), cookies: make([]string, users)}
	f.request = f.party.request(request)
	for i := range users {
		email := fmt.Sprintf("user%d@example.com", i)
		c.want(b, 201, "", "POST", groupsPath+"/"+group+"/members", object{"user_id": member(b, c, email)})
		f.cookies[i] = "__Host-sid=" + signIn(b, c, email, secret, "complete").data()["session_token"].(string)
	}
	f.browser = http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: flowsAtOnce},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// run measures sign-ins of the users in turn.
func (f *codeFlow) run(b *testing.B) {
	if err := f.signIn(b, f.cookies[0]); err != nil { // makes the signing keys
		b.Fatal(err)
	}
	var n atomic.Int64
	before := f.w.db.Stats()
	b.ResetTimer()
	b.SetParallelism(flowsAtOnce / 2)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := f.signIn(b, f.cookies[n.Add(1)%int64(len(f.cookies))]); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "flows/s")
	b.ReportMetric(float64(f.w.db.Stats().Statements-before.Statements)/float64(b.N), "statements/flow")
}

func (f *codeFlow) signIn(b *testing.B, cookie string) error {
	res, text, err := f.send(b, "GET", "/oauth2/authorize?"+f.request.Encode(), "", http.Header{"Cookie": {cookie}})
	if err != nil {
		return err
	}
	to, err := res.Location()
	if err != nil {
		return fmt.Errorf("%s %s: %w", res.Status, text, err)
	}
	_, text, err = f.send(b, "POST", "/oauth2/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {f.party.id}, "client_secret": {f.party.secret}, "code": {to.Query().Get("code")},
		"redirect_uri": {callback}, "code_verifier": {verifier},
	}.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if err == nil && (!bytes.Contains(text, []byte(`"id_token"`)) || !bytes.Contains(text, []byte("print"))) {
		err = fmt.Errorf("%s", text)
	}
	return err
}

func (f *codeFlow) send(b *testing.B, method, path, body string, header http.Header) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(b.Context(), method, f.server.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Host, req.Header = f.host, header
	res, err := f.browser.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, text, err
}
