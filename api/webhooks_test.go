package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/api/openapi"
	"stonetown/controlplane"
	"stonetown/internal/eventlog"
	"stonetown/webhooks/signature"
	"stonetown/webhooks/subscription"
)

const (
	webhooksPath      = "/api/v1/webhooks"
	subscriptionsPath = webhooksPath + "/subscriptions"
	noReceiver        = "http://127.0.0.1:65533" // a port without a server
)

// receiver is a server that gets deliveries.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	received []received
	status   int
}

// received is a request that a receiver got.
type received struct {
	header http.Header
	body   []byte
	event  object
}

// newReceiver starts a receiver that responds with a status.
func newReceiver(t testing.TB, status int) *receiver {
	t.Helper()
	r := &receiver{status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		got := received{header: req.Header, body: body}
		if err != nil || json.Unmarshal(body, &got.event) != nil {
			t.Errorf("the receiver got %q, %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.received = append(r.received, got)
		w.Header().Set("Set-Cookie", "receiver=1")
		w.Header().Set("X-Receiver", "<b>")
		w.WriteHeader(r.status)
		if r.status != http.StatusNoContent {
			fmt.Fprintf(w, "<script>%d</script>", r.status)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// respond sets the status of the following responses.
func (r *receiver) respond(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

// wait waits until the receiver has got n requests, and returns them.
func (r *receiver) wait(t testing.TB, n int) []received {
	t.Helper()
	until(t, fmt.Sprintf("%d requests at the receiver", n), func() bool { return len(r.all()) >= n })
	return r.all()
}

// types lists the types of the events that were received.
func (r *receiver) types() []string {
	var types []string
	for _, got := range r.all() {
		types = append(types, got.event["event_type"].(string))
	}
	return types
}

// until waits for a condition.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// subscribe creates a subscription to events; more has further members of the request.
func subscribe(t testing.TB, c *client, url string, more object, events ...string) (id string, secret signature.Secret) {
	t.Helper()
	d := c.want(t, 201, "", "POST", subscriptionsPath, with(object{"name": "Test", "url": url, "events": anys(events)}, more)).data()
	return d["id"].(string), signingSecret(t, d)
}

// signingSecret returns the secret in the data of a response.
func signingSecret(t testing.TB, data object) signature.Secret {
	t.Helper()
	text, _ := data["signing_secret"].(string)
	secret, err := signature.ParseSecret(text)
	if err != nil {
		t.Fatalf("signing_secret: %v", err)
	}
	return secret
}

// verified reports whether both signatures of a request verify with a secret.
func (w *world) verified(r received, secret signature.Secret) bool {
	now := w.now()
	return signature.Verify(r.header, r.body, secret, now, signature.Tolerance) == nil &&
		signature.VerifyService(r.header, r.body, secret, now, signature.Tolerance) == nil
}

// deliveryBy waits until a delivery has a status, and returns it.
func deliveryBy(t testing.TB, c *client, deliveryID, status string) object {
	t.Helper()
	var d object
	until(t, deliveryID+" "+status, func() bool {
		d = c.want(t, 200, "", "GET", webhooksPath+"/deliveries/"+deliveryID, nil).data()
		return d["status"] == status
	})
	return d
}

// pingBy requests a test event and returns the id of its delivery.
func pingBy(t testing.TB, c *client, subscriptionID string) string {
	t.Helper()
	return c.want(t, 202, "", "POST", subscriptionsPath+"/"+subscriptionID+"/test", nil).data()["delivery_id"].(string)
}

// deadLetters makes n dead letters of a subscription whose receiver fails, by disabling it while
// they are pending, and enables it again. It returns their ids, the oldest first.
func deadLetters(t testing.TB, c *client, subscriptionID string, n int) (ids []string) {
	t.Helper()
	for range n {
		deliveryBy(t, c, pingBy(t, c, subscriptionID), "retrying")
	}
	at := subscriptionsPath + "/" + subscriptionID
	c.want(t, 200, "", "POST", at+"/disable", nil)
	until(t, "dead letters", func() bool {
		ids = nil
		for _, item := range c.want(t, 200, "", "GET", at+"/dlq?limit=250", nil).list() {
			ids = append(ids, item.(object)["id"].(string))
		}
		return len(ids) >= n
	})
	c.want(t, 200, "", "POST", at+"/enable", nil)
	slices.Sort(ids)
	return ids
}

// signedDeliveries sends an event to a receiver, which verifies it.
func signedDeliveries(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusNoContent)
	id, secret := subscribe(t, c, r.URL, nil, "scope.*")
	a := c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "orders:ship", "entitlement": "group"})
	got := r.wait(t, 1)[0]
	if !w.verified(got, secret) || w.verified(got, signature.NewSecret()) {
		t.Errorf("the signatures do not verify: %v", got.header)
	}
	altered := got
	altered.body = append(slices.Clone(got.body), ' ')
	if w.verified(altered, secret) {
		t.Error("a changed body verifies")
	}
	equal(t, "event_type", got.event["event_type"], "scope.created")
	equal(t, "data", got.event["data"], object{"scope": a.data()})
	equal(t, "tenant", got.event["tenant"].(object)["slug"], c.name())
	equal(t, "X-Service-Event", got.header.Get("X-Service-Event"), "scope.created")
	equal(t, "X-Service-Attempt", got.header.Get("X-Service-Attempt"), "1")
	equal(t, "webhook-id", got.header.Get("Webhook-Id"), got.event["event_id"])

	d := deliveryBy(t, c, got.header.Get("X-Service-Delivery"), "delivered")
	attempt := d["attempts"].([]any)[0].(object)
	equal(t, "attempt", []any{attempt["number"], attempt["status"], attempt["error"]}, []any{1.0, 204.0, nil})
	equal(t, "delivery", []any{d["subscription_id"], d["event_id"], d["event_type"], d["attempt_count"], d["next_attempt_at"]}, []any{id, got.event["event_id"], "scope.created", 1.0, nil})
	equal(t, "feed", c.want(t, 200, "", "GET", subscriptionsPath+"/"+id+"/deliveries", nil).list(), []any{d})
	until(t, "last_success_at", func() bool {
		return c.want(t, 200, "", "GET", subscriptionsPath+"/"+id, nil).data()["last_success_at"] != nil
	})
}

// subscriptionLife creates a subscription, changes it in every way and deletes it.
func subscriptionLife(t *testing.T, w *world, c *client) {
	r := newReceiver(t, http.StatusNoContent)
	form := object{
		"name": "Billing", "url": r.URL, "events": []any{"user.*", "relation.created"}, "description": "For invoices",
		"visible_to": object{"subject": object{"type": "group", "id": "team"}, "action": "view"},
		"owners":     []any{object{"type": "application", "id": "client_x"}}, "viewers": []any{user("usr_x"), object{"type": "group", "id": "staff"}},
	}
	created := c.under(t, "create", "POST", subscriptionsPath, form)
	again := c.under(t, "create", "POST", subscriptionsPath, form)
	if created.status != 201 || again.text != created.text || again.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("%d %s, then %s", created.status, created.text, again.text)
	}
	secret := signingSecret(t, created.data())
	d := created.data()
	delete(d, "signing_secret")
	id := d["id"].(string)
	at := subscriptionsPath + "/" + id
	equal(t, "Location", created.header.Get("Location"), at)
	for name, value := range form {
		equal(t, name, d[name], value)
	}
	equal(t, "state", []any{d["state"], d["disabled_reason"], d["failing_since"], d["last_success_at"], d["previous_secret_expires_at"]}, []any{"enabled", nil, nil, nil, nil})
	equal(t, "read", c.want(t, 200, "", "GET", at, nil).data(), d)

	changed := func(form object) object {
		t.Helper()
		d = c.want(t, 200, "", "PATCH", at, form).data()
		equal(t, "read after a change", c.want(t, 200, "", "GET", at, nil).data(), d)
		return d
	}
	equal(t, "nothing", changed(object{})["name"], "Billing")
	equal(t, "name", changed(object{"name": "Invoices"})["name"], "Invoices")
	equal(t, "url", changed(object{"url": r.URL + "/v2"})["url"], r.URL+"/v2")
	equal(t, "events", changed(object{"events": []any{"*"}})["events"], []any{"*"})
	equal(t, "description", changed(object{"description": nil})["description"], "")
	equal(t, "visible_to", changed(object{"visible_to": nil})["visible_to"], nil)
	equal(t, "owners", changed(object{"owners": []any{}})["owners"], []any{})
	equal(t, "viewers", changed(object{"viewers": []any{user("usr_y")}})["viewers"], []any{user("usr_y")})
	for _, name := range []string{"id", "state", "created_at"} {
		equal(t, name, c.want(t, 400, "immutable_field", "PATCH", at, object{name: d[name]}).details()["fields"], []any{name})
	}
	for _, name := range []string{"name", "url", "events", "owners", "viewers"} {
		equal(t, name, fields(c.want(t, 400, "validation_failed", "PATCH", at, object{name: nil})), []string{name})
	}
	disabled := c.want(t, 200, "", "POST", at+"/disable", nil).data()
	equal(t, "disabled", []any{disabled["state"], disabled["disabled_reason"]}, []any{"disabled", "manual"})
	equal(t, "disabled twice", c.want(t, 200, "", "POST", at+"/disable", nil).data(), disabled)
	enabled := c.want(t, 200, "", "POST", at+"/enable", nil).data()
	equal(t, "enabled", []any{enabled["state"], enabled["disabled_reason"]}, []any{"enabled", nil})

	// The list, in pages and by state.
	var want []any
	for i := range 4 {
		other, _ := subscribe(t, c, r.URL, object{"name": fmt.Sprint("n", i)}, "test.ping")
		want = append([]any{other}, want...)
	}
	want = append(want, id)
	listed := func(query string) (ids []any) {
		t.Helper()
		for cursor := ""; ; {
			a := c.want(t, 200, "", "GET", subscriptionsPath+"?limit=2"+query+cursor, nil)
			for _, item := range a.list() {
				ids = append(ids, item.(object)["id"])
			}
			next, more := a.meta("next_cursor").(string)
			if !more {
				return ids
			}
			cursor = "&cursor=" + next
		}
	}
	equal(t, "list", listed(""), want)
	c.want(t, 200, "", "POST", subscriptionsPath+"/"+want[1].(string)+"/disable", nil)
	equal(t, "disabled ones", listed("&state=disabled"), []any{want[1]})
	equal(t, "enabled ones", len(listed("&state=enabled")), 4)
	c.want(t, 400, "validation_failed", "GET", subscriptionsPath+"?state=x", nil)

	// The secret is part of no other response, event or record of the log.
	everything := c.want(t, 200, "", "GET", subscriptionsPath, nil).text + c.want(t, 200, "", "GET", at, nil).text + w.log.String()
	for _, e := range w.events(t, c, 0) {
		everything += string(e.Data)
	}
	_, bare, _ := strings.Cut(secret.Text(), "_")
	if strings.Contains(everything, bare) || !strings.Contains(everything, "webhook.subscription_created") && !strings.Contains(everything, id) {
		t.Error("the secret is not only in the response to its creation")
	}

	// What was deleted does not exist.
	entry := subscriptionsPath + "/" + want[0].(string)
	c.want(t, 204, "", "DELETE", entry, nil)
	c.want(t, 204, "", "DELETE", at, nil)
	for _, o := range relatedOperations(t) {
		code := "subscription_not_found"
		switch {
		case strings.Contains(o.path, "{delivery_id}"):
			code = "delivery_not_found"
		case strings.Contains(o.path, "{entry_id}"):
			code = "dlq_entry_not_found"
		case !strings.Contains(o.path, "{"):
			continue
		}
		for _, absent := range []string{id, "x", "%00", "%FF", "*", long(600)} {
			target := strings.NewReplacer("{subscription_id}", absent, "{delivery_id}", absent, "{entry_id}", absent).Replace(o.path)
			c.want(t, 404, code, o.method, target, o.body())
		}
	}
	c.want(t, 404, "dlq_entry_not_found", "POST", subscriptionsPath+"/"+want[2].(string)+"/dlq/replay", object{"entry_ids": []any{"dle_x"}})
}

// relatedOperations are the operations of the document for which a relation to a subscription
// suffices.
func relatedOperations(t testing.TB) (found []operation) {
	t.Helper()
	for path, item := range document().doc.Paths.Map() {
		for method, op := range item.Operations() {
			if isRelated(op) {
				found = append(found, operation{method, path, op})
			}
		}
	}
	if len(found) < 14 {
		t.Fatalf("only %d operations", len(found))
	}
	return found
}

// body is an acceptable body of the operation, if it has one.
func (o operation) body() any {
	if o.op.RequestBody == nil {
		return nil
	}
	return object{}
}

// subscriptionForms refuses subscriptions with invalid members.
func subscriptionForms(t *testing.T, _ *world, c *client) {
	form := object{"name": "n", "url": noReceiver, "events": []any{"test.ping"}}
	at := subscriptionsPath + "/" + c.want(t, 201, "", "POST", subscriptionsPath, form).data()["id"].(string)
	many := func(n int, item func(int) any) (list []any) {
		for i := range n {
			list = append(list, item(i))
		}
		return list
	}
	person := func(i int) any { return user(fmt.Sprint("u", i)) }
	for _, tc := range []struct {
		name, code, field string
		value             any
	}{
		{"name", "validation_failed", "name", ""},
		{"name", "validation_failed", "name", "a\nb"},
		{"name", "validation_failed", "name", long(201)},
		{"name", "validation_failed", "name", 1},
		{"description", "validation_failed", "description", long(1001)},
		{"description", "validation_failed", "description", "\x1b"},
		{"url", "validation_failed", "url", 7},
		{"url", "webhook_url_invalid", "scheme", "ftp://example.com"},
		{"url", "webhook_url_invalid", "url", "https://a:b@example.com"},
		{"url", "webhook_url_invalid", "url", "https://example.com/#x"},
		{"url", "webhook_url_invalid", "url", "https://example.com/" + long(2048)},
		{"url", "webhook_url_invalid", "port", "https://example.com:25/"},
		{"url", "webhook_url_invalid", "host", "https://0x7f.1/"},
		{"events", "validation_failed", "events", "user.*"},
		{"events", "validation_failed", "events", []any{}},
		{"events", "validation_failed", "events", many(51, func(int) any { return "*" })},
		{"events", "validation_failed", "events", []any{"user.*", "user.*"}},
		{"events", "event_type_unknown", "users.*", []any{"*", "users.*"}},
		{"events", "event_type_unknown", "user.nothing", []any{"user.nothing"}},
		{"events", "event_type_unknown", "**", []any{"**"}},
		{"events", "event_type_unknown", "", []any{nil}},
		{"visible_to", "validation_failed", "visible_to", "x"},
		{"visible_to", "validation_failed", "visible_to/action", object{"subject": user("u")}},
		{"visible_to", "validation_failed", "visible_to/subject/type", object{"action": "view"}},
		{"visible_to", "validation_failed", "visible_to/subject/id", object{"action": "view", "subject": user("*")}},
		{"owners", "validation_failed", "owners", object{}},
		{"owners", "validation_failed", "owners", many(21, person)},
		{"owners", "validation_failed", "owners", []any{user("u"), user("u")}},
		{"owners", "validation_failed", "owners", []any{object{"type": "document", "id": "d"}}},
		{"owners", "validation_failed", "owners", []any{object{"type": "user", "id": "u", "relation": "r"}}},
		{"owners", "validation_failed", "owners/type", []any{nil}},
		{"viewers", "validation_failed", "viewers/id", []any{user("*")}},
		{"viewers", "validation_failed", "viewers/id", []any{user(long(513))}},
	} {
		for method, target := range map[string]string{"POST": subscriptionsPath, "PATCH": at} {
			a := c.want(t, 400, tc.code, method, target, with(form, object{tc.name: tc.value}))
			var got any = tc.field
			switch tc.code {
			case "validation_failed":
				got = strings.Join(fields(a), ",")
			case "webhook_url_invalid":
				got = a.details()["reason"]
			case "event_type_unknown":
				got = a.details()["pattern"]
			}
			equal(t, fmt.Sprintf("%s %s %v", method, tc.name, tc.value), got, any(tc.field))
		}
	}
	equal(t, "empty", fields(c.want(t, 400, "validation_failed", "POST", subscriptionsPath, object{})), []string{"name", "url", "events"})
	equal(t, "null", fields(c.want(t, 400, "validation_failed", "POST", subscriptionsPath, object{"name": nil, "url": nil, "events": nil})), []string{"name", "url", "events"})
	d := c.want(t, 201, "", "POST", subscriptionsPath, with(form, object{"description": nil, "visible_to": nil})).data()
	equal(t, "null is absent", []any{d["description"], d["visible_to"], d["owners"], d["viewers"]}, []any{"", nil, []any{}, []any{}})
	equal(t, "null is absent", c.unjudged(t, "POST", subscriptionsPath, `{"name":"n","url":"`+noReceiver+`","events":["*"],"owners":null,"viewers":null}`), 201)

	for _, ttl := range []any{-1, 604801, 1e15} {
		equal(t, fmt.Sprint(ttl), fields(c.want(t, 400, "validation_failed", "POST", at+"/rotate-secret", object{"previous_ttl_s": ttl})), []string{"previous_ttl_s"})
	}
	for _, query := range []string{"status=x", "since=x", "limit=0"} {
		c.want(t, 400, "validation_failed", "GET", at+"/deliveries?"+query, nil)
	}
	c.want(t, 400, "event_type_unknown", "GET", at+"/deliveries?event_type=user.*", nil)
	c.want(t, 400, "validation_failed", "GET", at+"/dlq?state=x", nil)
	for _, body := range []object{
		{"entry_ids": []any{}},
		{"entry_ids": "x"},
		{"entry_ids": many(1001, func(i int) any { return fmt.Sprint(i) })},
		{"since": "x"},
		{"until": 1},
		{"entry_ids": []any{"dle_x"}, "since": "2026-01-01T00:00:00Z"},
		{"entry_ids": []any{"dle_x"}, "until": "2026-01-01T00:00:00Z"},
	} {
		c.want(t, 400, "validation_failed", "POST", at+"/dlq/replay", body)
	}
	for _, target := range []string{subscriptionsPath, at + "/rotate-secret", at + "/dlq/replay"} {
		c.want(t, 400, "invalid_json", "POST", target, `{`)
	}
	c.want(t, 400, "invalid_json", "PATCH", at, `{`)
}

// eventTypes compares the list of event types with the document.
func eventTypes(t *testing.T, _ *world, c *client) {
	want := openapi.EventTypes()
	var got []any
	for cursor := ""; ; {
		a := c.want(t, 200, "", "GET", webhooksPath+"/event-types?limit=30"+cursor, nil)
		got = append(got, a.list()...)
		next, more := a.meta("next_cursor").(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	equal(t, "types", len(got), len(want))
	for i, item := range got {
		d := item.(object)
		equal(t, "type", []any{d["name"], d["description"], d["category"], d["schema"]}, []any{want[i].Name, want[i].Description, want[i].Category, parse(t, string(want[i].Schema))})
		if d["schema"].(object)["$schema"] == nil {
			t.Errorf("%s: not a JSON Schema: %v", d["name"], d["schema"])
		}
	}
	c.want(t, 400, "cursor_invalid", "GET", webhooksPath+"/event-types?cursor=x", nil)
	c.want(t, 400, "validation_failed", "GET", webhooksPath+"/event-types?limit=251", nil)
}

// secretRotation rotates a secret: deliveries are signed with both until the previous one ends.
func secretRotation(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusNoContent)
	id, first := subscribe(t, c, r.URL, nil, "group.*")
	at := subscriptionsPath + "/" + id
	rotate := func(body any) (secret signature.Secret, until any) {
		t.Helper()
		d := c.want(t, 200, "", "POST", at+"/rotate-secret", body).data()
		equal(t, "previous_secret_expires_at", c.want(t, 200, "", "GET", at, nil).data()["previous_secret_expires_at"], d["previous_expires_at"])
		w.later(2 * time.Second) // a delivery may be signed as of the second before
		return signingSecret(t, d), d["previous_expires_at"]
	}
	ping := func() received {
		t.Helper()
		n := len(r.all())
		pingBy(t, c, id)
		return r.wait(t, n+1)[n]
	}
	verifies := func(what string, got received, secret signature.Secret, want bool) {
		t.Helper()
		equal(t, what, w.verified(got, secret), want)
	}
	verifies("before", ping(), first, true)

	second, expires := rotate(nil)
	end, err := time.Parse(time.RFC3339, expires.(string))
	if err != nil || end.Sub(w.now()) < 23*time.Hour || end.Sub(w.now()) > 24*time.Hour {
		t.Errorf("the previous secret ends at %v", expires)
	}
	got := ping()
	verifies("the new one", got, second, true)
	verifies("the previous one", got, first, true)

	third, _ := rotate(object{"previous_ttl_s": 60})
	got = ping()
	verifies("the newest", got, third, true)
	verifies("the one before", got, second, true)
	verifies("the first", got, first, false)
	w.later(2 * time.Minute)
	got = ping()
	verifies("the newest, later", got, third, true)
	verifies("an expired one", got, second, false)

	fourth, expires := rotate(object{"previous_ttl_s": 0})
	equal(t, "no overlap", expires, nil)
	got = ping()
	verifies("the last", got, fourth, true)
	verifies("a compromised one", got, third, false)

	once := c.under(t, "rotate", "POST", at+"/rotate-secret", object{})
	again := c.under(t, "rotate", "POST", at+"/rotate-secret", object{})
	equal(t, "the same key", []any{again.text, again.header.Get("Idempotent-Replayed")}, []any{once.text, "true"})
}

// eventPatterns delivers the events that the patterns of subscriptions match.
func eventPatterns(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	all, scopes, exact := newReceiver(t, 204), newReceiver(t, 204), newReceiver(t, 204)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "before:all", "entitlement": "self"})
	subscribe(t, c, scopes.URL, nil, "scope.*")
	subscribe(t, c, exact.URL, nil, "group.deleted", "scope.deleted")
	subscribe(t, c, all.URL, nil, "*")
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "a:b", "entitlement": "self"})
	g := group(t, c, "staff")
	c.want(t, 204, "", "DELETE", groupsPath+"/"+g, nil)
	c.want(t, 204, "", "DELETE", "/api/v1/scopes/a:b", nil)
	all.wait(t, 4)
	scopes.wait(t, 2)
	exact.wait(t, 2)
	sorted := func(r *receiver) []string { types := r.types(); slices.Sort(types); return types }
	equal(t, "all", sorted(all), []string{"group.created", "group.deleted", "scope.created", "scope.deleted"})
	equal(t, "a category", sorted(scopes), []string{"scope.created", "scope.deleted"})
	equal(t, "types", sorted(exact), []string{"group.deleted", "scope.deleted"})

	// Events about a subscription are sent to the others only.
	other, _ := subscribe(t, c, exact.URL, nil, "webhook.*")
	all.wait(t, 5)
	c.want(t, 200, "", "PATCH", subscriptionsPath+"/"+other, object{"name": "Renamed"})
	got := all.wait(t, 6)[5]
	equal(t, "about another", []any{got.event["event_type"], got.event["data"].(object)["subscription"].(object)["id"]}, []any{"webhook.subscription_updated", other})
	equal(t, "to itself", slices.Contains(exact.types(), "webhook.subscription_updated"), false)
}

