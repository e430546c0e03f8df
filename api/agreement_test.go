package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestAgreement sends every question of the engine's cases to every operation that can
// answer it, and compares the answers with those of the engine.
func TestAgreement(t *testing.T) {
	files, err := filepath.Glob("../engine/enginetest/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, database := range slices.Sorted(maps.Keys(databases)) {
		t.Run(database, func(t *testing.T) {
			w := newWorld(t, databases[database](t), nil)
			for _, file := range files {
				name := strings.TrimSuffix(filepath.Base(file), ".txt")
				t.Run(name, func(t *testing.T) {
					c := w.tenant(t, name)
					tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
					if err != nil {
						t.Fatal(err)
					}
					ways := enginetest.Ways(w.engine, tenant.ID)
					maps.Copy(ways, httpWays(t, c))
					cases := enginetest.Cases{Engine: w.engine, Tenant: tenant.ID, Ways: ways}
					cases.Run(t, file)
				})
			}
		})
	}
}

// httpWays are the operations that answer questions. The last word of a name names the
// verdicts that the operation can express; see [enginetest.Cases].
func httpWays(t *testing.T, c *client) map[string]enginetest.Way {
	w := wayOverHTTP{t, c}
	return map[string]enginetest.Way{
		"http/check": w.check, "http/batch": w.batch,
		"http/list-resources": w.listResources, "http/stream/list-resources": w.streamResources,
		"http/batch-of-several": w.several, "http/count/list-resources": w.count, "http/list-actions": w.listActions,
		"http/list-proofs":   w.listProofs,
		"http/list-subjects": w.listSubjects, "http/stream/list-subjects": w.streamSubjects,
		"authzen/evaluation": w.evaluation, "authzen/evaluations": w.evaluations,
		"authzen/list-resources": w.searchResources, "authzen/list-subjects": w.searchSubjects,
		"authzen/list-actions": w.searchActions,
	}
}

type wayOverHTTP struct {
	t *testing.T
	c *client
}

// verdicts are the meanings of the error codes.
var verdicts = map[string]enginetest.Verdict{
	"resource_not_found": enginetest.NotFound, "resource_type_not_found": enginetest.Undefined, "relation_undefined": enginetest.Undefined,
	"subject_invalid": enginetest.Invalid, "condition_context_missing": enginetest.Undecided, "condition_failed": enginetest.Undecided,
	"exclusion_cycle": enginetest.Cyclic,
}

func verdictOf(code string, allowed bool) (enginetest.Verdict, error) {
	switch v, ok := verdicts[code]; {
	case code != "" && !ok:
		return "", fmt.Errorf("code %s", code)
	case ok:
		return v, nil
	case allowed:
		return enginetest.Allowed, nil
	}
	return enginetest.Denied, nil
}

func wireSubject(s tuplestore.Subject) object {
	o := object{"type": s.Type, "id": s.ID}
	if s.Relation != "" {
		o["relation"] = s.Relation
	}
	return o
}

// more returns the members that all operations of package resources share.
func more(q enginetest.Question) object {
	o := object{}
	if q.Context != nil {
		o["context"] = q.Context
	}
	var relations []object
	for _, op := range q.Contextual {
		relations = append(relations, wireRelation(op))
	}
	if relations != nil {
		o["contextual_relations"] = relations
	}
	return o
}

func wireRelation(op engine.WriteOp) object {
	o := object{"resource": resource(op.Resource.Type, op.Resource.ID), "relation": op.Relation, "subject": wireSubject(op.Subject)}
	if !op.ExpiresAt.IsZero() {
		o["expires_at"] = op.ExpiresAt.Format(time.RFC3339)
	}
	if op.Condition != "" {
		c := object{"name": op.Condition}
		if len(op.Context) > 0 {
			c["context"] = json.RawMessage(op.Context)
		}
		o["condition"] = c
	}
	return o
}

func (w wayOverHTTP) check(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	a := w.c.do(w.t, "POST", checkPath, with(check(wireSubject(q.Subject), q.Action, resource(q.Resource.Type, q.Resource.ID)), more(q)))
	v, err := verdictOf(a.code(), a.data()["allowed"] == true)
	return v, true, err
}

