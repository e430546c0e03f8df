package api_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// askEverything has a question for each operation, about ann and document:d.
func askEverything() map[string]object {
	document := resource("document", "d")
	return map[string]object{
		checkPath:                 check(user("ann"), "view", document),
		batchPath:                 {"subject": user("ann"), "checks": []object{{"action": "view", "resource": document}}},
		resourcesPath:             {"subject": user("ann"), "action": "view", "type": "document"},
		resourcesPath + "/stream": {"subject": user("ann"), "action": "view", "type": "document"},
		countPath:                 {"subject": user("ann"), "action": "view", "type": "document"},
		actionsPath:               {"subject": user("ann"), "resource": document},
		proofsPath:                check(user("ann"), "view", document),
		subjectsPath:              {"resource": document, "action": "view", "subject_type": "user"},
		subjectsPath + "/stream":  {"resource": document, "action": "view", "subject_type": "user"},
		expandPath:                {"resource": document, "action": "view"},
	}
}

// dataOf is what an answer shows, without the request.
func dataOf(t *testing.T, a answer) any {
	t.Helper()
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/x-ndjson") {
		lines := a.lines(t)
		return lines[:len(lines)-1]
	}
	return a.body["data"]
}

func past(t *testing.T, _ *world, c *client) {
	began := time.Now()
	time.Sleep(2 * time.Millisecond)
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("bob"))
	soon := time.Now().Add(300 * time.Millisecond)
	token := c.want(t, 201, "", "POST", path("document", "d")+"/relations", with(relation(user("ann"), "viewer"),
		object{"expires_at": soon.UTC().Format(time.RFC3339Nano)})).meta("consistency_token").(string)
	then := time.Now().UTC().Format(time.RFC3339Nano)
	before := map[string]any{}
	for target, in := range askEverything() {
		before[target] = dataOf(t, c.want(t, 200, "", "POST", target, in))
	}
	time.Sleep(time.Until(soon) + 2*time.Millisecond)
	expired := time.Now()
	c.want(t, 204, "", "DELETE", path("document", "d"), nil)

	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "|")
	parts[2] = "another"
	lost := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "|")))
	for target, in := range askEverything() {
		at := func(point string) object { return with(in, object{"at": point}) }
		equal(t, target+" at the token", dataOf(t, c.want(t, 200, "", "POST", target, at(token))), before[target])
		equal(t, target+" at the instant", dataOf(t, c.want(t, 200, "", "POST", target, at(then))), before[target])
		if empty := at(began.Format(time.RFC3339Nano)); target == batchPath {
			equal(t, "before all", c.want(t, 200, "", "POST", target, empty).list(), []any{object{"allowed": false, "error": "resource_type_not_found"}})
		} else {
			c.want(t, 404, "resource_type_not_found", "POST", target, empty)
		}
		c.want(t, 410, "history_expired", "POST", target, at(lost))
		for _, bad := range []string{"nonsense", "2026-13-01T00:00:00Z", "1960-01-01T00:00:00Z", time.Now().Add(time.Minute).Format(time.RFC3339), parts[1]} {
			equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", target, at(bad))), []string{"at"})
		}
		for name, value := range map[string]string{"consistency": "full", "consistency_token": token} {
			equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", target, with(at(then), object{name: value}))), []string{"at"})
		}
	}

	// Relations have expired by the instant, and not by the token, which names a state.
	ask := func(point any) answer {
		return c.want(t, 200, "", "POST", checkPath, with(check(user("ann"), "view", resource("document", "d")), object{"at": point, "debug": true}))
	}
	late := ask(expired.Format(time.RFC3339Nano))
	equal(t, "after it has expired", late.data()["allowed"], false)
	equal(t, "why", late.data()["denial"].(map[string]any)["ways"].([]any)[0].(map[string]any)["relations"].([]any)[0].(map[string]any)["state"], "expired")
	equal(t, "reasons", len(ask(token).data()["reasons"].([]any)) > 0, true)

	// Pages are of one point in time.
	for target, in := range map[string]object{
		resourcesPath: {"subject": user("ann"), "queries": []object{{"action": "view", "type": "document"}, {"action": "view", "type": "folder"}}},
		subjectsPath:  askEverything()[subjectsPath],
	} {
		in = with(in, object{"at": then, "limit": 1})
		if target == resourcesPath {
			in["contextual_relations"] = []object{contextualRelation("folder", "f", "viewer", user("ann"))}
		}
		first := c.want(t, 200, "", "POST", target, in)
		next := with(in, object{"cursor": first.meta("next_cursor")})
		second := c.want(t, 200, "", "POST", target, next)
		equal(t, "token", second.meta("consistency_token"), first.meta("consistency_token"))
		equal(t, "the whole list", []any{len(first.list()), len(second.list()), second.meta("next_cursor")}, []any{1, 1, nil})
		c.want(t, 400, "cursor_invalid", "POST", target, with(next, object{"at": token}))
	}
}