// failedAttempts lists failed attempts, and the events that are queued when a subscription is
// disabled.
func failedAttempts(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusTeapot)
	id, _ := subscribe(t, c, r.URL, nil, "scope.*")
	at := subscriptionsPath + "/" + id
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "a:b", "entitlement": "self"})
	sent := r.wait(t, 1)[0]
	deliveryID := sent.header.Get("X-Service-Delivery")
	d := deliveryBy(t, c, deliveryID, "retrying")
	attempt := d["attempts"].([]any)[0].(object)
	equal(t, "attempt", []any{d["attempt_count"], attempt["status"], attempt["error"]}, []any{1.0, 418.0, "status"})
	next, err := time.Parse(time.RFC3339, d["next_attempt_at"].(string))
	if wait := next.Sub(w.now()); err != nil || wait < 50*time.Second || wait > 70*time.Second {
		t.Errorf("the next attempt is at %v", d["next_attempt_at"])
	}
	if c.want(t, 200, "", "GET", at, nil).data()["failing_since"] == nil {
		t.Error("failing_since is null")
	}
	ping := deliveryBy(t, c, pingBy(t, c, id), "retrying")
	equal(t, "of a type", c.want(t, 200, "", "GET", at+"/deliveries?event_type=test.ping", nil).list(), []any{ping})
	equal(t, "of a status", len(c.want(t, 200, "", "GET", at+"/deliveries?status=retrying", nil).list()), 2)
	equal(t, "of another status", len(c.want(t, 200, "", "GET", at+"/deliveries?status=delivered", nil).list()), 0)
	equal(t, "since", c.want(t, 200, "", "GET", at+"/deliveries?since="+url.QueryEscape(ping["created_at"].(string)), nil).list(), []any{ping})
	for since, want := range map[string]int{"0001-01-01T00:00:00Z": 2, "9999-12-31T23:59:59.999999999Z": 0, "2020-01-01T00:00:00%2B14:00": 2} {
		equal(t, since, len(c.want(t, 200, "", "GET", at+"/deliveries?since="+since, nil).list()), want)
	}
	page := c.want(t, 200, "", "GET", at+"/deliveries?limit=1", nil)
	equal(t, "newest", page.list(), []any{ping})
	page = c.want(t, 200, "", "GET", at+"/deliveries?limit=1&cursor="+page.meta("next_cursor").(string), nil)
	equal(t, "second page", []any{page.list(), page.meta("next_cursor")}, []any{[]any{d}, nil})
	c.want(t, 400, "cursor_invalid", "GET", at+"/deliveries?cursor=x", nil)

	// Disabled: pending deliveries become dead letters, and no new ones are made.
	c.want(t, 200, "", "POST", at+"/disable", nil)
	d = deliveryBy(t, c, deliveryID, "dead_lettered")
	equal(t, "no next attempt", d["next_attempt_at"], nil)
	deliveryBy(t, c, ping["id"].(string), "dead_lettered")
	list := c.want(t, 200, "", "GET", at+"/dlq", nil).list()
	equal(t, "dead letters", len(list), 2)
	e := list[1].(object)
	equal(t, "dead letter", []any{e["delivery_id"], e["reason"], e["state"], e["replayed_delivery_id"], e["dropped_by"], e["dropped_at"]}, []any{deliveryID, "subscription_disabled", "queued", nil, nil, nil})
	equal(t, "event", e["event"], any(sent.event))
	equal(t, "attempts", e["attempts"], d["attempts"])
	response := e["last_response"].(object)
	equal(t, "last_response", []any{response["status"], response["body"], response["truncated"]}, []any{418.0, "<script>418</script>", false})
	headers := response["headers"].(object)
	equal(t, "headers", []any{headers["X-Receiver"], headers["Set-Cookie"]}, []any{[]any{"<b>"}, nil})
	c.want(t, 409, "subscription_disabled", "POST", at+"/test", nil)
	c.want(t, 409, "subscription_disabled", "POST", webhooksPath+"/deliveries/"+deliveryID+"/redeliver", nil)
	c.want(t, 409, "subscription_disabled", "POST", webhooksPath+"/dlq-entries/"+e["id"].(string)+"/replay", nil)
	c.want(t, 409, "subscription_disabled", "POST", at+"/dlq/replay", object{})
	page = c.want(t, 200, "", "GET", at+"/dlq?limit=1", nil)
	page = c.want(t, 200, "", "GET", at+"/dlq?limit=1&cursor="+page.meta("next_cursor").(string), nil)
	equal(t, "second page", []any{page.list(), page.meta("next_cursor")}, []any{[]any{list[1]}, nil})
	c.want(t, 400, "cursor_invalid", "GET", at+"/dlq?state=dropped&cursor=x", nil)
	c.want(t, 204, "", "DELETE", "/api/v1/scopes/a:b", nil)

	// Enabled: what was committed meanwhile is not delivered.
	r.respond(http.StatusNoContent)
	before := len(r.all())
	c.want(t, 200, "", "POST", at+"/enable", nil)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "c:d", "entitlement": "self"})
	equal(t, "after enabling", r.wait(t, before+1)[before].event["event_type"], "scope.created")
	until(t, "the receiver is healthy", func() bool {
		return c.want(t, 200, "", "GET", at, nil).data()["failing_since"] == nil
	})
	equal(t, "requests", len(r.all()), before+1)

	// Deleted: pending attempts are not made.
	r.respond(http.StatusInternalServerError)
	deliveryBy(t, c, pingBy(t, c, id), "retrying")
	c.want(t, 204, "", "DELETE", at, nil)
	w.later(2 * time.Minute)
	time.Sleep(1500 * time.Millisecond) // in which an attempt that is due would begin
	equal(t, "requests after the deletion", len(r.all()), before+2)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "e:f", "entitlement": "self"})
	c.want(t, 404, "subscription_not_found", "GET", at+"/deliveries", nil)
	c.want(t, 404, "subscription_not_found", "GET", at+"/dlq", nil)
}

