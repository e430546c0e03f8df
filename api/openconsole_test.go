package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"stonetown/identity/authn"
	"stonetown/identity/session"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// opening is an organisation with a tenant, whose console its members open.
type opening struct {
	*world
	owner  *client // in the control plane
	org    string  // the path of the organisation
	tenant string  // the path of the tenant
	host   *client // at the tenant, with the token of the application that administers it
}

func (w *world) opening(t testing.TB, c *client, owner *client) *opening {
	t.Helper()
	org := organization(t, owner, c.name())
	created := owner.want(t, 201, "", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": "One & Only"})
	credentials := created.data()["admin_application"].(object)
	host := &client{server: w.server, host: c.name() + "-1.test"}
	host.token = w.token(t, host, application{credentials["client_id"].(string), credentials["client_secret"].(string)})
	return &opening{w, owner, org, created.header.Get("Location"), host}
}

func (o *opening) id() string { return o.tenant[strings.LastIndex(o.tenant, "/")+1:] }

// link opens the console, and returns the path of the link.
func (o *opening) link(t testing.TB, by *client) string {
	t.Helper()
	link := by.want(t, 201, "", "POST", o.tenant+"/open-console", nil).data()["url"].(string)
	path, ok := strings.CutPrefix(link, "https://"+o.host.host)
	if !ok || !strings.HasPrefix(path, "/console/enter?token=") {
		t.Fatalf("the link is %s", link)
	}
	return path
}

// use sends the form of the page of a link.
func (o *opening) use(t testing.TB, link string) shown {
	t.Helper()
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return o.host.visit(t, "POST", "/console/enter", nil, url.Values{"token": {at.Query().Get("token")}})
}

// enter opens the console and enters it. It returns a client of the tenant with the session.
func (o *opening) enter(t testing.TB, by *client) *client {
	t.Helper()
	p := o.use(t, o.link(t, by))
	if p.status != 303 || p.header.Get("Location") != "/console" {
		t.Fatalf("entering: %d %v\n%s", p.status, p.header, p.html)
	}
	return o.host.with(cookieOf(p))
}

// first returns the first of the events of the organisation of a type.
func (o *opening) first(t testing.TB, typ string) object {
	t.Helper()
	list := o.owner.want(t, 200, "", "GET", o.org+"/events?type="+typ, nil).list()
	if len(list) == 0 {
		t.Fatalf("there is no event %s", typ)
	}
	return list[0].(object)
}

// openConsole: who can open the console of a tenant from the control plane, what the link does, and what
// both logs say.
func openConsole(t *testing.T, w *world, c *client) {
	ann, anns := w.console(t, c, "ann")
	o := w.opening(t, c, ann)
	page := o.tenant + "/open-console"
	callers := map[string]*client{"owner": ann}
	for _, role := range []string{"admin", "operator", "viewer"} {
		user, email := w.console(t, c, role)
		w.join(t, ann, o.org, user, email, role)
		callers[role] = user
	}
	eve, _ := w.console(t, c, "eve")
	other := organization(t, eve, c.name()+"-eve")

	// Neither of them opens it, and nothing comes of trying.
	callers["viewer"].want(t, 403, "FORBIDDEN", "POST", page, nil)
	eve.want(t, 404, "NOT_FOUND", "POST", page, nil)
	eve.want(t, 404, "NOT_FOUND", "POST", other+"/tenants/"+o.id()+"/open-console", nil)
	ann.want(t, 404, "NOT_FOUND", "POST", o.org+"/tenants/tnt_none/open-console", nil)
	account := ann.want(t, 201, "", "POST", o.org+"/service-accounts", object{"name": "CI", "role": "owner"}).data()
	robot := ann.with(w.token(t, ann.with(""), application{account["client_id"].(string), account["client_secret"].(string)}))
	refused := robot.want(t, 403, "FORBIDDEN", "POST", page, nil)
	if !strings.Contains(refused.text, "only a person in a session of the control plane") {
		t.Errorf("a service account is told %s", refused.text)
	}
	robot.want(t, 200, "", "GET", o.tenant, nil)
	equal(t, "users of the tenant", len(o.host.want(t, 200, "", "GET", "/api/v1/users", nil).list()), 0)
	equal(t, "groups of the tenant", len(o.host.want(t, 200, "", "GET", "/api/v1/groups?q=organization", nil).list()), 0)
	equal(t, "nothing was opened", len(ann.want(t, 200, "", "GET", o.org+"/events?type=tenant.console_opened", nil).list()), 0)

	// The person is a user of the tenant from now on.
	for _, role := range []string{"owner", "admin", "operator"} {
		in := o.enter(t, callers[role])
		p := o.host.visit(t, "GET", "/console", asBrowser(in.token), nil)
		if p.status != 200 || !strings.Contains(p.html, "You are here as a member of <strong>Organisation "+c.name()) || !strings.Contains(p.html, `href="https://`+controlHost+`/console`+strings.TrimPrefix(o.tenant, "/api/v1")+`"`) {
			t.Errorf("the console of an %s: %d\n%s", role, p.status, p.html)
		}
	}
	users := o.host.want(t, 200, "", "GET", "/api/v1/users", nil).list()
	equal(t, "users", len(users), 3)
	found := users[2].(object) // the first
	me := ann.want(t, 200, "", "GET", "/api/v1/me/profile", nil).data()
	equal(t, "the managed user", []any{found["name"], found["email"], found["email_verified"], found["managed_by"], found["state"]},
		[]any{"ann (" + anns + ")", me["id"].(string) + "@" + controlHost, false, "control_plane", "active"})
	id := found["id"].(string)
	group := o.host.want(t, 200, "", "GET", "/api/v1/groups?q=organization", nil).list()[0].(object)
	equal(t, "the group", []any{group["slug"], group["member_count"]}, []any{"organization-members", 3.0})
	o.enter(t, ann)
	equal(t, "users after another opening", len(o.host.want(t, 200, "", "GET", "/api/v1/users", nil).list()), 3)

	// The log of the organisation has the person, the log of the tenant the user that the person is there.
	e := o.first(t, "tenant.console_opened")
	data := e["data"].(object)
	equal(t, "the event", []any{e["tenant_id"], e["actor"].(object)["id"], e["actor"].(object)["email"], data["id"], data["org_id"], data["user_id"]},
		[]any{o.id(), me["id"], anns, o.id(), strings.TrimPrefix(o.org, orgsPath+"/"), id})
	if at, err := time.Parse(time.RFC3339, data["expires_at"].(string)); err != nil || time.Until(at) > authn.EntryFor {
		t.Errorf("expires_at is %v", data["expires_at"])
	}
	for _, typ := range []string{"group.created", "user.created", "group.member_added", "user.signed_in", "session.created"} {
		list := o.host.want(t, 200, "", "GET", "/api/v1/audit/events?type="+typ+"&actor="+id, nil).list()
		if len(list) == 0 {
			t.Errorf("the log of the tenant has no %s", typ)
			continue
		}
		data := list[len(list)-1].(object)["data"].(object)
		switch typ {
		case "user.created":
			equal(t, "source", data["source"], "control_plane")
		case "user.signed_in":
			equal(t, "amr", data["amr"], []any{"control_plane"})
		}
	}

	// The link: programs that open it use nothing up, it works once, at its tenant.
	link := o.link(t, ann)
	for range 2 {
		p := o.host.visit(t, "GET", link, nil, nil)
		if p.status != 200 || !strings.Contains(p.html, "One &amp; Only") || !strings.Contains(p.html, "ann ("+anns+")") || !strings.Contains(p.html, "Organisation "+c.name()) || p.header.Get("Set-Cookie") != "" ||
			p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("X-Frame-Options") != "DENY" || strings.Contains(p.html, "<script") {
			t.Errorf("the page of the link: %d %v\n%s", p.status, p.header, p.html)
		}
		equal(t, "HEAD", o.host.visit(t, "HEAD", link, nil, nil).status, 200)
	}
	p := o.host.visit(t, "GET", link, asBrowser(o.enter(t, callers["admin"]).token), nil)
	if !strings.Contains(p.html, "That session is replaced in this browser.") {
		t.Errorf("a browser with a session is not warned:\n%s", p.html)
	}
	at, _ := url.Parse(link)
	form := url.Values{"token": {at.Query().Get("token")}}
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.test"}}} {
		equal(t, "from another site", o.host.visit(t, "POST", "/console/enter", header, form).status, 403)
	}
	second := ann.want(t, 201, "", "POST", o.org+"/tenants", object{"slug": c.name() + "-2", "name": "Two"})
	host := &client{server: w.server, host: c.name() + "-2.test"}
	equal(t, "at another tenant", host.visit(t, "POST", "/console/enter", nil, form).status, 410)
	equal(t, "at the control plane", ann.visit(t, "GET", link, nil, nil).status, 404)
	equal(t, "used", o.use(t, link).status, 303)
	if p := o.use(t, link); p.status != 410 || p.header.Get("Set-Cookie") != "" || !strings.Contains(p.html, "works once") {
		t.Errorf("used again: %d\n%s", p.status, p.html)
	}
	equal(t, "the page of a used link", o.host.visit(t, "GET", link, nil, nil).status, 410)
	for _, bad := range []string{"/console/enter", "/console/enter?token=", "/console/enter?token=%00", "/console/enter?token=x&token=y"} {
		equal(t, bad, o.host.visit(t, "GET", bad, nil, nil).status, 410)
	}

	// A later link takes the place of one that was not used; the same request has the same link.
	earlier, later := o.link(t, ann), o.link(t, ann)
	equal(t, "replaced", o.use(t, earlier).status, 410)
	equal(t, "the latest", o.use(t, later).status, 303)
	again := ann.under(t, "open", "POST", page, nil)
	equal(t, "again", []any{again.status, ann.under(t, "open", "POST", page, nil).text}, []any{201, again.text})
	path := strings.TrimPrefix(again.data()["url"].(string), "https://"+o.host.host)
	equal(t, "used", o.use(t, path).status, 303)
	equal(t, "the link of the request that was sent again", o.use(t, strings.TrimPrefix(ann.under(t, "open", "POST", page, nil).data()["url"].(string), "https://"+o.host.host)).status, 410)

	// The link of a person who has signed out meanwhile is of no use.
	bob := callers["admin"]
	link = o.link(t, bob)
	bob.want(t, 204, "", "POST", authPath+"/logout", nil)
	equal(t, "signed out", o.use(t, link).status, 410)
	// Nor is one that has expired.
	link = o.link(t, ann)
	defer w.ahead.Store(w.ahead.Load())
	w.later(authn.EntryFor)
	equal(t, "expired", o.use(t, link).status, 410)

	// Tenants that are not active are not opened.
	at2 := second.header.Get("Location")
	ann.want(t, 200, "", "POST", at2+"/suspend", nil)
	ann.want(t, 409, "CONFLICT", "POST", at2+"/open-console", nil)
	ann.want(t, 200, "", "POST", at2+"/decommission", object{"confirm": c.name() + "-2"})
	ann.want(t, 409, "CONFLICT", "POST", at2+"/open-console", nil)
}

