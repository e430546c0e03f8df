package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	notesAPI = "https://notes.example.com/mcp"
	mailAPI  = "https://mail.example.com/mcp"
)

// anyone is every subject of a type.
func anyone(typ string) object { return object{"type": typ, "id": "*"} }

// resourceIndicators gets tokens for resources that the tenant has made known (RFC 8707).
func resourceIndicators(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	ann := member(t, c, "ann@example.com")
	p := newParty(t, c, object{"allowed_scopes": []any{"openid", "email", "me:read", "offline_access", "resources:read"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	app := object{"type": "application", "id": p.id}
	both := url.Values{"resource": {notesAPI, mailAPI}}
	refused := func(what string, a answer) {
		t.Helper()
		equal(t, what, []any{a.status, a.body["error"]}, []any{400, "invalid_target"})
	}
	denied := func(what, code string, changes url.Values) {
		t.Helper()
		_, to := p.ask(t, changes)
		equal(t, what, []any{to.Query().Get("error"), to.Query().Get("iss")}, []any{code, c.base()})
	}
	pushed := func(resources ...string) answer {
		v := p.request(url.Values{"resource": resources})
		v.Set("client_secret", p.secret)
		return p.present(t, "/oauth2/par", nil, v)
	}
	device := func(resources ...string) answer {
		return p.present(t, "/oauth2/device_authorization", basic(p.id, p.secret), url.Values{"resource": resources})
	}
	itself := func(resources ...string) answer {
		return p.form(t, nil, joined(credentials(p.id, p.secret), url.Values{"resource": resources, "scope": {"resources:read"}}))
	}

	// Nobody has made the resources known; then only the application may call them, or the user.
	denied("unknown", "invalid_target", both)
	for what, a := range map[string]answer{"pushed": pushed(notesAPI), "device": device(notesAPI), "itself": itself(notesAPI)} {
		refused(what, a)
	}
	permit(t, c, "audience", notesAPI, "caller", user(ann))
	denied("the user only", "invalid_target", url.Values{"resource": {notesAPI}})
	permit(t, c, "audience", notesAPI, "caller", app)
	permit(t, c, "audience", mailAPI, "caller", anyone("application"))
	denied("the application only", "access_denied", url.Values{"resource": {mailAPI}})
	denied("one of two", "access_denied", both)
	permit(t, c, "audience", mailAPI, "caller", anyone("user"))
	for _, malformed := range []string{"/mcp", notesAPI + "#a", "x y"} {
		denied(malformed, "invalid_target", url.Values{"resource": {malformed}})
		for what, a := range map[string]answer{"pushed": pushed(malformed), "device": device(malformed), "itself": itself(malformed)} {
			refused(what+" "+malformed, a)
		}
	}
	many := slices.Repeat([]string{notesAPI}, 11)
	refused("eleven", itself(many...))

	// The token has exactly these as audience: with it, no resource can act at the tenant.
	got := p.exchange(t, p.code(t, joined(both, url.Values{"scope": {"openid me:read offline_access"}})), nil).body
	claims := claimsOf(t, got["access_token"].(string))
	equal(t, "both", claims["aud"], any([]any{notesAPI, mailAPI}))
	c.with(got["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/api/v1/me/profile", nil)
	c.with(got["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)

	// A token request can ask for fewer, and not for others.
	narrower := p.refresh(t, got["refresh_token"].(string), url.Values{"resource": {mailAPI}}).body
	equal(t, "narrowed", claimsOf(t, narrower["access_token"].(string))["aud"], any(mailAPI))
	refresh := narrower["refresh_token"].(string)
	refused("others", p.refresh(t, refresh, url.Values{"resource": {mailAPI, stockAPI}}))
	refused("the tenant", p.refresh(t, refresh, url.Values{"resource": {c.base()}}))
	equal(t, "a code, narrowed", claimsOf(t, p.exchange(t, p.code(t, both), url.Values{"resource": {notesAPI}}).body["access_token"].(string))["aud"], any(notesAPI))
	plain := p.code(t, nil)
	refused("a code without resources", p.exchange(t, plain, url.Values{"resource": {notesAPI}}))
	requestURI := pushed(notesAPI).body["request_uri"].(string)
	_, to := p.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {p.id}, "request_uri": {requestURI}}.Encode())
	equal(t, "pushed", claimsOf(t, p.exchange(t, to.Query().Get("code"), nil).body["access_token"].(string))["aud"], any(notesAPI))
	equal(t, "device", device(notesAPI, mailAPI).status, 200)
	own := claimsOf(t, itself(mailAPI).body["access_token"].(string))
	equal(t, "itself", []any{own["aud"], own["sub"]}, []any{mailAPI, p.id})

	// A relation that ends bounds the token; without it there is no new one.
	c.want(t, 204, "", "DELETE", path("audience", notesAPI)+"/relations", relation(user(ann), "caller"))
	refused("lost", p.refresh(t, refresh, url.Values{"resource": {notesAPI}}))
	refused("lost, all of them", p.refresh(t, refresh, nil))
	ends := time.Now().Add(10 * time.Minute).Truncate(time.Second)
	expiring := relation(user(ann), "caller")
	expiring["expires_at"] = ends.UTC().Format(time.RFC3339)
	c.want(t, 201, "", "POST", path("audience", notesAPI)+"/relations", expiring)
	short := p.refresh(t, refresh, url.Values{"resource": {notesAPI}}).body
	equal(t, "until", claimsOf(t, short["access_token"].(string))["exp"], any(float64(ends.Unix())))
	if seconds := short["expires_in"].(float64); seconds > 600 {
		t.Errorf("expires_in is %v", seconds)
	}
}

// openRegistration registers clients without a token, for resources that the tenant has opened.
func openRegistration(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	c.want(t, 200, "", "PATCH", settingsPath, object{"dcr_mode": "open"})
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "notes:read", "description": "read your notes", "entitlement": "self"})
	metadata := object{
		"client_name": "Agent", "redirect_uris": []any{callback}, "token_endpoint_auth_method": "none", "grant_types": []any{"authorization_code", "refresh_token"},
		"scope": "notes:read resources:write",
	}
	r := register(t, c.with(""), metadata)
	equal(t, "client", []any{r.information["client_secret"], r.information["scope"]}, []any{nil, "notes:read"})
	app := r.application(t, c)
	equal(t, "application", []any{app["dynamically_registered"], app["first_party"], app["audit_summary"].(object)["last_change_by"]}, []any{true, false, nil})
	// A token that is sent must be right.
	c.with("x").want(t, 401, "invalid_token", "POST", registerPath, metadata)
	reader := c.with(w.token(t, c, w.application(t, c, "applications:read")))
	reader.want(t, 403, "insufficient_scope", "POST", registerPath, metadata)

	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	p := r.party(session)
	request := url.Values{"scope": {"notes:read"}, "resource": {notesAPI}, "nonce": nil}
	_, to := p.ask(t, request)
	equal(t, "closed", to.Query().Get("error"), "invalid_target")
	permit(t, c, "audience", notesAPI, "caller", anyone("application"))
	permit(t, c, "audience", notesAPI, "caller", anyone("user"))
	_, to = p.ask(t, request)
	equal(t, "asked", to.Path, "/auth/consent")
	answered := c.with(session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": p.flow, "decision": "allow"}).data()["redirect_to"].(string)
	_, to = p.browse(t, answered)
	got := p.exchange(t, to.Query().Get("code"), nil).body
	claims := claimsOf(t, got["access_token"].(string))
	equal(t, "token", []any{claims["aud"], claims["scope"], claims["client_id"]}, []any{notesAPI, "notes:read", p.id})
	if got["refresh_token"] == nil {
		t.Error("no refresh token")
	}
}

// agentActs follows the authority of an agent that acts for a user, from its relations to its end.
func agentActs(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	define(t, c)
	ann := member(t, c, "ann@example.com")
	relate(t, c, "document", "plans/q1", "viewer", user(ann))
	relate(t, c, "document", "notes", "viewer", user(ann))
	host := newParty(t, c, object{"name": "Host", "allowed_scopes": []any{"openid", "offline_access"}})
	host.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	act := object{"enabled": true, "allowed_subject_types": []any{"user"}}
	exchange := object{"enabled": true, "allowed_audiences": []any{notesAPI}, "act_as": act}
	agent := newParty(t, c, object{"name": "Agent", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "token_exchange": exchange})
	sub := newParty(t, c, object{"name": "Sub-agent", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "token_exchange": exchange})
	permit(t, c, "audience", notesAPI, "caller", user(ann))
	for id, ends := range map[string]time.Duration{agent.id: 20 * time.Minute, sub.id: 10 * time.Minute} {
		may := relation(object{"type": "application", "id": id}, "act_as")
		may["expires_at"] = time.Now().Add(ends).UTC().Format(time.RFC3339)
		c.want(t, 201, "", "POST", path("user", ann)+"/relations", may)
	}
	look := detail("document", []any{"view"}, []any{"notes", "plans/q1"})
	one := detail("document", []any{"view"}, []any{"notes"})
	hers := host.exchange(t, host.code(t, asking(t, look)), nil).body["access_token"].(string)
	acting := func(p *relyingParty, subject string, more url.Values) answer {
		t.Helper()
		own := p.form(t, nil, credentials(p.id, p.secret)).body["access_token"].(string)
		v := url.Values{"actor_token": {own}, "actor_token_type": {tokenTypes + "access_token"}, "resource": {notesAPI}}
		maps.Copy(v, more)
		return p.swap(t, subject, v)
	}

	// Each step names its actor, and lasts no longer than what permits it.
	first := acting(agent, hers, nil).body
	claims := claimsOf(t, first["access_token"].(string))
	equal(t, "first", []any{claims["sub"], claims["aud"], claims["act"].(object)["sub"], claims["authorization_details"]}, []any{ann, notesAPI, agent.id, []any{look}})
	if seconds := first["expires_in"].(float64); seconds > 20*60 || seconds < 10*60 {
		t.Errorf("the first token lasts %v seconds", seconds)
	}
	second := acting(sub, first["access_token"].(string), asking(t, one)).body
	claims = claimsOf(t, second["access_token"].(string))
	chain := claims["act"].(object)
	equal(t, "second", []any{claims["sub"], chain["sub"], chain["act"].(object)["sub"], claims["authorization_details"]}, []any{ann, sub.id, agent.id, []any{one}})
	if seconds := second["expires_in"].(float64); seconds > 10*60 {
		t.Errorf("the second token lasts %v seconds", seconds)
	}
	wider := acting(sub, second["access_token"].(string), asking(t, look))
	equal(t, "wider", []any{wider.status, wider.body["error"]}, []any{400, "invalid_authorization_details"})

	// The server of the resource learns at once what was lost, and that the first actor has ended.
	server := newParty(t, c, object{"name": "Notes", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "audience": notesAPI})
	introspected := func(token any) object {
		t.Helper()
		return server.present(t, introspectPath, basic(server.id, server.secret), url.Values{"token": {token.(string)}}).body
	}
	equal(t, "introspected", introspected(second["access_token"])["authorization_details"], any([]any{one}))
	c.want(t, 204, "", "DELETE", path("document", "notes")+"/relations", relation(user(ann), "viewer"))
	equal(t, "lost", introspected(second["access_token"])["authorization_details"], any([]any{}))
	c.want(t, 204, "", "DELETE", path("user", ann)+"/relations", relation(object{"type": "application", "id": agent.id}, "act_as"))
	again := acting(agent, hers, nil)
	equal(t, "no longer", []any{again.status, again.body["error"]}, []any{400, "invalid_grant"})
	for _, item := range c.want(t, 200, "", "GET", appsPath+"?q="+agent.id, nil).list() {
		c.want(t, 204, "", "DELETE", appsPath+"/"+item.(object)["id"].(string), nil)
	}
	equal(t, "ended", introspected(second["access_token"])["active"], any(false))
}

// clientDocuments admits clients that a document at their client_id describes.
func clientDocuments(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	var said atomic.Pointer[http.HandlerFunc] // how the publisher responds
	var fetches atomic.Int32
	publisher := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		(*said.Load())(rw, r)
	}))
	defer publisher.Close()
	host := strings.TrimPrefix(publisher.URL, "http://")
	respond := func(status int, media, cached string, body any) {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		said.Store(new(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", media)
			rw.Header().Set("Cache-Control", cached)
			rw.Header().Set("Location", publisher.URL+"/elsewhere")
			rw.WriteHeader(status)
			_, _ = rw.Write(text)
		})))
	}
	document := func(id string, changes object) object {
		d := object{"client_id": id, "client_name": "Agent", "redirect_uris": []any{callback}, "grant_types": []any{"authorization_code", "refresh_token", "urn:example:other"}}
		maps.Copy(d, changes)
		return d
	}
	supported := func() any {
		return c.with("").want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil).body["client_id_metadata_document_supported"]
	}
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	party := func(id string) *relyingParty { return &relyingParty{client: c.with(""), id: id, session: session} }
	request := url.Values{"scope": nil, "nonce": nil}
	refused := func(what, id, reason string) {
		t.Helper()
		a, _ := party(id).ask(t, request)
		if a.status != 400 || !strings.Contains(a.text, reason) {
			t.Errorf("%s: %d %s, want %q", what, a.status, a.text, reason)
		}
	}
	agent := publisher.URL + "/agent.json"
	respond(200, "application/json", "max-age=600", document(agent, nil))

	// A tenant has no such clients, those of some hosts, or all.
	equal(t, "off", supported(), any(false))
	refused("off", agent, "accepts no URLs")
	c.want(t, 200, "", "PATCH", settingsPath, object{"client_id_documents": "hosts", "client_id_document_hosts": []any{"other.example.com"}})
	refused("another host", agent, "documents of this host")
	equal(t, "fetched", fetches.Load(), int32(0))
	c.want(t, 200, "", "PATCH", settingsPath, object{"client_id_document_hosts": []any{host}})
	equal(t, "on", supported(), any(true))

	// The user is asked each time, and sees the host.
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "notes:read", "description": "read your notes", "entitlement": "self"})
	p := party(agent)
	for range 2 {
		_, to := p.ask(t, joined(request, url.Values{"scope": {"notes:read"}}))
		equal(t, "asked", to.Path, "/auth/consent")
		flow := c.with(session).want(t, 200, "", "GET", authPath+"/flows/"+p.flow, nil).data()
		equal(t, "flow", []any{flow["client_host"], flow["status"]}, []any{host, "consent_required"})
		if page := c.visit(t, "GET", "/auth/consent?flow="+p.flow, asBrowser(session), nil); !strings.Contains(page.html, "<strong>"+host+"</strong>") {
			t.Errorf("consent page: %s", page.html)
		}
		_, to = p.browse(t, c.with(session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": p.flow, "decision": "allow"}).data()["redirect_to"].(string))
		got := p.exchange(t, to.Query().Get("code"), nil).body
		claims := claimsOf(t, got["access_token"].(string))
		equal(t, "token", []any{claims["client_id"], claims["scope"]}, []any{agent, "notes:read"})
		equal(t, "renewed", p.refresh(t, got["refresh_token"].(string), nil).status, 200)
	}
	equal(t, "fetched once", fetches.Load(), int32(1))
	apps := c.want(t, 200, "", "GET", appsPath+"?q="+url.QueryEscape(agent), nil).list()
	equal(t, "applications", len(apps), 1)
	app := apps[0].(object)
	equal(t, "application", []any{app["client_id"], app["name"], app["type"], app["dynamically_registered"]}, []any{agent, "Agent", "spa", true})
	a, _ := p.ask(t, joined(request, url.Values{"redirect_uri": {"https://evil.example.com/cb"}}))
	equal(t, "a redirect URI that the document lacks", a.status, 400)
	pushed := c.with("").form(t, nil, url.Values{"grant_type": {"client_credentials"}, "client_id": {agent}})
	equal(t, "for itself", []any{pushed.status, pushed.body["error"]}, []any{400, "unauthorized_client"})

	c.want(t, 200, "", "POST", appsPath+"/"+app["id"].(string)+"/disable", nil)
	_, to := p.ask(t, request)
	equal(t, "disabled", to.Query().Get("error"), "unauthorized_client")

	// Documents that are refused, and URLs.
	c.want(t, 200, "", "PATCH", settingsPath, object{"client_id_documents": "open"})
	for what, bad := range map[string]struct {
		changes object
		reason  string
	}{
		"another client":      {object{"client_id": agent}, "another client_id"},
		"a secret":            {object{"client_secret": "x"}, "client_secret"},
		"a shared secret":     {object{"token_endpoint_auth_method": "client_secret_basic"}, "none or private_key_jwt"},
		"no keys":             {object{"token_endpoint_auth_method": "private_key_jwt"}, "jwks"},
		"no redirect URIs":    {object{"redirect_uris": nil}, "redirect_uris"},
		"a hostile redirect":  {object{"redirect_uris": []any{"javascript:alert(1)"}}, "redirect URI"},
		"a list":              {object{"redirect_uris": callback}, "JSON object"},
		"a plain redirection": {object{"redirect_uris": []any{"http://app.example.com/cb"}}, "redirect URI"},
	} {
		id := publisher.URL + "/" + url.PathEscape(what)
		respond(200, "application/json", "", document(id, bad.changes))
		refused(what, id, bad.reason)
		before := fetches.Load()
		refused(what+", again", id, bad.reason)
		equal(t, what+": not fetched again", fetches.Load(), before)
	}
	for what, response := range map[string]struct {
		status int
		media  string
		body   any
		reason string
	}{
		"redirect": {302, "application/json", document(publisher.URL+"/redirect", nil), "status (302)"},
		"missing":  {404, "application/json", document(publisher.URL+"/missing", nil), "status (404)"},
		"page":     {200, "text/html", document(publisher.URL+"/page", nil), "Content-Type"},
		"large":    {200, "application/json", document(publisher.URL+"/large", object{"x": strings.Repeat("x", 16<<10)}), "too_large"},
	} {
		respond(response.status, response.media, "", response.body)
		refused(what, publisher.URL+"/"+what, response.reason)
	}
	before := fetches.Load()
	for _, id := range []string{
		publisher.URL, publisher.URL + "/", agent + "?a=b", agent + "#a", publisher.URL + "/a/../b", publisher.URL + "/%2e%2e/b", "http://user@" + host + "/a", "http://example.com/agent.json",
		"https://EXAMPLE.com/a", publisher.URL + "/" + strings.Repeat("x", 600), "https://example.com:22/a",
	} {
		refused(id, id, "")
	}
	equal(t, "fetched", fetches.Load(), before)
}