// deadLetterRaces replays and drops dead letters concurrently: one request succeeds.
func deadLetterRaces(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusInternalServerError)
	id, _ := subscribe(t, c, r.URL, nil, "scope.*")
	entries := deadLetters(t, c, id, 4)
	r.respond(http.StatusNoContent)
	event := r.all()[0].event["event_id"]
	race := func(entry string, verbs ...string) (won map[string]answer) {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		won = map[string]answer{}
		var lost, winners atomic.Int64
		for i := range 16 {
			verb := verbs[i%len(verbs)]
			wg.Go(func() {
				a := c.do(t, "POST", webhooksPath+"/dlq-entries/"+entry+"/"+verb, nil)
				switch {
				case a.status < 300:
					winners.Add(1)
					mu.Lock()
					won[verb] = a
					mu.Unlock()
				case a.code() == "dlq_entry_not_queued":
					lost.Add(1)
				default:
					t.Errorf("%s: %d %s", verb, a.status, a.text)
				}
			})
		}
		wg.Wait()
		equal(t, "winners and losers", []any{winners.Load(), lost.Load()}, []any{int64(1), int64(15)})
		return won
	}
	before := len(r.all())
	replayed := race(entries[0], "replay")["replay"].data()
	equal(t, "replay", []any{replayed["entry_id"], replayed["state"]}, []any{entries[0], "replayed"})
	got := r.wait(t, before+1)[before]
	equal(t, "the replayed event", []any{got.event["event_id"], got.header.Get("X-Service-Delivery"), got.header.Get("X-Service-Attempt")}, []any{event, replayed["delivery_id"], "1"})
	dropped := race(entries[1], "drop")["drop"].data()
	if dropped["state"] != "dropped" || !strings.HasPrefix(dropped["dropped_by"].(string), "client_") || dropped["dropped_at"] == nil {
		t.Errorf("dropped: %v", dropped)
	}
	mixed := race(entries[2], "replay", "drop")
	for verb, state := range map[string]string{"replay": "replayed", "drop": "dropped"} {
		refused := c.want(t, 409, "dlq_entry_not_queued", "POST", webhooksPath+"/dlq-entries/"+entries[2]+"/"+verb, nil)
		if _, ok := mixed[verb]; ok {
			equal(t, "state", refused.details()["state"], state)
		}
	}
	deliveryBy(t, c, replayed["delivery_id"].(string), "delivered")
	list := func(state string) (ids []any) {
		t.Helper()
		for _, item := range c.want(t, 200, "", "GET", subscriptionsPath+"/"+id+"/dlq?state="+state, nil).list() {
			ids = append(ids, item.(object)["id"])
		}
		return ids
	}
	equal(t, "queued", list("queued"), []any{entries[3]})
	equal(t, "handled", len(list("replayed"))+len(list("dropped")), 3)
}

