package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const relationsPath = "/api/v1/relations"

// filtered returns the target of a filter, given as names and values.
func filtered(filter ...string) string {
	query := url.Values{}
	for i := 0; i < len(filter); i += 2 {
		query.Set(filter[i], filter[i+1])
	}
	return relationsPath + "?" + query.Encode()
}

// tupleText is resource#relation@subject.
func tupleText(item any) string {
	r := item.(map[string]any)
	o, s := r["resource"].(map[string]any), r["subject"].(map[string]any)
	text := fmt.Sprintf("%s:%s#%s@%s:%s", o["type"], o["external_id"], r["relation"], s["type"], s["id"])
	if s["relation"] != nil {
		text += "#" + s["relation"].(string)
	}
	return text
}

// found lists all relations that a filter selects, in pages.
func found(t *testing.T, c *client, filter ...string) (texts []string) {
	t.Helper()
	filter = append(filter, "limit", "2")
	for cursor := ""; ; {
		target := filtered(filter...)
		if cursor != "" {
			target = filtered(append(filter, "cursor", cursor)...)
		}
		a := c.want(t, 200, "", "GET", target, nil)
		for _, item := range a.list() {
			texts = append(texts, tupleText(item))
		}
		next, more := a.meta("next_cursor").(string)
		if !more {
			return texts
		}
		cursor = next
	}
}

