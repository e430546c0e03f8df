package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"stonetown/oauth/scope"
)

// grantersHold refuses rights that the caller does not hold.
func grantersHold(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	boss, eve := member(t, c, "boss@example.com"), member(t, c, "eve@example.com")
	administrators := group(t, c, "operators", scope.Administrative...)
	c.want(t, 201, "", "POST", groupsPath+"/"+administrators+"/members", object{"user_id": boss})
	holding := func(scopes ...string) *client {
		t.Helper()
		return c.with(w.token(t, c, w.application(t, c, scopes...)))
	}
	denied := func(by *client, scope, method, path string, body any) {
		t.Helper()
		equal(t, method+" "+path, by.want(t, 403, "permission_denied", method, path, body).details()["required_scope"], scope)
	}

	groups := holding("groups:write")
	mine := groups.want(t, 201, "", "POST", groupsPath, object{"slug": "mine", "name": "Mine", "scopes": []any{"groups:write", "me:read"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "orders:ship", "entitlement": "group"})
	groups.want(t, 200, "", "PATCH", groupsPath+"/"+mine, object{"scopes": []any{"groups:write", "orders:ship"}}) // the tenant's own scopes are not compared
	denied(groups, "users:read", "POST", groupsPath, object{"slug": "more", "name": "More", "scopes": []any{"groups:write", "users:read"}})
	denied(groups, "users:read", "PATCH", groupsPath+"/"+mine, object{"scopes": []any{"groups:write", "users:read"}})
	groups.want(t, 200, "", "PATCH", groupsPath+"/"+administrators, object{"name": "Operators", "scopes": anys(scope.Administrative)}) // which it had
	groups.want(t, 201, "", "POST", groupsPath+"/"+mine+"/members", object{"user_id": eve})
	denied(groups, "applications:read", "POST", groupsPath+"/"+administrators+"/members", object{"user_id": eve})
	denied(groups, "applications:read", "POST", groupsPath+"/"+administrators+"/members/bulk", object{"user_ids": []any{eve}})
	equal(t, "members", len(c.want(t, 200, "", "GET", groupsPath+"/"+administrators+"/members", nil).body["data"].([]any)), 1)

	// The holders of a scope are a relation, which expand explains.
	tree := c.want(t, 200, "", "POST", "/api/v1/resources/expand", object{"resource": resource("scope", "users:read"), "action": "holder"}).text
	for _, holder := range []string{administrators, "client_"} {
		if !strings.Contains(tree, holder) {
			t.Errorf("%s is not among the holders: %s", holder, tree)
		}
	}

	// A narrow token of an administrator gives only its own scopes; a wide token whose user has
	// lost all scopes gives none.
	front := newParty(t, c, object{"allowed_scopes": []any{"openid", "groups:write"}, "group_scopes": "allowed_only"})
	front.session = signIn(t, c, "boss@example.com", secret, "complete").data()["session_token"].(string)
	narrow := c.with(front.exchange(t, front.code(t, url.Values{"scope": {"openid groups:write"}}), nil).body["access_token"].(string))
	denied(narrow, "applications:read", "POST", groupsPath+"/"+administrators+"/members", object{"user_id": eve})
	wide := c.with(signIn(t, c, "boss@example.com", secret, "complete").data()["access_token"].(string))
	wide.want(t, 201, "", "POST", groupsPath+"/"+administrators+"/members", object{"user_id": eve})
	wide.want(t, 204, "", "DELETE", groupsPath+"/"+administrators+"/members/"+eve, nil)
	c.want(t, 204, "", "DELETE", groupsPath+"/"+administrators+"/members/"+boss, nil)
	denied(wide, "applications:read", "POST", groupsPath+"/"+administrators+"/members", object{"user_id": eve})
	c.want(t, 201, "", "POST", groupsPath+"/"+administrators+"/members", object{"user_id": boss})

	// Accounts of users who hold more.
	users := holding("users:write")
	at := "/api/v1/users/" + boss
	for _, body := range []object{{"password": "a quite long passphrase"}, {"email_verified": false}, {"password_must_be_reset": true}} {
		denied(users, "applications:read", "PATCH", at, body)
	}
	for _, path := range []string{"/disable", "/force-mfa-reset"} {
		denied(users, "applications:read", "POST", at+path, nil)
	}
	denied(users, "applications:read", "DELETE", at, nil)
	denied(users, "applications:read", "DELETE", at+"/mfa/factors/factor_x", nil)
	users.want(t, 200, "", "PATCH", at, object{"name": "The Boss"})
	c.want(t, 200, "", "POST", at+"/disable", nil)
	denied(users, "applications:read", "POST", at+"/enable", nil)
	c.want(t, 200, "", "POST", at+"/enable", nil)
	users.want(t, 404, "user_not_found", "POST", "/api/v1/users/usr_x/disable", nil)
	ann := member(t, c, "ann@example.com")
	users.want(t, 200, "", "PATCH", "/api/v1/users/"+ann, object{"password": "a quite long passphrase"})
	users.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/disable", nil)
	users.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/enable", nil)

	// Imports into groups.
	rows := `{"email":"one@example.com"}` + "\n" + `{"email":"two@example.com","groups":["mine"]}` + "\n" + `{"email":"three@example.com","groups":["operators"]}` + "\n"
	imported := func(by *client) []string {
		t.Helper()
		job := by.upload(t, []byte(rows), http.Header{"Content-Type": {"application/x-ndjson"}}).data()["id"].(string)
		var d object
		for end := time.Now().Add(20 * time.Second); d["state"] != "completed" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			d = c.want(t, 200, "", "GET", "/api/v1/users/bulk-import/"+job, nil).data()
		}
		var failures []string
		for _, e := range d["errors"].([]any) {
			e := e.(map[string]any)
			failures = append(failures, e["email"].(string)+" "+e["code"].(string))
		}
		return failures
	}
	equal(t, "without groups:write", imported(users), []string{"two@example.com permission_denied", "three@example.com permission_denied"})
	rows = strings.NewReplacer("one", "four", "two", "five", "three", "six").Replace(rows)
	equal(t, "with groups:write", imported(holding("users:write", "groups:write")), []string{"six@example.com permission_denied"})

	// Applications that act for themselves.
	apps := holding("applications:write")
	setup := func(scopes ...string) object {
		return object{"name": "M", "type": "m2m", "allowed_scopes": anys(scopes)}
	}
	own := apps.want(t, 201, "", "POST", appsPath, setup("applications:write", "orders:ship")).data()["id"].(string)
	denied(apps, "resources:read", "POST", appsPath, setup("applications:write", "resources:read"))
	denied(apps, "resources:read", "POST", appsPath, object{"name": "S", "type": "server", "redirect_uris": []any{callback}, "allowed_scopes": []any{"openid", "resources:read"}})
	apps.want(t, 201, "", "POST", appsPath, object{"name": "P", "type": "spa", "redirect_uris": []any{callback}, "allowed_scopes": []any{"openid", "resources:read"}}) // which acts for users
	denied(apps, "resources:read", "PATCH", appsPath+"/"+own, object{"allowed_scopes": []any{"applications:write", "resources:read"}})
	apps.want(t, 200, "", "POST", appsPath+"/"+own+"/rotate-secret", object{})
	strong := c.want(t, 201, "", "POST", appsPath, setup("users:write", "groups:write")).data()["id"].(string)
	denied(apps, "users:write", "POST", appsPath+"/"+strong+"/rotate-secret", object{})
	denied(apps, "users:write", "PATCH", appsPath+"/"+strong, object{"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://keys.example.com/jwks"})
	apps.want(t, 200, "", "PATCH", appsPath+"/"+strong, object{"name": "Strong", "allowed_scopes": []any{"groups:write"}}) // fewer
	apps.want(t, 200, "", "POST", appsPath+"/"+strong+"/disable", object{})
	denied(apps, "groups:write", "POST", appsPath+"/"+strong+"/enable", object{})
	bulk := apps.want(t, 200, "", "POST", appsPath+"/bulk/enable", object{"ids": []any{strong}}).body["data"].([]any)[0].(map[string]any)
	equal(t, "enabled with others", []any{bulk["status"], bulk["error"].(map[string]any)["code"]}, []any{"error", "permission_denied"})
}

