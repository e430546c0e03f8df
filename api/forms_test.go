package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"stonetown/api/openapi"
)

// bodyForm is a way to write a JSON body.
type bodyForm struct {
	name  string
	write func(t testing.TB, compact []byte) []byte
	head  http.Header
}

// bodyForms are equivalent forms. The effect of each is compared with that of the first.
var bodyForms = []bodyForm{
	{"compact", asIs, http.Header{"Content-Type": {"application/json"}}},
	{"indented", indented("  ", "\n"), http.Header{"Content-Type": {"application/json"}}},
	{"tabs and CRLF", indented("\t", "\r\n"), http.Header{"Content-Type": {"application/json"}}},
	{"unknown members", withUnknown, http.Header{"Content-Type": {"application/json"}}},
	{"charset", asIs, http.Header{"Content-Type": {"Application/JSON ; charset=UTF-8"}}},
	{"idempotent", indented("   ", "\n"), http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"once"}}},
}

func asIs(_ testing.TB, compact []byte) []byte { return compact }

func indented(indent, newline string) func(testing.TB, []byte) []byte {
	return func(t testing.TB, compact []byte) []byte {
		t.Helper()
		var b bytes.Buffer
		if err := json.Indent(&b, compact, "", indent); err != nil {
			t.Fatal(err)
		}
		return []byte(newline + strings.ReplaceAll(b.String(), "\n", newline) + newline)
	}
}

func withUnknown(t testing.TB, compact []byte) []byte {
	t.Helper()
	var members object
	if err := json.Unmarshal(compact, &members); err != nil {
		t.Fatal(err)
	}
	members["x_unknown"] = object{"deep": []any{1, nil, "\u00fc"}}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// jsonOperation is an operation of the document that takes JSON.
type jsonOperation struct {
	*openapi3.Operation
	method, path string
	idempotent   bool
	members      openapi3.Schemas
	body         object // an example
}

// jsonOperations are the operations of the document with JSON bodies: creations first,
// deletions last.
func jsonOperations(t testing.TB) (all []jsonOperation) {
	t.Helper()
	for path, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
				continue
			}
			media := op.RequestBody.Value.Content["application/json"]
			o := jsonOperation{Operation: op, method: method, path: path, members: membersOf(media.Schema.Value)}
			o.body = maps.Clone(exampleOf(t, media))
			for _, p := range op.Parameters {
				o.idempotent = o.idempotent || p.Value.Name == "Idempotency-Key"
			}
			if op.OperationID == "createUser" { // an address that signing up does not take first
				o.body["email"] = "created@example.com"
			}
			if o.members["attributes"] != nil {
				o.body["attributes"] = object{"department": "research and development", "list": []any{1, "two", nil}, "empty": object{}}
			}
			all = append(all, o)
		}
	}
	rank := func(o jsonOperation) int {
		switch {
		case o.method == "DELETE", strings.Contains(o.path, "delete"), strings.Contains(o.path, "remove"):
			return 3
		case o.method == "PATCH", o.method == "PUT":
			return 2
		}
		return 1
	}
	slices.SortFunc(all, func(a, b jsonOperation) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.path, b.path), strings.Compare(a.method, b.method))
	})
	return all
}

func membersOf(s *openapi3.Schema) openapi3.Schemas {
	all := maps.Clone(s.Properties)
	if all == nil {
		all = openapi3.Schemas{}
	}
	for _, part := range s.AllOf {
		maps.Copy(all, membersOf(part.Value))
	}
	return all
}

// exampleOf is an example of a body; where there are several, the first by name.
func exampleOf(t testing.TB, media *openapi3.MediaType) object {
	t.Helper()
	value := media.Example
	if value == nil {
		value = media.Examples[slices.Sorted(maps.Keys(media.Examples))[0]].Value.Value
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text)).(object)
}

// household is a tenant with one object for every variable of a path.
type household struct {
	admin, me *client
	fill      func(string) string
}