// deadLetterReplays replays several dead letters with one request.
func deadLetterReplays(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusInternalServerError)
	id, _ := subscribe(t, c, r.URL, nil, "scope.*")
	other, _ := subscribe(t, c, r.URL, nil, "scope.*")
	entries, foreign := deadLetters(t, c, id, 5), deadLetters(t, c, other, 1)
	at := subscriptionsPath + "/" + id
	r.respond(http.StatusNoContent)
	before := len(r.all())
	replay := func(body object) any {
		t.Helper()
		return c.want(t, 202, "", "POST", at+"/dlq/replay", body).data()["queued"]
	}
	c.want(t, 404, "dlq_entry_not_found", "POST", at+"/dlq/replay", object{"entry_ids": []any{entries[0], foreign[0]}})
	c.want(t, 404, "dlq_entry_not_found", "POST", at+"/dlq/replay", object{"entry_ids": []any{entries[0], "dle_\x00"}})
	equal(t, "none before", replay(object{"until": "2020-01-01T00:00:00Z"}), 0.0)
	equal(t, "none after", replay(object{"since": "2100-01-01T00:00:00+01:00"}), 0.0)
	equal(t, "one, named twice", replay(object{"entry_ids": []any{entries[1], entries[1]}}), 1.0)
	equal(t, "the same again", replay(object{"entry_ids": []any{entries[1], entries[2]}}), 1.0)
	var total atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { total.Add(int64(replay(object{}).(float64))) })
	}
	wg.Wait()
	equal(t, "the rest, once", total.Load(), int64(3))
	r.wait(t, before+5)
	equal(t, "of another subscription", len(c.want(t, 200, "", "GET", subscriptionsPath+"/"+other+"/dlq", nil).list()), 1)
	equal(t, "queued", len(c.want(t, 200, "", "GET", at+"/dlq", nil).list()), 0)
	replayed := c.want(t, 200, "", "GET", at+"/dlq?state=replayed", nil).list()
	equal(t, "replayed", len(replayed), 5)
	seen := map[any]bool{}
	for _, item := range replayed {
		seen[item.(object)["replayed_delivery_id"]] = true
	}
	equal(t, "deliveries", len(seen), 5)
	equal(t, "requests", len(r.all()), before+5)
}