// noGrowth calls, with a principal of each single scope, every operation that the scope allows,
// with bodies that request as much as possible. The principal gains no other scope.
func noGrowth(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	const stolen = "a passphrase of an attacker"
	boss, accomplice := member(t, c, "boss@example.com"), member(t, c, "eve@example.com")
	strongGroup := group(t, c, "strong", scope.Administrative...)
	c.want(t, 201, "", "POST", groupsPath+"/"+strongGroup+"/members", object{"user_id": boss})
	strong := c.want(t, 201, "", "POST", appsPath, object{"name": "Strong", "type": "m2m", "allowed_scopes": anys(scope.Administrative)}).data()
	everything, all := anys(scope.Builtin), 0
	target := newReceiver(t, http.StatusInternalServerError)
	subscription, _ := subscribe(t, c, target.URL, nil, "*")
	letter := deadLetters(t, c, subscription, 1)[0]
	delivery := c.want(t, 200, "", "GET", subscriptionsPath+"/"+subscription+"/deliveries?event_type=test.ping", nil).list()[0].(object)["id"].(string)
	const listening = "/api/v1/webhooks/"

	for _, name := range scope.Administrative {
		own := newParty(t, c, object{"name": "Weak", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{name}})
		ownID := c.want(t, 200, "", "GET", appsPath+"?q="+own.id, nil).body["data"].([]any)[0].(map[string]any)["id"].(string)
		weakGroup := group(t, c, "weak-"+strings.ReplaceAll(name, ":", "-"), name)
		email := strings.ReplaceAll(name, ":", ".") + "@example.com"
		weak := member(t, c, email)
		c.want(t, 201, "", "POST", groupsPath+"/"+weakGroup+"/members", object{"user_id": weak})
		connectionPath, _ := connect(t, c, github("own-"+strings.ReplaceAll(name, ":", "-"), nil))
		targets := map[string][]string{
			"user_id": {boss, weak, accomplice}, "group_id": {strongGroup, weakGroup}, "application_id": {strong["id"].(string), ownID},
			"type": {"scope", "group", "application", "user"}, "external_id": {"groups:write", strongGroup, own.id, boss}, "name": {"scope", "group", "groups:write"},
			"factor_id": {"factor_x"}, "session_id": {"ses_x"}, "job_id": {"job_x"},
			"subscription_id": {subscription}, "delivery_id": {delivery}, "entry_id": {letter}, "connection_id": {last(connectionPath, nil)},
		}
		holder := func(subject object) []object {
			return []object{
				{"op": "create", "resource": resource("scope", "groups:write"), "relation": "holder", "subject": subject},
				{"op": "create", "resource": resource("group", strongGroup), "relation": "member", "subject": subject},
			}
		}
		// Values of members by name; the items of a list are tried one by one.
		greedy := map[string][]any{
			"scopes": {everything}, "allowed_scopes": {everything}, "entitlement": {"self"}, "slug": {"greedy-" + strings.ReplaceAll(name, ":", "-")},
			"type": {"m2m", "server"}, "user_id": {accomplice, weak}, "user_ids": {[]any{accomplice, weak}}, "ids": {[]any{strong["id"], ownID}},
			"password": {stolen}, "email_verified": {true}, "state": {"active"}, "group_scopes": {"all"}, "first_party": {true},
			"subject": {object{"type": "application", "id": own.id}, object{"type": "user", "id": accomplice}}, "relation": {"holder", "member", "act_as"},
			"operations": {
				anyList(holder(object{"type": "application", "id": own.id})), anyList(holder(user(accomplice))),
				[]any{holder(user(accomplice))[1]},
				[]any{holder(object{"type": "application", "id": own.id})[0]},
			},
			"relations": {[]any{object{"name": "holder", "subjects": []any{object{"type": "application"}, object{"type": "user"}}}}},
			"name":      {"scope", "greedy"}, "email": {"new@example.com"}, "redirect_uris": {[]any{callback}},
			"url": {target.URL}, "events": {[]any{"*"}}, "visible_to": {object{"subject": user(boss), "action": "view"}},
			"owners": {[]any{object{"type": "application", "id": own.id}, user(weak)}}, "viewers": {[]any{user(weak)}}, "entry_ids": {[]any{letter}},
			"kind": {"social.github"}, "client_id": {"id of the caller"}, "client_secret": {"secret of the caller"}, "link_policy": {"verified_email"}, "trust_email": {true}, "second_factor": {"accept"},
			"group_mapping": {[]any{object{"value": "all", "group_id": strongGroup}}}, "attribute_mapping": {object{"email": "$.any"}}, "claims": {object{}},
			"dcr_mode": {"initial_access_token"}, "sign_up": {"open"}, "external_id": {"groups:write"}, "attributes": {object{}}, "resource": {resource("scope", "groups:write")},
		}
		tokens := map[string]string{
			"application": own.form(t, basic(own.id, own.secret), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string),
			"user":        signIn(t, c, email, secret, "complete").data()["access_token"].(string),
		}
		var gained []application // with secrets that a response revealed
		tried := 0
		for _, op := range operationsOf(name) {
			for _, who := range slices.Sorted(maps.Keys(tokens)) {
				for _, path := range filled(op.path, targets) {
					for _, body := range bodies(op.op, greedy) {
						tried++
						var a answer
						if op.op.RequestBody != nil && op.op.RequestBody.Value.Content["application/x-ndjson"] != nil {
							a = c.with(tokens[who]).upload(t, []byte(`{"email":"imported@example.com","password":"`+stolen+`","email_verified":true,"groups":["strong"]}`+"\n"), nil)
						} else {
							a = c.with(tokens[who]).do(t, op.method, path, body)
						}
						if a.status >= 500 {
							t.Errorf("%s %s with %v: %d %s", op.method, path, body, a.status, a.text)
						}
						if strings.HasPrefix(path, listening) && a.status < 400 && name != "webhooks:write" {
							t.Errorf("%s: %s %s with %v: %d %s", name, op.method, path, body, a.status, a.text)
						}
						d, _ := a.body["data"].(map[string]any)
						if key, ok := d["client_secret"].(string); ok {
							id, _ := d["client_id"].(string)
							if id == "" && strings.Contains(path, strong["id"].(string)) {
								id = strong["client_id"].(string)
							}
							if id == "" {
								id, own.secret = own.id, key
							}
							gained = append(gained, application{id, key})
						}
					}
				}
			}
		}
		all += tried
		allowed := append([]string{name}, "me:read", "me:write", "openid", "profile", "email", "offline_access")
		grew := func(what, scopes string) {
			t.Helper()
			for _, got := range strings.Fields(scopes) {
				if slices.Contains(scope.Builtin, got) && !slices.Contains(allowed, got) {
					t.Errorf("%s: %s has %s", name, what, got)
				}
			}
		}
		for _, app := range append(gained, application{own.id, own.secret}) {
			a := c.form(t, basic(app.id, app.secret), url.Values{"grant_type": {"client_credentials"}})
			got, _ := a.body["scope"].(string)
			grew("application", got)
		}
		for _, who := range []string{email, "eve@example.com", "boss@example.com", "new@example.com", "imported@example.com"} {
			for _, password := range []string{stolen, secret} {
				if password == secret && who == "boss@example.com" {
					continue
				}
				d := c.with("").do(t, "POST", authPath+"/sign-in", object{"email": who, "password": password}).data()
				got, _ := d["scope"].(string)
				grew(who, got)
			}
		}
		for _, item := range c.want(t, 200, "", "GET", connectionsPath+"?limit=250", nil).list() {
			d := c.want(t, 200, "", "GET", connectionsPath+"/"+item.(object)["id"].(string), nil).data()
			if len(d["group_mapping"].([]any)) > 0 || d["link_policy"] == "verified_email" && (d["client_id"] != "id" || d["trust_email"] != false) {
				t.Errorf("%s: a provider of the caller decides who signs in: %v", name, d)
			}
		}
		equal(t, name+": the administrator's own password", signIn(t, c, "boss@example.com", secret, "complete").data()["status"], "complete")
	}
	if all < 1000 {
		t.Errorf("%d requests only", all)
	}
}