func (w *world) household(t testing.TB, slug string) household {
	t.Helper()
	h := household{admin: w.tenant(t, slug)}
	c := h.admin
	define(t, c)
	relate(t, c, "document", "q3", "viewer", user("usr_anna"))
	relate(t, c, "document", "reports/2026/q3", "viewer", user("usr_anna"))
	relate(t, c, "folder", "f1", "viewer", user("usr_bert"))
	ann := member(t, c, "ann@example.com")
	h.me = signedIn(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "staff", "name": "Staff"}).data()["id"].(string)
	app := c.want(t, 201, "", "POST", "/api/v1/applications", object{"name": "Machine", "type": "m2m"}).data()
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "reports:write", "entitlement": "group"})
	if w.receiver == nil {
		w.receiver = newReceiver(w.t, http.StatusNoContent)
	}
	subscription, _ := subscribe(t, c, w.receiver.URL, nil, "test.ping")
	incident := c.want(t, 201, "", "POST", incidentsPath, object{"title": "Public backup", "severity": "low"}).data()["id"].(string)
	report := c.want(t, 201, "", "POST", reportsPath, object{"name": "Sign-ins", "kind": "sign_ins_by_method"}).data()["id"].(string)
	_, run := ran(t, c, report)
	variables := strings.NewReplacer(
		"{incident_id}", incident, "{feed_id}", strings.TrimPrefix(newFeed(t, c, "mail_domain", "log", "disposable.example"), threatsPath+"/"),
		"{report_id}", report, "{run_id}", run["id"].(string), "{mail}", "verify_email", "{language}", "de",
		"{subscription_id}", subscription, "{delivery_id}", pingBy(t, c, subscription),
		"https://billing.example.com", w.receiver.URL, "https://risk.example.com", w.receiver.URL, // nothing leaves the machine
		"{type}", "document", "{external_id}", "q3", "{user_id}", ann, "{group_id}", group, "{application_id}", app["id"].(string),
		"{name}", "reports:write", "{kind}", "totp", "{factor_id}", "factor_x", "{client_id}", app["client_id"].(string),
		"usr_k3q7v2m5x4r6t2w7a2c3d4e5f6", ann, "app_k3q7v2m5x4r6t2w7a2c3d4e5f6", app["id"].(string),
		// A free name, and the address of no user.
		`"email":"ann@example.com"`, `"email":"new@example.com"`,
	)
	entry := sync.OnceValue(func() string { // takes seconds
		failing := newReceiver(t, http.StatusInternalServerError)
		subscription, _ := subscribe(t, c, failing.URL, nil, "test.ping")
		return deadLetters(t, c, subscription, 1)[0]
	})
	flow := sync.OnceValue(func() string {
		step := object{"sign_in": []any{object{"name": "Risk", "kind": "action", "action": "risk"}}, "actions": []any{object{"name": "risk", "url": w.receiver.URL, "effects": []any{"deny"}}}}
		publishFlow(t, c, step)
		c.want(t, 200, "", "PUT", flowPath+"/draft", step)
		return "1"
	})
	h.fill = func(text string) string {
		if strings.Contains(text, flowPath) {
			text = strings.NewReplacer("{version}", flow(), "{action_name}", "risk").Replace(text)
		}
		if strings.Contains(text, "{entry_id}") {
			text = strings.ReplaceAll(text, "{entry_id}", entry())
		}
		return variables.Replace(text)
	}
	return h
}

// client returns a client that may call an operation.
func (h household) client(path string) *client {
	if strings.HasPrefix(path, mePath) || strings.HasPrefix(path, authPath) {
		return h.me
	}
	return h.admin
}