// openedSessions: a session that was opened from the control plane ends with each of its reasons, at once
// and with its access tokens.
func openedSessions(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	o := w.opening(t, c, ann)
	n := 0
	member := func(t *testing.T) (user *client, member string) {
		n++
		user, email := w.console(t, c, fmt.Sprintf("member%d", n))
		return user, o.org + "/members/" + w.join(t, ann, o.org, user, email, "operator")
	}
	for name, end := range map[string]func(t *testing.T, user *client, member string){
		"sign-out": func(t *testing.T, user *client, _ string) { user.want(t, 204, "", "POST", authPath+"/logout", nil) },
		"role of a viewer": func(t *testing.T, _ *client, member string) {
			ann.want(t, 200, "", "PATCH", member, object{"role": "viewer"})
		},
		"removal": func(t *testing.T, _ *client, member string) { ann.want(t, 204, "", "DELETE", member, nil) },
		"disabled in the control plane": func(t *testing.T, user *client, _ string) {
			id := user.want(t, 200, "", "GET", "/api/v1/me/profile", nil).data()["id"].(string)
			if _, err := w.config.Users.Disable(context.Background(), "tnt_system", id, ""); err != nil {
				t.Fatal(err)
			}
		},
		"disabled in the control plane, with its session": func(t *testing.T, user *client, _ string) {
			id := user.want(t, 200, "", "GET", "/api/v1/me/profile", nil).data()["id"].(string)
			if _, err := w.db.Exec(t.Context(), `UPDATE users SET state = 'disabled' WHERE tenant_id = 'tnt_system' AND id = $1`, id); err != nil {
				t.Fatal(err)
			}
		},
		"disabled in the tenant": func(t *testing.T, user *client, _ string) {
			o.host.want(t, 200, "", "POST", "/api/v1/users/"+o.managed(t, user)+"/disable", nil)
			user.want(t, 409, "CONFLICT", "POST", o.tenant+"/open-console", nil)
		},
		"another organisation": func(t *testing.T, _ *client, _ string) {
			other := organization(t, ann, c.name()+"-other")
			if _, err := w.db.Exec(t.Context(), `UPDATE tenants SET org_id = $2 WHERE id = $1`, o.id(), strings.TrimPrefix(other, orgsPath+"/")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := w.db.Exec(context.Background(), `UPDATE tenants SET org_id = $2 WHERE id = $1`, o.id(), strings.TrimPrefix(o.org, orgsPath+"/")); err != nil {
					t.Error(err)
				}
			})
		},
		"half an hour":     func(t *testing.T, _ *client, _ string) { w.later(session.OpenedFor) },
		"its own sign-out": nil,
	} {
		t.Run(name, func(t *testing.T) {
			ahead := w.ahead.Load()
			defer w.ahead.Store(ahead)
			user, member := member(t)
			in := o.enter(t, user)
			s, err := w.authn.ByToken(t.Context(), o.id(), in.token)
			if err != nil {
				t.Fatal(err)
			}
			issued, err := w.oauth.Tokens.IssueToUser(t.Context(), protocol.Tenant{ID: o.id(), BaseURL: "https://" + o.host.host}, token.UserToken{UserID: s.UserID, SessionID: s.ID, Methods: s.Methods, AuthTime: s.AuthTime})
			if err != nil {
				t.Fatal(err)
			}
			access := o.host.with(issued.AccessToken)
			access.want(t, 200, "", "GET", "/api/v1/users", nil)
			equal(t, "the console", o.host.visit(t, "GET", "/console/users", asBrowser(in.token), nil).status, 200)
			if end == nil {
				in.want(t, 204, "", "POST", authPath+"/logout", nil)
			} else {
				end(t, user, member)
			}
			access.want(t, 401, "invalid_token", "GET", "/api/v1/users", nil)
			in.want(t, 401, "invalid_token", "GET", "/api/v1/me/profile", nil)
			equal(t, "the console", o.host.visit(t, "GET", "/console/users", asBrowser(in.token), nil).header.Get("Location"), "/auth/sign-in?next=%2Fconsole%2Fusers")
		})
	}

	user, _ := member(t)
	in := o.enter(t, user)
	ann.want(t, 200, "", "POST", o.tenant+"/suspend", nil)
	in.want(t, 403, "tenant_suspended", "GET", "/api/v1/me/profile", nil)
	ann.want(t, 200, "", "POST", o.tenant+"/resume", nil)
	in.want(t, 200, "", "GET", "/api/v1/me/profile", nil)
}