// several asks in a batch whose checks have subjects of their own.
func (w wayOverHTTP) several(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	item := object{"subject": wireSubject(q.Subject), "action": q.Action, "resource": resource(q.Resource.Type, q.Resource.ID)}
	a := w.c.do(w.t, "POST", batchPath, with(object{"checks": []object{with(item, object{"subject": user("other")}), item}}, more(q)))
	if a.status != 200 {
		v, err := verdictOf(a.code(), false)
		return v, true, err
	}
	answer := a.list()[1].(map[string]any)
	code, _ := answer["error"].(string)
	v, err := verdictOf(code, answer["allowed"] == true)
	return v, true, err
}

// count counts the resource among itself.
func (w wayOverHTTP) count(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	a := w.c.do(w.t, "POST", countPath, with(object{
		"subject": wireSubject(q.Subject), "action": q.Action, "type": q.Resource.Type, "ids": []string{q.Resource.ID}, "limit": 1,
	}, more(q)))
	v, err := verdictOf(a.code(), a.data()["count"] == 1.0)
	return v, true, err
}

// listActions cannot distinguish an action that cannot be decided from another one.
func (w wayOverHTTP) listActions(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	a := w.c.do(w.t, "POST", actionsPath, with(object{"subject": wireSubject(q.Subject), "resource": resource(q.Resource.Type, q.Resource.ID)}, more(q)))
	actions, _ := a.data()["actions"].([]any)
	return listVerdict(a.code(), slices.Contains(actions, any(q.Action)))
}

func (w wayOverHTTP) listProofs(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	a := w.c.do(w.t, "POST", proofsPath, with(object{"subject": wireSubject(q.Subject), "action": q.Action, "resource": resource(q.Resource.Type, q.Resource.ID)}, more(q)))
	v, err := verdictOf(a.code(), len(a.list()) > 0)
	return v, true, err
}

func (w wayOverHTTP) batch(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	item := object{"action": q.Action, "resource": resource(q.Resource.Type, q.Resource.ID)}
	other := object{"action": "none", "resource": resource(q.Resource.Type, "other")}
	a := w.c.do(w.t, "POST", batchPath, with(object{"subject": wireSubject(q.Subject), "checks": []object{other, item, item}}, more(q)))
	if a.status != 200 {
		v, err := verdictOf(a.code(), false)
		return v, true, err
	}
	if !equalJSON(a.list()[1], a.list()[2]) {
		return "", true, fmt.Errorf("answers of one batch differ: %s", a.text)
	}
	answer := a.list()[1].(map[string]any)
	code, _ := answer["error"].(string)
	v, err := verdictOf(code, answer["allowed"] == true)
	return v, true, err
}