// changing matches the values that differ between equivalent responses: ids, secrets, times
// and hosts.
var changing = regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/]{43}=|\b[a-z]{2,8}_[A-Za-z0-9_-]{20,}|\d{4}-\d\d-\d\dT[0-9:.]+Z|eyJ[A-Za-z0-9_.-]+|[A-Za-z0-9_+/=-]{26,}|form-\d+\b`)

// requestForms sends the example of each JSON operation in all equivalent forms, each to an
// equal tenant, and compares the responses and the resulting tenants.
func requestForms(t *testing.T, w *world, _ *client) {
	operations := jsonOperations(t)
	var first []string
	for i, form := range bodyForms {
		h := w.household(t, fmt.Sprintf("form-%d", i))
		var got []string
		done := 0
		for _, op := range operations {
			text, err := json.Marshal(op.body)
			if err != nil {
				t.Fatal(err)
			}
			head := maps.Clone(form.head)
			if !op.idempotent {
				delete(head, "Idempotency-Key")
			}
			send := func() answer {
				return h.client(op.path).send(t, op.method, h.fill(op.path), maps.Clone(head), form.write(t, []byte(h.fill(string(text)))))
			}
			a := send()
			if again := head["Idempotency-Key"]; again != nil && a.status < 400 {
				other := h.client(op.path).send(t, op.method, h.fill(op.path), maps.Clone(head), []byte(h.fill(string(text))))
				equal(t, op.OperationID+" in another form under the same key", other.code(), "idempotency_key_reused")
				if b := send(); b.text != a.text || b.status != a.status || b.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("%s: repeated: %d %s, want %d %s", op.OperationID, b.status, b.text, a.status, a.text)
				}
			}
			if a.status < 300 {
				done++
			}
			got = append(got, fmt.Sprintf("%s: %d %s", op.OperationID, a.status, changing.ReplaceAllString(a.text, "*")))
		}
		for _, target := range []string{
			"/api/v1/users/{user_id}", "/api/v1/groups/{group_id}", "/api/v1/settings", "/api/v1/scopes",
			"/api/v1/resources/{type}/{external_id}", "/api/v1/resource-types", "/api/v1/users?email=created@example.com", "/api/v1/groups", "/api/v1/applications",
		} {
			a := h.admin.do(t, "GET", h.fill(target), nil)
			got = append(got, fmt.Sprintf("GET %s: %d %s", target, a.status, changing.ReplaceAllString(a.text, "*")))
		}
		if first == nil {
			if first = got; done < 35 {
				t.Errorf("only %d operations of %d did anything: %s", done, len(operations), strings.Join(got, "\n"))
			}
			continue
		}
		for n := range first {
			if got[n] != first[n] {
				t.Errorf("%s:\n%s\nwant\n%s", form.name, got[n], first[n])
			}
		}
	}
}

// withoutBody calls each operation without a body. If the body is optional, that means an
// empty object, with or without a media type; otherwise it is refused.
func withoutBody(t *testing.T, w *world, _ *client) {
	optional := 0
	for _, op := range jsonOperations(t) {
		if op.RequestBody.Value.Required {
			continue
		}
		optional++
		var answers []string
		for i, header := range []http.Header{
			{"Content-Type": {"application/json"}}, {}, {"Content-Type": {"application/json"}}, {"Content-Type": {"application/x-www-form-urlencoded"}},
		} {
			var body []byte
			if i == 0 {
				body = []byte("{}")
			}
			h := w.household(t, fmt.Sprintf("bare-%d-%d", optional, i))
			a := h.client(op.path).send(t, op.method, h.fill(op.path), header, body)
			if a.status >= 400 && a.status != 401 { // a second factor that is not there
				t.Errorf("%s with %v and %q: %d %s", op.OperationID, header, body, a.status, a.text)
			}
			answers = append(answers, fmt.Sprint(a.status, " ", changing.ReplaceAllString(strings.ReplaceAll(a.text, fmt.Sprintf("bare-%d-%d", optional, i), "*"), "*")))
		}
		for _, a := range answers[1:] {
			equal(t, op.OperationID, a, answers[0])
		}
	}
	if optional < 4 {
		t.Errorf("only %d operations do without a body", optional)
	}
	h := w.household(t, "bare")
	for _, op := range jsonOperations(t) {
		if strings.HasPrefix(op.path, "/oauth2/") {
			continue // refuses as RFC 7591 has it
		}
		for _, header := range []http.Header{{}, {"Content-Type": {"application/json"}}, {"Content-Type": {"text/plain"}}} {
			if a := h.client(op.path).send(t, op.method, h.fill(op.path), header, nil); op.RequestBody.Value.Required && a.status != 415 && a.code() != "invalid_json" {
				t.Errorf("%s without a body, %v: %d %s", op.OperationID, header, a.status, a.text)
			}
		}
		for _, mediaType := range []string{"", "text/plain", "application/json, text/plain", "multipart/form-data; boundary=x"} {
			a := h.client(op.path).send(t, op.method, h.fill(op.path), http.Header{"Content-Type": {mediaType}}, []byte("{}"))
			equal(t, op.OperationID+" as "+mediaType, a.status, 415)
		}
	}
}

// strangeMembers sets each member of each body, in turn, to unusual values. No response is an
// internal error, and no operation accepts a value that the document forbids, which the
// client of these tests verifies.
func strangeMembers(t *testing.T, w *world, _ *client) {
	h := w.household(t, "strange")
	sent := 0
	for _, op := range jsonOperations(t) {
		c := h.client(op.path)
		send := func(body object) {
			t.Helper()
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			sent++
			a := c.send(t, op.method, h.fill(op.path), http.Header{"Content-Type": {"application/json"}}, []byte(h.fill(string(text))))
			if a.status >= 500 {
				t.Errorf("%s of %s: %d %s", op.OperationID, text, a.status, a.text)
			}
		}
		// Operations that change nothing may treat null and the empty string as absent.
		absent := func(body object) {
			t.Helper()
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			sent++
			if status := c.unjudged(t, op.method, h.fill(op.path), h.fill(string(text))); status >= 500 {
				t.Errorf("%s of %s: %d", op.OperationID, text, status)
			}
		}
		for name := range op.members {
			if op.OperationID == "rotateSigningKeys" || strings.HasPrefix(op.path, "/oauth2/register") && name == "jwks_uri" {
				continue // ends the tokens of all users
			}
			if name == "attribute_statements" {
				continue // ignored for applications of other types
			}
			without := maps.Clone(op.body)
			delete(without, name)
			send(without)
			for _, value := range []any{nil, "", []any{nil}} {
				if _, list := value.([]any); op.method == "PATCH" && !list {
					send(with(op.body, object{name: value}))
				} else {
					absent(with(op.body, object{name: value}))
				}
			}
			for _, value := range []any{
				"*", "a\nb", "\u0000", long(3000), 0, -1, 1e300, true, []any{}, []any{""}, []any{"*"}, []any{object{}}, object{}, object{"\u0000": "\u0000"},
			} {
				send(with(op.body, object{name: value}))
			}
		}
		for _, text := range []string{"null", "[]", `""`, "0", "{}", "[null]"} {
			a := c.send(t, op.method, h.fill(op.path), http.Header{"Content-Type": {"application/json"}}, []byte(text))
			if a.status >= 500 || text != "{}" && a.status < 400 {
				t.Errorf("%s of %s: %d %s", op.OperationID, text, a.status, a.text)
			}
		}
	}
	if sent < 2000 {
		t.Errorf("only %d requests were sent", sent)
	}
}

// strangeParameters calls each operation with empty, repeated, unknown and malformed
// parameters.
func strangeParameters(t *testing.T, w *world, _ *client) {
	h := w.household(t, "parameters")
	paths := document().doc.Paths.Map()
	for _, reads := range []bool{true, false} { // others may end the session that reads need
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			strangeParametersOf(t, h, path, paths[path], reads)
		}
	}
}

// strangeParametersOf calls the operations of a path, those that read or the others.
func strangeParametersOf(t *testing.T, h household, path string, item *openapi3.PathItem, reads bool) {
	for method, op := range item.Operations() {
		if op.RequestBody != nil || method == "DELETE" || (method == "GET") != reads {
			continue
		}
		c := h.client(path)
		if op.Extensions["x-streaming"] == true || op.OperationID == "signOut" || op.OperationID == "runReport" || strings.Contains(path, "{entry_id}") {
			continue // streams, or answers only once
		}
		ask := func(query string) answer {
			t.Helper()
			a := c.send(t, method, h.fill(path)+query, http.Header{}, nil)
			if a.status >= 500 {
				t.Errorf("%s %s%s: %d %s", method, path, query, a.status, a.text)
			}
			return a
		}
		plain := ask("")
		if unknown := ask("?x_unknown=1&x_unknown=2&="); unknown.status != plain.status && plain.status != 409 {
			t.Errorf("%s %s with an unknown parameter: %d %s, without %d", method, path, unknown.status, unknown.text, plain.status)
		}
		for _, p := range op.Parameters {
			if p.Value.In != "query" {
				continue
			}
			if a := c.unjudged(t, method, h.fill(path)+"?"+p.Value.Name+"=", ""); a >= 500 {
				t.Errorf("%s %s with an empty %s: %d", method, path, p.Value.Name, a)
			}
			for _, value := range []string{"%00", "%FF", "%", "*", "-1", "1.5", "true", "null", "9999999999999999999", "2026-01-01T00:00:00Z", "a%0D%0Ab", long(5000)} {
				ask("?" + p.Value.Name + "=" + value)
			}
			if a := ask("?" + p.Value.Name + "=1&" + p.Value.Name + "=2"); a.status < 400 {
				t.Errorf("%s %s takes %s twice: %d %s", method, path, p.Value.Name, a.status, a.text)
			}
		}
	}
}

// strangeMethods sends HEAD and OPTIONS to each path, and requests it with a slash at its end.
func strangeMethods(t *testing.T, w *world, _ *client) {
	h := w.household(t, "methods")
	effects := map[string]bool{}
	for _, op := range openapi.DataPlane.Operations {
		effects[op.Path] = effects[op.Path] || op.Effects
	}
	for path, item := range document().doc.Paths.Map() {
		c, target := h.client(path), h.fill(path)
		if get := item.Get; get != nil && effects[path] { // GET changes something, so HEAD does not run it
			equal(t, "HEAD "+path, c.unjudged(t, "HEAD", target, ""), 200)
		} else if get != nil && get.Extensions["x-streaming"] != true {
			got, head := c.send(t, "GET", target, http.Header{}, nil), c.send(t, "HEAD", target, http.Header{}, nil)
			equal(t, "HEAD "+path, []any{head.status, head.text}, []any{got.status, ""})
			equal(t, "HEAD "+path, head.header.Get("Content-Type"), got.header.Get("Content-Type"))
		}
		if get := item.Get; get != nil && get.Extensions["x-streaming"] == true { // ends, although GET would not
			for token, status := range map[string]int{c.token: 200, "x": 401} {
				head := c.with(token).send(t, "HEAD", target, http.Header{}, nil)
				equal(t, "HEAD "+path, []any{head.status, head.text}, []any{status, ""})
			}
		}
		equal(t, "OPTIONS "+path, c.send(t, "OPTIONS", target, http.Header{}, nil).status, 405)
		for method := range item.Operations() {
			if a := c.send(t, method, target+"/", http.Header{}, nil); a.status != 404 && a.status != 405 || a.code() != "not_found" && a.code() != "method_not_allowed" {
				t.Errorf("%s %s/: %d %s", method, path, a.status, a.text)
			}
		}
	}
}

// answerForms compares some requests and responses with the contract in detail.
func answerForms(t *testing.T, w *world, c *client) {
	h := w.household(t, "answers")
	lists := 0
	for path, item := range document().doc.Paths.Map() {
		if item.Get == nil || item.Get.Responses.Value("200") == nil || item.Get.Responses.Value("200").Value.Content["application/json"] == nil {
			continue
		}
		schema := item.Get.Responses.Value("200").Value.Content["application/json"].Schema.Value
		data := membersOf(schema)["data"]
		if data == nil || !data.Value.Type.Is("array") {
			continue
		}
		lists++
		query := ""
		if strings.HasSuffix(path, "/resources") {
			query = "?type=document"
		}
		target := h.fill(path) + query
		if strings.Contains(path, "/relations") && !strings.Contains(path, "{") {
			target += "?resource_type=document&subject_type=user&subject_id=ann"
		}
		a := h.client(path).do(t, "GET", target, nil)
		if a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.text)
			continue
		}
		meta := a.body["meta"].(object)
		if _, ok := meta["next_cursor"]; !ok || meta["limit"] != 50.0 {
			t.Errorf("%s: meta is %v", path, meta)
		}
	}
	if lists < 15 {
		t.Errorf("only %d lists", lists)
	}

	// Lists that are read as a whole have pages as well.
	for i := range 5 {
		c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": fmt.Sprintf("zz:%d", i), "entitlement": "self"})
	}
	whole := c.want(t, 200, "", "GET", "/api/v1/scopes?limit=250", nil).list()
	var pages []any
	for cursor := ""; ; {
		a := c.want(t, 200, "", "GET", "/api/v1/scopes?limit=7&cursor="+cursor, nil)
		pages = append(pages, a.list()...)
		next, more := a.meta("next_cursor").(string)
		if !more {
			break
		}
		cursor = next
	}
	equal(t, "pages", pages, whole)
	last := c.want(t, 200, "", "GET", fmt.Sprintf("/api/v1/scopes?limit=%d", len(whole)-2), nil)
	c.want(t, 204, "", "DELETE", "/api/v1/scopes/zz:2", nil) // with which that page ended
	rest := c.want(t, 200, "", "GET", "/api/v1/scopes?cursor="+last.meta("next_cursor").(string), nil).list()
	equal(t, "behind a removed item", rest, whole[len(whole)-2:])
	c.want(t, 400, "cursor_invalid", "GET", "/api/v1/scopes?cursor=x", nil)
	c.want(t, 400, "validation_failed", "GET", "/api/v1/scopes?limit=0", nil)

	// created_after has the precision of clients, milliseconds.
	for range 3 {
		at := c.want(t, 201, "", "POST", "/api/v1/users", object{"email": fmt.Sprintf("u%d@example.com", len(c.want(t, 200, "", "GET", "/api/v1/users", nil).list()))}).data()["created_at"].(string)
		for _, item := range c.want(t, 200, "", "GET", "/api/v1/users?created_after="+at, nil).list() {
			if item.(object)["created_at"] == at {
				t.Errorf("created_after=%s includes %v", at, item)
			}
		}
	}

	// An absent member is kept, and null restores the default, in nested objects as well.
	app := "/api/v1/applications/" + c.want(t, 201, "", "POST", "/api/v1/applications", object{
		"name": "a", "type": "m2m", "token_exchange": object{"enabled": true, "allowed_audiences": []string{"https://a.example"}, "act_as": object{"enabled": true, "allowed_subject_types": []string{"application"}}},
	}).data()["id"].(string)
	exchange := func(change any) object {
		t.Helper()
		return c.want(t, 200, "", "PATCH", app, object{"token_exchange": change}).data()["token_exchange"].(object)
	}
	want := object{
		"enabled": true, "allowed_audiences": []any{"https://b.example"}, "require_client_authentication": true, "subject_tokens": "any",
		"act_as": object{"enabled": true, "allowed_subject_types": []any{"application"}},
	}
	equal(t, "audiences", exchange(object{"allowed_audiences": []string{"https://b.example"}}), want)
	equal(t, "nothing", exchange(object{}), want)
	want["require_client_authentication"] = false
	equal(t, "authentication", exchange(object{"require_client_authentication": false}), want)
	want["subject_tokens"] = "own"
	equal(t, "subject_tokens", exchange(object{"subject_tokens": "own"}), want)
	want["act_as"] = object{"enabled": false, "allowed_subject_types": []any{"application"}}
	equal(t, "act_as", exchange(object{"act_as": object{"enabled": false}}), want)
	want["act_as"], want["require_client_authentication"] = object{"enabled": false, "allowed_subject_types": []any{"user"}}, true
	equal(t, "null", exchange(object{"act_as": nil, "require_client_authentication": nil}), want)
	want["enabled"], want["allowed_audiences"], want["subject_tokens"] = false, []any{}, "any"
	equal(t, "all null", exchange(nil), want)
	for field, change := range map[string]any{
		"token_exchange": "x", "token_exchange/enabled": object{"enabled": "yes"}, "token_exchange/act_as": object{"act_as": []any{}},
		"token_exchange/act_as/allowed_subject_types": object{"act_as": object{"allowed_subject_types": "user"}},
	} {
		equal(t, field, fields(c.want(t, 400, "validation_failed", "PATCH", app, object{"token_exchange": change})), []string{field})
	}

	// null clears attributes of every resource.
	given := object{"attributes": object{"a": "b c"}}
	for _, target := range []string{mePath + "/profile", "/api/v1/users/{user_id}", "/api/v1/resources/{type}/{external_id}"} {
		at := h.client(target)
		equal(t, target, at.want(t, 200, "", "PATCH", h.fill(target), given).data()["attributes"], given["attributes"])
		equal(t, target, at.want(t, 200, "", "PATCH", h.fill(target), object{"attributes": nil}).data()["attributes"], nil)
	}

	// A scope that a group cannot have is an error of the client.
	for _, scopes := range [][]string{{"*"}, {""}, {"a b"}, {"\x00"}, {long(200)}, {"ü"}} {
		c.want(t, 400, "scope_unknown", "POST", "/api/v1/groups", object{"slug": "g", "name": "g", "scopes": scopes})
		h.admin.want(t, 400, "scope_unknown", "PATCH", h.fill("/api/v1/groups/{group_id}"), object{"scopes": scopes})
		c.want(t, 400, "scope_unknown", "PATCH", app, object{"allowed_scopes": scopes})
	}
}

// oneLine refuses line breaks and control characters in all names.
func oneLine(t *testing.T, w *world, _ *client) {
	h := w.household(t, "names")
	for _, tc := range []struct {
		method, path, field string
		body                object
	}{
		{"POST", "/api/v1/users", "name", object{"email": "x@example.com"}},
		{"PATCH", "/api/v1/users/{user_id}", "given_name", nil},
		{"PATCH", "/api/v1/users/{user_id}", "family_name", nil},
		{"PATCH", mePath + "/profile", "name", nil},
		{"POST", authPath + "/sign-up", "name", object{"email": "y@example.com", "password": secret}},
		{"POST", "/api/v1/groups", "name", object{"slug": "x"}},
		{"PATCH", "/api/v1/groups/{group_id}", "name", nil},
		{"POST", "/api/v1/applications", "name", object{"type": "m2m"}},
		{"PATCH", "/api/v1/applications/{application_id}", "name", nil},
		{"POST", mePath + "/mfa/factors/totp/begin", "label", nil},
		{"POST", "/api/v1/scopes", "name", object{"entitlement": "self"}},
	} {
		for _, text := range []string{"a\r\nBcc: b@example.com", "a\nb", "a\x00b", "a\x1b[2J", "a\u0085b", "a\u2028b", "\x7f"} {
			a := h.client(tc.path).want(t, 400, "validation_failed", tc.method, h.fill(tc.path), with(tc.body, object{tc.field: text}))
			equal(t, tc.path, fields(a), []string{tc.field})
		}
	}
	for _, target := range []string{"/api/v1/groups/{group_id}", "/api/v1/applications/{application_id}", "/api/v1/scopes/{name}"} {
		h.admin.want(t, 200, "", "PATCH", h.fill(target), object{"description": "First line\nSecond line"})
		h.admin.want(t, 400, "validation_failed", "PATCH", h.fill(target), object{"description": "a\x1b[2J"})
	}
	h.admin.want(t, 400, "email_invalid", "POST", "/api/v1/users", object{"email": "\"a\r\nb\"@example.com"})
}

// documentServer compares the server in the document with the tenant's address.
func documentServer(t *testing.T, _ *world, c *client) {
	servers := c.want(t, 200, "", "GET", "/api/v1/openapi.json", nil).body["servers"].([]any)
	equal(t, "JSON", servers[0].(object)["url"], c.base())
	equal(t, "servers", len(servers), 1)
	text := c.want(t, 200, "", "GET", "/api/v1/openapi.yaml", nil).text
	if !strings.Contains(text, "\nservers:\n  - url: "+c.base()+"\n") {
		t.Error("the YAML form names another server")
	}
	collection := c.want(t, 200, "", "GET", "/api/v1/collection.json", nil)
	for _, v := range collection.body["variable"].([]any) {
		if v := v.(object); v["key"] == "baseUrl" {
			equal(t, "collection", v["value"], c.base())
		}
	}
}