// relationFilters finds and deletes relations by every combination of fields.
func relationFilters(t *testing.T, w *world, c *client) {
	define(t, c)
	viewers := object{"type": "folder", "id": "f", "relation": "viewer"}
	relate(t, c, "document", "d0", "viewer", user("ann"))
	relate(t, c, "document", "d0", "viewer", user("bob"))
	relate(t, c, "document", "d0", "viewer", viewers)
	relate(t, c, "document", "d0", "owner", user("ann"))
	relate(t, c, "document", "d0", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "document", "d1", "viewer", user("ann"))
	relate(t, c, "folder", "f", "viewer", user("ann"))
	c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", "d2")) // without relations
	names := []string{"resource_type", "external_id", "relation", "subject_type", "subject_id", "subject_relation"}
	values := [][]string{
		{"document", "d0", "viewer", "user", "ann", "viewer"},
		{"document", "d1", "owner", "folder", "f", "viewer"},
		{"folder", "f", "viewer", "user", "bob", "viewer"},
		{"document", "d0", "viewer", "folder", "f", "viewer"},
	}
	all := append(found(t, c, "resource_type", "document"), found(t, c, "resource_type", "folder")...)
	equal(t, "all", all, []string{
		"document:d0#owner@user:ann", "document:d0#parent@folder:f", "document:d0#viewer@folder:f#viewer", "document:d0#viewer@user:ann",
		"document:d0#viewer@user:bob", "document:d1#viewer@user:ann", "folder:f#viewer@user:ann",
	})
	equal(t, "by subject", found(t, c, "subject_type", "user"), []string{
		"document:d0#owner@user:ann", "document:d0#viewer@user:ann", "document:d1#viewer@user:ann", "folder:f#viewer@user:ann", "document:d0#viewer@user:bob",
	})
	// matches is the definition of a filter, by the text of a relation.
	matches := func(text string, filter map[string]string) bool {
		o, rest, _ := strings.Cut(text, "#")
		relation, s, _ := strings.Cut(rest, "@")
		s, subjectRelation, _ := strings.Cut(s, "#")
		typ, id, _ := strings.Cut(o, ":")
		subjectType, subjectID, _ := strings.Cut(s, ":")
		for i, have := range []string{typ, id, relation, subjectType, subjectID, subjectRelation} {
			if want, given := filter[names[i]]; given && want != have {
				return false
			}
		}
		return true
	}
	for set := range 1 << len(names) {
		for _, v := range values {
			filter, given := []string{}, map[string]string{}
			for i, name := range names {
				if set&(1<<i) != 0 {
					filter, given[name] = append(filter, name, v[i]), v[i]
				}
			}
			has := func(i int) bool { return set&(1<<i) != 0 }
			if !has(0) && !has(3) || has(1) && !has(0) || has(4) && !has(3) {
				c.want(t, 400, "validation_failed", "GET", filtered(filter...), nil)
				c.want(t, 400, "validation_failed", "DELETE", filtered(filter...), nil)
				continue
			}
			if has(3) && has(5) && v[3] == "user" {
				c.want(t, 400, "subject_invalid", "GET", filtered(filter...), nil)
				continue
			}
			want := slices.DeleteFunc(slices.Clone(all), func(text string) bool { return !matches(text, given) })
			got := found(t, c, filter...)
			slices.Sort(want)
			slices.Sort(got)
			equal(t, filtered(filter...), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	a := c.want(t, 400, "validation_failed", "GET", filtered("relation", "viewer"), nil)
	equal(t, "fields", fields(a), []string{"resource_type"})
	c.want(t, 400, "cursor_invalid", "DELETE", filtered("resource_type", "document", "cursor", "x"), nil)

	// Deletions, with one event each.
	before := len(w.events(t, c, 0))
	deleted := func(n float64, filter ...string) {
		t.Helper()
		a := c.want(t, 200, "", "DELETE", filtered(filter...), nil)
		equal(t, "deleted", []any{a.data()["deleted"], a.data()["has_more"], a.meta("next_cursor")}, []any{n, false, nil})
	}
	deleted(1, "resource_type", "document", "relation", "owner")
	deleted(1, "resource_type", "document", "external_id", "d0", "subject_type", "user", "subject_id", "bob")
	deleted(1, "resource_type", "document", "subject_relation", "viewer")
	deleted(2, "resource_type", "document", "subject_type", "user")
	deleted(0, "resource_type", "document", "subject_type", "user")
	deleted(1, "subject_type", "user", "relation", "viewer")
	happened := w.events(t, c, before)
	equal(t, "events", len(happened), 5)
	for _, e := range happened {
		equal(t, "event", string(e.Type), "relation.bulk_applied")
	}
	equal(t, "left", found(t, c, "subject_type", "folder"), []string{"document:d0#parent@folder:f"})
}

// boundedFilters has more relations than one page examines, and more that stay than one deletion
// examines.
func boundedFilters(t *testing.T, w *world, c *client) {
	define(t, c)
	const many = 4200
	ops := make([]any, 0, 500)
	for i := range many {
		relationName := "viewer"
		if i == many/2+300 {
			relationName = "owner"
		}
		if ops = append(ops, op("create", "document", fmt.Sprintf("m%04d", i), relationName, user("ann"))); len(ops) == cap(ops) || i == many-1 {
			c.want(t, 200, "", "POST", bulkPath, object{"operations": ops})
			ops = ops[:0]
		}
	}
	// The one owner is on a page after empty ones.
	empty := 0
	var owners []string
	for cursor := ""; ; {
		filter := []string{"resource_type", "document", "relation", "owner"}
		if cursor != "" {
			filter = append(filter, "cursor", cursor)
		}
		a := c.want(t, 200, "", "GET", filtered(filter...), nil)
		for _, item := range a.list() {
			owners = append(owners, tupleText(item))
		}
		if len(a.list()) == 0 {
			empty++
		}
		next, more := a.meta("next_cursor").(string)
		if !more {
			break
		}
		cursor = next
	}
	equal(t, "owners", owners, []string{fmt.Sprintf("document:m%04d#owner@user:ann", many/2+300)})
	if empty < 2 {
		t.Errorf("%d empty pages, want some", empty)
	}
	a := c.want(t, 200, "", "DELETE", filtered("relation", "owner", "subject_type", "user", "subject_id", "ann"), nil)
	equal(t, "deleted", a.data(), object{"deleted": 1.0, "has_more": false, "limit": 500.0})
	// A deletion goes on by its cursor, and from the start.
	a = c.want(t, 200, "", "DELETE", filtered("resource_type", "document"), nil)
	equal(t, "deleted", a.data(), object{"deleted": 500.0, "has_more": true, "limit": 500.0})
	a = c.want(t, 200, "", "DELETE", filtered("resource_type", "document", "cursor", a.meta("next_cursor").(string)), nil)
	equal(t, "deleted", a.data()["deleted"], 500.0)
	equal(t, "next", found(t, c, "resource_type", "document", "external_id", "m1000"), []string{"document:m1000#viewer@user:ann"})
	a = c.want(t, 200, "", "DELETE", filtered("resource_type", "document"), nil)
	equal(t, "deleted", a.data()["deleted"], 500.0)
	equal(t, "gone", len(found(t, c, "resource_type", "document", "external_id", "m1000")), 0)
}

const bulkPath = "/api/v1/resources/relations/bulk"

// preconditions writes under conditions.
func preconditions(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "owner", user("ann"))
	filter := func(members ...string) object {
		f := object{}
		for i := 0; i < len(members); i += 2 {
			f[members[i]] = members[i+1]
		}
		return f
	}
	owned := filter("resource_type", "document", "external_id", "d", "relation", "owner", "subject_type", "user", "subject_id", "ann")
	create := op("create", "document", "d", "viewer", user("bob"))
	remove := op("delete", "document", "d", "viewer", user("bob"))
	write := func(more object, ops ...any) object { return with(object{"operations": ops}, more) }
	must := func(conditions ...object) object { return object{"preconditions": conditions} }
	exist := func(f object) object { return object{"must_exist": f} }
	absent := func(f object) object { return object{"must_not_exist": f} }
	viewed := filter("resource_type", "document", "external_id", "d", "relation", "viewer")

	first := c.under(t, "viewer", "POST", bulkPath, write(must(exist(owned), absent(viewed)), create))
	equal(t, "written", first.data()["applied"], 1.0)
	again := c.under(t, "viewer", "POST", bulkPath, write(must(exist(owned), absent(viewed)), create))
	equal(t, "the first result", again.text, first.text)
	before := len(w.events(t, c, 0))
	refused := c.under(t, "refused", "POST", bulkPath, write(must(exist(owned), absent(viewed)), create))
	equal(t, "refused", []any{refused.status, refused.code(), refused.details()["index"]}, []any{409, "precondition_failed", 1.0})
	equal(t, "judged by", refused.details()["consistency_token"], first.meta("consistency_token"))
	c.want(t, 200, "", "POST", checkPath, with(check(user("bob"), "view", resource("document", "d")), object{"consistency_token": refused.details()["consistency_token"]}))
	equal(t, "events", len(w.events(t, c, 0)), before)
	a := c.want(t, 409, "precondition_failed", "POST", bulkPath, write(must(exist(filter("subject_type", "user", "subject_id", "eve"))), remove))
	equal(t, "index", a.details()["index"], 0.0)
	c.want(t, 200, "", "POST", bulkPath, write(must(exist(viewed)), remove))
	refused = c.under(t, "refused", "POST", bulkPath, write(must(exist(owned), absent(viewed)), create))
	equal(t, "the first refusal", refused.code(), "precondition_failed")
	c.want(t, 200, "", "POST", bulkPath, write(must(absent(filter("subject_type", "user", "subject_id", "bob")), absent(filter("resource_type", "document", "external_id", "none")),
		absent(filter("subject_type", "folder", "subject_id", "f", "resource_type", "document"))), create))

	// What exists, and what does not.
	equal(t, "exists", c.want(t, 200, "", "POST", bulkPath, write(object{"on_existing": "ok", "on_missing": "fail"}, create)).data()["applied"], 0.0)
	a = c.want(t, 409, "relation_exists", "POST", bulkPath, write(object{"on_existing": "fail"}, op("create", "document", "d", "viewer", user("cid")), create))
	equal(t, "details", a.details(), object{"index": 1.0, "code": "relation_exists"})
	c.want(t, 200, "", "POST", bulkPath, write(object{"on_existing": "fail"}, remove, create))
	c.want(t, 404, "relation_not_found", "POST", bulkPath, write(nil, remove, remove))
	a = c.want(t, 200, "", "POST", bulkPath, write(object{"on_missing": "ok"}, remove, remove, op("delete", "document", "d", "viewer", user("eve"))))
	equal(t, "missing", a.body["data"], parse(t, `{"applied":1,"results":[
		{"index":0,"op":"delete","status":"deleted"},{"index":1,"op":"delete","status":"missing"},{"index":2,"op":"delete","status":"missing"}]}`))
	deleted := w.events(t, c, before)
	last := deleted[len(deleted)-1]
	if !strings.Contains(string(last.Data), `"deleted":1`) || strings.Contains(string(last.Data), "eve") {
		t.Errorf("event %s", last.Data)
	}

	// A relation that has expired does not exist.
	soon := time.Now().Add(time.Second)
	brief := with(create, object{"expires_at": soon.UTC().Format("2006-01-02T15:04:05.000Z")})
	c.want(t, 200, "", "POST", bulkPath, write(nil, brief))
	c.want(t, 409, "relation_exists", "POST", bulkPath, write(object{"on_existing": "fail"}, create))
	time.Sleep(time.Until(soon) + time.Millisecond)
	c.want(t, 409, "precondition_failed", "POST", bulkPath, write(must(exist(viewed)), create))
	a = c.want(t, 200, "", "POST", bulkPath, write(with(must(absent(viewed)), object{"on_existing": "fail"}), create))
	equal(t, "status", a.data()["results"].([]any)[0].(map[string]any)["status"], "updated")

	// Filters that no index decides, and others that are not valid.
	for _, f := range []object{
		{},
		filter("resource_type", "document"), filter("resource_type", "document", "relation", "owner"), filter("relation", "owner"), filter("subject_relation", "viewer"),
		filter("external_id", "d"), filter("subject_id", "ann"), filter("subject_type", "user", "relation", "owner"), filter("resource_type", "document", "external_id", "d", "relation", "viewer", "subject_relation", "viewer"),
		filter("subject_type", "user", "subject_id", "ann", "resource_type", "document", "relation", "owner"), with(owned, object{"subject_id": ""}), with(owned, object{"relation": "\x00"}),
	} {
		for _, p := range []object{exist(f), absent(f)} {
			a := c.want(t, 400, "validation_failed", "POST", bulkPath, write(must(exist(owned), p), create))
			if field := fields(a)[0]; !strings.HasPrefix(field, "preconditions/1") {
				t.Errorf("%v: field %s", f, field)
			}
		}
	}
	for _, p := range []object{{}, {"must_exist": owned, "must_not_exist": owned}, {"must_exist": nil}} {
		c.want(t, 400, "validation_failed", "POST", bulkPath, write(must(p), create))
	}
	for code, f := range map[string]object{
		"resource_type_not_found": with(owned, object{"resource_type": "ghost"}), "relation_undefined": with(owned, object{"relation": "ghost"}), "subject_invalid": with(owned, object{"subject_type": "ghost"}),
	} {
		a := c.do(t, "POST", bulkPath, write(must(exist(owned), exist(f)), create))
		equal(t, "code", []any{a.code(), a.details()["precondition"]}, []any{code, 1.0})
	}
	c.want(t, 400, "validation_failed", "POST", bulkPath, write(object{"on_existing": "ignore"}, create))
	c.want(t, 400, "validation_failed", "POST", bulkPath, write(object{"on_missing": "none"}, create))
	most := slices.Repeat([]object{exist(owned)}, 100)
	c.want(t, 200, "", "POST", bulkPath, write(must(most...), create))
	a = c.want(t, 400, "bulk_too_large", "POST", bulkPath, write(must(append(most, exist(owned))...), create))
	equal(t, "max", a.details()["max"], 100.0)

	// To learn which relations exist requires the scope of lists.
	writer := c.with(w.token(t, c, w.application(t, c, "resources:write")))
	a = writer.want(t, 403, "insufficient_scope", "POST", bulkPath, write(must(exist(owned)), create))
	equal(t, "scope", a.details()["required_scope"], "resources:read")
	writer.want(t, 200, "", "POST", bulkPath, write(object{"on_existing": "ok"}, create))

	// Of requests that race for the same resource, one gets it.
	var won atomic.Int64
	var race sync.WaitGroup
	free := filter("resource_type", "document", "external_id", "prize", "relation", "owner")
	for i := range 8 {
		race.Go(func() {
			a := c.do(t, "POST", bulkPath, write(must(absent(free)), op("create", "document", "prize", "owner", user(fmt.Sprint(i)))))
			if a.status == 200 {
				won.Add(1)
			} else if a.code() != "precondition_failed" {
				t.Errorf("%d %s", a.status, a.text)
			}
		})
	}
	race.Wait()
	equal(t, "winners", won.Load(), int64(1))
}