func anyList(items []object) (list []any) {
	for _, item := range items {
		list = append(list, item)
	}
	return list
}

type operation struct {
	method, path string
	op           *openapi3.Operation
}

// operationsOf are the operations of the document that a scope or a relation allows, deletions
// last.
func operationsOf(scope string) (found []operation) {
	for path, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Security == nil || method == http.MethodGet {
				continue
			}
			allowed := isRelated(op) // also without a scope
			for _, requirement := range *op.Security {
				for _, scopes := range requirement {
					allowed = allowed || slices.Contains(scopes, scope)
				}
			}
			if allowed {
				found = append(found, operation{method, path, op})
			}
		}
	}
	slices.SortFunc(found, func(a, b operation) int {
		if (a.method == http.MethodDelete) != (b.method == http.MethodDelete) {
			return map[bool]int{true: 1, false: -1}[a.method == http.MethodDelete]
		}
		return strings.Compare(a.path+a.method, b.path+b.method)
	})
	return found
}

// filled returns the paths of a template.
func filled(template string, targets map[string][]string) []string {
	start := strings.Index(template, "{")
	if start < 0 {
		return []string{template}
	}
	end := strings.Index(template, "}")
	name := template[start+1 : end]
	values := targets[name]
	if values == nil {
		values = []string{"x"}
	}
	var paths []string
	for _, value := range values {
		for _, rest := range filled(template[end+1:], targets) {
			paths = append(paths, template[:start]+url.PathEscape(value)+rest)
		}
	}
	return paths
}

// bodies returns bodies of an operation, with every member that has a value.
func bodies(op *openapi3.Operation, values map[string][]any) (list []any) {
	if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
		return []any{nil}
	}
	most := 1
	schema := op.RequestBody.Value.Content["application/json"].Schema.Value
	for name := range schema.Properties {
		most = max(most, len(values[name]))
	}
	for n := range most {
		body := object{}
		for name := range schema.Properties {
			if v := values[name]; len(v) > 0 {
				body[name] = v[n%len(v)]
			}
		}
		list = append(list, body)
		// Each member alone as well: one that is refused must not hide another.
		for name, value := range body {
			list = append(list, object{name: value})
		}
	}
	text, _ := json.Marshal(list)
	var distinct []any
	_ = json.Unmarshal(text, &distinct)
	return distinct
}