// managed returns the id of the managed user of a person.
func (o *opening) managed(t testing.TB, user *client) string {
	t.Helper()
	person := user.want(t, 200, "", "GET", "/api/v1/me/profile", nil).data()["id"].(string)
	for _, item := range o.host.want(t, 200, "", "GET", "/api/v1/users?limit=250", nil).list() {
		if u := item.(object); strings.HasPrefix(u["email"].(string), person+"@") {
			return u["id"].(string)
		}
	}
	t.Fatal("there is no managed user")
	return ""
}

// openedAccounts: a session that was opened from the control plane gives the console and no account, its
// rights are those of the group, and administrators of the tenant decide about both.
func openedAccounts(t *testing.T, w *world, c *client) {
	ann, _ := w.console(t, c, "ann")
	bob, bobs := w.console(t, c, "bob")
	o := w.opening(t, c, ann)
	w.join(t, ann, o.org, bob, bobs, "operator")
	in := o.enter(t, ann)
	id := o.managed(t, ann)

	// The own account, ways to sign in, devices and consent.
	refusals := 0
	for path, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			tag := op.Tags[0]
			if tag != "auth" && tag != "me" || op.Security == nil || len(*op.Security) == 0 || path == authPath+"/logout" {
				continue
			}
			target := path
			for strings.Contains(target, "{") {
				before, rest, _ := strings.Cut(target, "{")
				_, after, _ := strings.Cut(rest, "}")
				target = before + "totp" + after
			}
			if method == "GET" {
				if a := in.do(t, method, target, nil); a.status == 403 {
					t.Errorf("%s: %s", target, a.text)
				}
				continue
			}
			a := in.want(t, 403, "permission_denied", method, target, object{})
			equal(t, target, a.details()["reason"], "opened_from_control_plane")
			refusals++
		}
	}
	if refusals < 20 {
		t.Errorf("only %d operations were refused", refusals)
	}

	// A delicate form needs a second factor that the person proves in the control plane.
	const delicate = "/console/applications/new?type=m2m"
	typed := url.Values{"once": {"random"}, "version": {""}, "name": {`Kept "<b>`}, "allowed_scopes": {"users:read"}}
	reopen := `href="https://` + controlHost + `/console` + strings.TrimPrefix(o.tenant, "/api/v1") + `/open-console"`
	asks := func(p shown, fields url.Values) {
		t.Helper()
		if p.status != 403 || !strings.Contains(p.html, reopen) || strings.Contains(p.html, "/account/step-up") || p.header.Get("Location") != "" {
			t.Errorf("a delicate form: %d %v\n%s", p.status, p.header, p.html)
		}
		equal(t, "kept", keptFields(p.html, delicate), fields)
	}
	send := func(method string, form url.Values) shown {
		return o.host.visit(t, method, delicate, asBrowser(in.token), form)
	}
	asks(send("GET", nil), url.Values{})
	asks(send("POST", typed), typed)
	file := o.host.browse(t, "POST", "/console/users/imports/upload", "multipart/form-data; boundary=x", asBrowser(in.token), strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n{\"email\":\"kept@example.com\"}\r\n--x--\r\n"))
	asks(file, url.Values{})
	if p := o.host.visit(t, "GET", "/console/users/imports", asBrowser(in.token), nil); strings.Contains(p.html, "multipart/form-data") || !strings.Contains(p.html, reopen) {
		t.Errorf("a form with a file:\n%s", p.html)
	}
	steppedUp(t, ann)
	asks(send("POST", typed), typed) // a session does not get the proof of another
	in = o.enter(t, ann)
	if p := send("POST", typed); p.status != 200 || !strings.Contains(p.html, "cs_") {
		t.Errorf("with the proof: %d\n%s", p.status, p.html)
	}

	// The form of a managed user has nothing about how it signs in.
	edit := o.host.visit(t, "GET", "/console/users/"+id+"/edit", asBrowser(in.token), nil)
	for name, has := range map[string]bool{"given_name": true, "attributes": true, "name": false, "password": false, "email_verified": false, "password_must_be_reset": false} {
		if edit.status != 200 || strings.Contains(edit.html, `name="`+name+`"`) != has {
			t.Errorf("%s in the form of a managed user, %d: %v, want %v", name, edit.status, !has, has)
		}
	}

	// The authorization endpoint, by a page or, for a request that must not show one, to the application.
	app := o.host.want(t, 201, "", "POST", appsPath, object{"name": "App", "type": "spa", "redirect_uris": []string{"https://app.test/cb"}, "first_party": true}).data()
	query := url.Values{"client_id": {app["client_id"].(string)}, "response_type": {"code"}, "redirect_uri": {"https://app.test/cb"}, "scope": {"openid offline_access"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, "state": {"s"}}
	p := o.host.visit(t, "GET", "/oauth2/authorize?"+query.Encode(), asBrowser(in.token), nil)
	if p.status != 403 || p.header.Get("Location") != "" || !strings.Contains(p.html, "opened from the control plane") {
		t.Errorf("authorize: %d %v\n%s", p.status, p.header, p.html)
	}
	query.Set("prompt", "none")
	p = o.host.visit(t, "GET", "/oauth2/authorize?"+query.Encode(), asBrowser(in.token), nil)
	if to := p.header.Get("Location"); !strings.HasPrefix(to, "https://app.test/cb?") || !strings.Contains(to, "error=login_required") || strings.Contains(to, "code=") {
		t.Errorf("prompt=none: %d %s", p.status, to)
	}
	equal(t, "grants", len(in.want(t, 200, "", "GET", "/api/v1/me/authorizations", nil).list()), 0)

	// No other way to sign in is given, and nothing is sent.
	user := "/api/v1/users/" + id
	for _, change := range []object{{"password": secret}, {"email_verified": true}, {"password_must_be_reset": true}} {
		o.host.want(t, 409, "user_managed", "PATCH", user, change)
	}
	o.host.want(t, 200, "", "PATCH", user, object{"attributes": object{"team": "ops"}})
	o.host.want(t, 409, "user_managed", "POST", user+"/reset-password", nil)
	patch := `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"userName":"other@example.com"}}]}`
	p = o.host.browse(t, "PATCH", "/scim/v2/Users/"+id, "application/scim+json", http.Header{"Authorization": {"Bearer " + o.host.token}}, strings.NewReader(patch))
	equal(t, "SCIM", []any{p.status, strings.Contains(p.html, `"scimType":"mutability"`)}, []any{403, true})
	email := o.host.want(t, 200, "", "GET", user, nil).data()["email"].(string)
	anon := o.host.with("")
	anon.want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": email, "password": secret})
	anon.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": email})
	anon.want(t, 202, "", "POST", authPath+"/email/resend", object{"email": email})
	incident := o.host.want(t, 201, "", "POST", incidentsPath, object{"title": "Breach", "severity": "high", "affects_all_users": true}).data()["id"].(string)
	o.host.want(t, 202, "", "POST", incidentsPath+"/"+incident+"/notifications", object{"subject": "Breach", "message": "Text"})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var left int
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM jobs WHERE tenant_id = $1`, o.id()).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d jobs are left", left)
		}
	}
	if n := w.mailbox.count(email); n > 0 {
		t.Errorf("%d mails to a managed user", n)
	}
	// An account with the same address is another one.
	o.host.want(t, 201, "", "POST", "/api/v1/users", object{"email": email, "password": secret, "email_verified": true})
	mine := signIn(t, o.host, email, secret, "complete").data()
	if mine["user"].(object)["id"] == id {
		t.Error("an account with the address of a managed user is that user")
	}

	// The second factors of managed users are in the control plane, so the coverage here is without them.
	report := o.host.want(t, 201, "", "POST", reportsPath, object{"name": "MFA", "kind": "mfa_coverage"}).data()["id"].(string)
	_, run := ran(t, o.host, report)
	equal(t, "users without a factor", figures(run)["users_without_factor"], 1.0)

	// The rights are those of the group. What is taken from it is not given back by another opening.
	group := o.host.want(t, 200, "", "GET", "/api/v1/groups?q=organization-members", nil).list()[0].(object)["id"].(string)
	o.host.want(t, 400, "slug_invalid", "POST", "/api/v1/groups", object{"slug": "organization-members", "name": "x", "scopes": []string{}})
	o.host.want(t, 403, "permission_denied", "DELETE", "/api/v1/groups/"+group, nil)
	o.host.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read"}})
	in = o.enter(t, bob)
	equal(t, "users", o.host.visit(t, "GET", "/console/users", asBrowser(in.token), nil).status, 200)
	equal(t, "groups", o.host.visit(t, "GET", "/console/groups", asBrowser(in.token), nil).status, 403)
	o.host.want(t, 200, "", "POST", "/api/v1/groups/"+group+"/members/bulk-remove", object{"user_ids": []string{o.managed(t, bob)}})
	in = o.enter(t, bob)
	equal(t, "without the group", o.host.visit(t, "GET", "/console", asBrowser(in.token), nil).status, 403)

	// A managed user does not count as an administrator.
	var admins string
	for _, item := range o.host.want(t, 200, "", "GET", "/api/v1/groups", nil).list() {
		if g := item.(object); g["slug"] == "administrators" {
			admins = "/api/v1/groups/" + g["id"].(string)
		}
	}
	real := mine["user"].(object)["id"].(string)
	o.host.want(t, 201, "", "POST", admins+"/members", object{"user_id": real})
	o.host.want(t, 201, "", "POST", admins+"/members", object{"user_id": id})
	o.host.want(t, 409, "last_administrator", "POST", "/api/v1/users/"+real+"/disable", nil)
	o.host.want(t, 200, "", "POST", user+"/disable", nil)
	ann.want(t, 409, "CONFLICT", "POST", o.tenant+"/open-console", nil)
	o.host.want(t, 200, "", "POST", user+"/enable", nil)
	o.enter(t, ann)
}