func equalJSON(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func (w wayOverHTTP) resourcesInput(q enginetest.Question) object {
	return with(object{"subject": wireSubject(q.Subject), "action": q.Action, "type": q.Resource.Type}, more(q))
}

// listVerdict returns the verdict of a list. A list can be undecided because of another item.
func listVerdict(code string, contains bool) (enginetest.Verdict, bool, error) {
	v, err := verdictOf(code, contains)
	return v, v != enginetest.Undecided && v != enginetest.Cyclic, err
}

func (w wayOverHTTP) listResources(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	code, found := w.pages(resourcesPath, w.resourcesInput(q), func(item map[string]any) bool { return item["external_id"] == q.Resource.ID })
	return listVerdict(code, found != nil)
}

func (w wayOverHTTP) streamResources(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	a := w.c.do(w.t, "POST", resourcesPath+"/stream", w.resourcesInput(q))
	return listVerdict(a.code(), a.status == 200 && find(a.lines(w.t), func(item map[string]any) bool { return item["external_id"] == q.Resource.ID }) != nil)
}

func (w wayOverHTTP) subjectsInput(q enginetest.Question) object {
	in := object{"resource": resource(q.Resource.Type, q.Resource.ID), "action": q.Action, "subject_type": q.Subject.Type}
	if q.Subject.Relation != "" {
		in["subject_relation"] = q.Subject.Relation
	}
	return with(in, more(q))
}

// named finds the entry of a subject or, failing that, the wildcard's.
func named(q enginetest.Question, items []map[string]any) (allowed bool) {
	entry := find(items, func(item map[string]any) bool { return item["id"] == q.Subject.ID })
	if entry == nil {
		entry = find(items, func(item map[string]any) bool { return item["id"] == tuplestore.Wildcard })
	}
	return entry != nil && entry["excluded"] != true
}

func (w wayOverHTTP) listSubjects(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	var items []map[string]any
	code, _ := w.pages(subjectsPath, w.subjectsInput(q), func(item map[string]any) bool {
		items = append(items, item)
		return false
	})
	return listVerdict(code, named(q, items))
}

func (w wayOverHTTP) streamSubjects(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	a := w.c.do(w.t, "POST", subjectsPath+"/stream", w.subjectsInput(q))
	return listVerdict(a.code(), a.status == 200 && named(q, a.lines(w.t)))
}

// pages reads a list two items at a time.
func (w wayOverHTTP) pages(target string, in object, is func(map[string]any) bool) (code string, found map[string]any) {
	for cursor := any(nil); ; {
		page := with(in, object{"limit": 2})
		if cursor != nil {
			page["cursor"] = cursor
		}
		a := w.c.do(w.t, "POST", target, page)
		if a.status != 200 {
			return a.code(), nil
		}
		for _, item := range a.list() {
			if o := item.(map[string]any); is(o) {
				found = o
			}
		}
		if cursor = a.meta("next_cursor"); cursor == nil {
			return "", found
		}
	}
}

func find(items []map[string]any, is func(map[string]any) bool) map[string]any {
	if i := slices.IndexFunc(items, is); i >= 0 {
		return items[i]
	}
	return nil
}

// authZEN returns the question in the form of AuthZEN, which has neither contextual
// relations nor usersets.
func (w wayOverHTTP) authZEN(q enginetest.Question) (object, bool) {
	in := evaluation(object{"type": q.Subject.Type, "id": q.Subject.ID}, q.Action, q.Resource.Type, q.Resource.ID)
	if q.Context != nil {
		in["context"] = q.Context
	}
	return in, len(q.Contextual) == 0 && q.Subject.Relation == ""
}

func decision(d map[string]any) (enginetest.Verdict, error) {
	code := ""
	if c, ok := d["context"].(map[string]any); ok {
		code = c["error"].(map[string]any)["code"].(string)
	}
	return verdictOf(code, d["decision"] == true)
}

func (w wayOverHTTP) evaluation(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	in, ok := w.authZEN(q)
	if !ok {
		return "", false, nil
	}
	v, err := decision(w.c.want(w.t, 200, "", "POST", "/access/v1/evaluation", in).body)
	return v, true, err
}

func (w wayOverHTTP) evaluations(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	in, ok := w.authZEN(q)
	if !ok {
		return "", false, nil
	}
	other := object{"subject": user("other")}
	a := w.c.want(w.t, 200, "", "POST", "/access/v1/evaluations", with(in, object{"evaluations": []object{other, {}, other}}))
	v, err := decision(a.body["evaluations"].([]any)[1].(map[string]any))
	return v, true, err
}

func (w wayOverHTTP) search(target string, in object) (code string, items []map[string]any, last answer) {
	for token := ""; ; {
		a := w.c.do(w.t, "POST", target, with(in, object{"page": object{"limit": 2, "token": token}}))
		if a.status != 200 {
			return a.code(), nil, a
		}
		for _, item := range a.body["results"].([]any) {
			items = append(items, item.(map[string]any))
		}
		if c, ok := a.body["context"].(map[string]any); ok {
			items = append(items, object{"id": tuplestore.Wildcard})
			for _, id := range c["except"].([]any) {
				items = append(items, object{"id": id, "excluded": true})
			}
		}
		if token = a.body["page"].(map[string]any)["next_token"].(string); token == "" {
			return "", items, a
		}
	}
}

func (w wayOverHTTP) searchResources(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	in, ok := w.authZEN(q)
	if !ok {
		return "", false, nil
	}
	code, items, _ := w.search("/access/v1/search/resource", in)
	return listVerdict(code, find(items, func(item map[string]any) bool { return item["id"] == q.Resource.ID }) != nil)
}

func (w wayOverHTTP) searchSubjects(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	in, ok := w.authZEN(q)
	if !ok || q.Subject.Type == schema.GroupType {
		return "", false, nil
	}
	code, items, _ := w.search("/access/v1/search/subject", in)
	return listVerdict(code, named(q, items))
}

func (w wayOverHTTP) searchActions(_ context.Context, q enginetest.Question) (enginetest.Verdict, bool, error) {
	in, ok := w.authZEN(q)
	if !ok {
		return "", false, nil
	}
	a := w.c.do(w.t, "POST", "/access/v1/search/action", in)
	if a.status != 200 {
		return listVerdict(a.code(), false)
	}
	results, _ := a.body["results"].([]any)
	contains := slices.ContainsFunc(results, func(item any) bool { return item.(map[string]any)["name"] == q.Action })
	return listVerdict("", contains)
}