// redeliveries delivers an event again, unless it is no longer stored.
func redeliveries(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusNoContent)
	id, secret := subscribe(t, c, r.URL, nil, "scope.*")
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "a:b", "entitlement": "self"})
	first := r.wait(t, 1)[0]
	deliveryID := first.header.Get("X-Service-Delivery")
	deliveryBy(t, c, deliveryID, "delivered")
	again := c.want(t, 202, "", "POST", webhooksPath+"/deliveries/"+deliveryID+"/redeliver", nil).data()
	equal(t, "new", []any{again["status"], again["attempt_count"], again["subscription_id"], again["event_id"]}, []any{"pending", 0.0, id, first.event["event_id"]})
	second := r.wait(t, 2)[1]
	equal(t, "the event", second.event, first.event)
	equal(t, "its delivery", second.header.Get("X-Service-Delivery"), again["id"])
	equal(t, "signed", w.verified(second, secret), true)
	deliveryBy(t, c, again["id"].(string), "delivered")

	if _, err := w.db.Exec(t.Context(), `DELETE FROM events WHERE id = $1`, first.event["event_id"]); err != nil {
		t.Fatal(err)
	}
	c.want(t, 409, "event_expired", "POST", webhooksPath+"/deliveries/"+deliveryID+"/redeliver", nil)
}

// subscriptionLimit creates as many subscriptions as a tenant can have.
func subscriptionLimit(t *testing.T, _ *world, c *client) {
	var last string
	for range subscription.MaxSubscriptions {
		last, _ = subscribe(t, c, noReceiver, nil, "webhook.secret_rotated")
	}
	form := object{"name": "n", "url": noReceiver, "events": []any{"test.ping"}}
	a := c.want(t, 409, "subscription_limit_reached", "POST", subscriptionsPath, form)
	equal(t, "limit", a.details()["limit"], float64(subscription.MaxSubscriptions))
	c.want(t, 204, "", "DELETE", subscriptionsPath+"/"+last, nil)
	var wg sync.WaitGroup
	var created atomic.Int64
	for range 5 {
		wg.Go(func() {
			if a := c.do(t, "POST", subscriptionsPath, form); a.status == 201 {
				created.Add(1)
			} else if a.code() != "subscription_limit_reached" {
				t.Errorf("%d %s", a.status, a.text)
			}
		})
	}
	wg.Wait()
	equal(t, "created at once", created.Load(), int64(1))
}

// suspendedDeliveries holds deliveries back while the tenant is suspended.
func suspendedDeliveries(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t, http.StatusServiceUnavailable)
	id, _ := subscribe(t, c, r.URL, nil, "scope.*")
	delivery := pingBy(t, c, id)
	deliveryBy(t, c, delivery, "retrying")
	state := func(changed controlplane.Tenant, err error, paused bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		until(t, string(changed.State), func() bool {
			var n int64
			if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM webhook_lanes WHERE tenant_id = $1 AND paused_at > 0`, tenant.ID).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return (n > 0) == paused
		})
	}
	suspended, err := w.tenants.Suspend(t.Context(), tenant.ID, "", eventlog.Origin{})
	state(suspended, err, true)
	w.later(time.Hour)
	time.Sleep(1500 * time.Millisecond) // in which an attempt that is due would begin
	equal(t, "attempts while suspended", len(r.all()), 1)
	active, err := w.tenants.Resume(t.Context(), tenant.ID, eventlog.Origin{})
	state(active, err, false)
	r.respond(http.StatusNoContent)
	time.Sleep(1500 * time.Millisecond)
	equal(t, "attempts before the rest of the delay", len(r.all()), 1)
	w.later(2 * time.Minute)
	r.wait(t, 2)
	c.token = w.token(t, c, w.application(t, c, "webhooks:read"))
	deliveryBy(t, c, delivery, "delivered")
}

// exhaustedDeliveries makes all attempts of a delivery, which then is a dead letter.
func exhaustedDeliveries(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r, observer := newReceiver(t, http.StatusInternalServerError), newReceiver(t, http.StatusNoContent)
	id, secret := subscribe(t, c, r.URL, nil, "scope.*")
	subscribe(t, c, observer.URL, nil, "webhook.*")
	delivery := pingBy(t, c, id)
	r.wait(t, 1)
	for n, delay := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour} {
		number := n + 2
		until(t, "the attempt is stored", func() bool {
			var attempts int64
			if err := w.db.QueryRow(t.Context(), `SELECT attempts FROM webhook_deliveries WHERE id = $1`, delivery).Scan(&attempts); err != nil {
				t.Fatal(err)
			}
			return attempts == int64(n+1)
		})
		w.later(delay * 8 / 10)
		time.Sleep(10 * time.Millisecond)
		equal(t, "requests before the delay", len(r.all()), n+1)
		w.later(delay * 4 / 10)
		got := r.wait(t, number)[n+1]
		equal(t, "X-Service-Attempt", got.header.Get("X-Service-Attempt"), fmt.Sprint(number))
		equal(t, "signed with a fresh timestamp", w.verified(got, secret), true)
	}
	c.token = w.token(t, c, w.application(t, c, "webhooks:read", "webhooks:write"))
	d := deliveryBy(t, c, delivery, "dead_lettered")
	equal(t, "attempts", []any{d["attempt_count"], d["next_attempt_at"]}, []any{6.0, nil})
	e := c.want(t, 200, "", "GET", subscriptionsPath+"/"+id+"/dlq", nil).list()[0].(object)
	equal(t, "dead letter", []any{e["delivery_id"], e["reason"], e["attempts"]}, []any{delivery, "attempts_exhausted", d["attempts"]})
	observed := func(typ string) bool { return slices.Contains(observer.types(), typ) }
	until(t, "events", func() bool {
		return observed("webhook.subscription_failing") && observed("webhook.delivery_dead_lettered")
	})
	c.want(t, 200, "", "POST", webhooksPath+"/dlq-entries/"+e["id"].(string)+"/drop", nil)
	until(t, "the event of the drop", func() bool { return observed("webhook.dead_letter_dropped") })
}
