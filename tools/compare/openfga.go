package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stonetown/bench"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// openFGA is an OpenFGA, reached through its HTTP API.
type openFGA struct {
	url    string // of the store, once there is one
	base   string
	model  string
	types  []schema.Type // so far
	client *bench.Client
}

func dialOpenFGA(ctx context.Context, url string) (*openFGA, error) {
	f := &openFGA{base: url, client: bench.NewClient()}
	var store struct {
		ID string `json:"id"`
	}
	if err := f.post(ctx, url+"/stores", map[string]string{"name": "bench"}, &store); err != nil {
		return nil, err
	}
	f.url = url + "/stores/" + store.ID
	return f, nil
}

func (f *openFGA) Name() string    { return "OpenFGA" }
func (f *openFGA) WriteLimit() int { return 100 } // its maximum

func (f *openFGA) Define(ctx context.Context, types []schema.Type) error {
	definitions := []any{
		map[string]any{"type": "user"},
		fgaType("group", []schema.Relation{{Name: "member", Subjects: []schema.SubjectType{{Type: "user"}, {Type: "group", Relation: "member"}}}}),
	}
	f.types = together(f.types, types)
	for _, t := range f.types {
		definitions = append(definitions, fgaType(t.Name, t.Relations))
	}
	var model struct {
		ID string `json:"authorization_model_id"`
	}
	err := f.post(ctx, f.url+"/authorization-models", map[string]any{"schema_version": "1.1", "type_definitions": definitions}, &model)
	f.model = model.ID
	return err
}

func fgaType(name string, all []schema.Relation) any {
	relations, metadata := map[string]any{}, map[string]any{}
	for _, r := range all {
		relations[r.Name] = fgaUnion(r.Rewrites)
		types := []any{}
		for _, s := range r.Subjects {
			t := map[string]string{"type": s.Type}
			if s.Relation != "" {
				t["relation"] = s.Relation
			}
			types = append(types, t)
		}
		if len(r.Rewrites) == 0 || hasThis(r.Rewrites) {
			metadata[r.Name] = map[string]any{"directly_related_user_types": types}
		}
	}
	return map[string]any{"type": name, "relations": relations, "metadata": map[string]any{"relations": metadata}}
}

func fgaUnion(rewrites []schema.Rewrite) any {
	switch len(rewrites) {
	case 0:
		return fgaRewrite(schema.Rewrite{Kind: schema.This})
	case 1:
		return fgaRewrite(rewrites[0])
	default:
		return map[string]any{"union": fgaChildren(rewrites)}
	}
}

func fgaChildren(rewrites []schema.Rewrite) any {
	children := make([]any, len(rewrites))
	for i, r := range rewrites {
		children[i] = fgaRewrite(r)
	}
	return map[string]any{"child": children}
}

func fgaRewrite(r schema.Rewrite) any {
	relation := func(name string) any { return map[string]string{"relation": name} }
	switch r.Kind {
	case schema.This:
		return map[string]any{"this": map[string]any{}}
	case schema.Computed:
		return map[string]any{"computedUserset": relation(r.Relation)}
	case schema.TupleToUserset:
		return map[string]any{"tupleToUserset": map[string]any{"tupleset": relation(r.Tupleset), "computedUserset": relation(r.Computed)}}
	case schema.Exclusion:
		return map[string]any{"difference": map[string]any{"base": fgaRewrite(*r.Base), "subtract": fgaRewrite(*r.Subtract)}}
	default:
		return map[string]any{string(r.Kind): fgaChildren(r.Children)}
	}
}

type fgaTuple struct {
	User     string `json:"user"`
	Relation string `json:"relation"`
	Object   string `json:"object"`
}

func fgaTupleOf(o tuplestore.Object, relation string, s tuplestore.Subject) fgaTuple {
	t := fgaTuple{s.Type + ":" + s.ID, relation, o.Type + ":" + o.ID}
	if s.Relation != "" {
		t.User += "#" + s.Relation
	}
	return t
}

func (f *openFGA) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	keys := make([]fgaTuple, len(tuples))
	for i, t := range tuples {
		keys[i] = fgaTupleOf(t.Object, t.Relation, t.Subject)
	}
	return f.post(ctx, f.url+"/write", map[string]any{
		"authorization_model_id": f.model, "writes": map[string]any{"tuple_keys": keys},
	}, nil)
}

func (f *openFGA) Warm(ctx context.Context, w bench.Workload) error { return warm(ctx, f, w) }

// fgaBatch is the maximum number of checks in one of its requests.
const (
	fgaBatch       = 50
	fgaConsistency = "HIGHER_CONSISTENCY"
)

// Prepare encodes the questions, as one check or as so many calls as they take.
func (f *openFGA) Prepare(questions []bench.Question) bench.Call {
	allowed := make([]bool, len(questions))
	if len(questions) == 1 {
		q := &questions[0]
		body := map[string]any{
			"authorization_model_id": f.model, "consistency": fgaConsistency,
			"tuple_key": fgaTupleOf(q.Resource, relationOf(q.Action), q.Subject),
		}
		encoded := mustEncode(body)
		return func(ctx context.Context) ([]bool, error) {
			var answer struct{ Allowed bool }
			err := f.send(ctx, f.url+"/check", encoded, &answer)
			allowed[0] = answer.Allowed
			return allowed, err
		}
	}
	var calls [][]byte
	for start := 0; start < len(questions); start += fgaBatch {
		var checks []any
		for i, q := range questions[start:min(start+fgaBatch, len(questions))] {
			checks = append(checks, map[string]any{
				"tuple_key": fgaTupleOf(q.Resource, relationOf(q.Action), q.Subject), "correlation_id": strconv.Itoa(start + i),
			})
		}
		calls = append(calls, mustEncode(map[string]any{"authorization_model_id": f.model, "consistency": fgaConsistency, "checks": checks}))
	}
	return func(ctx context.Context) ([]bool, error) {
		answers := 0
		for _, encoded := range calls {
			var answer struct {
				Result map[string]struct {
					Allowed bool
					Error   any
				}
			}
			if err := f.send(ctx, f.url+"/batch-check", encoded, &answer); err != nil {
				return nil, err
			}
			for id, result := range answer.Result {
				i, err := strconv.Atoi(id)
				if err != nil || i >= len(allowed) || result.Error != nil {
					return nil, fmt.Errorf("check %s: %v", id, result.Error)
				}
				allowed[i] = result.Allowed
				answers++
			}
		}
		if answers != len(allowed) {
			return nil, fmt.Errorf("%d answers to %d checks", answers, len(allowed))
		}
		return allowed, nil
	}
}

// List implements [bench.Lister]. OpenFGA ends a list after three seconds by default.
func (f *openFGA) List(ctx context.Context, s tuplestore.Subject, typ, relation string) (iter.Seq[string], error) {
	user := fgaTupleOf(tuplestore.Object{}, "", s).User
	var answer bytes.Buffer
	err := f.client.Send(ctx, http.MethodPost, f.url+"/streamed-list-objects", "", mustEncode(map[string]string{
		"authorization_model_id": f.model, "consistency": fgaConsistency, "type": typ, "relation": relation, "user": user,
	}), &answer)
	if err != nil {
		return nil, err
	}
	var ids []string
	for lines := json.NewDecoder(&answer); ; {
		var line struct {
			Result *struct{ Object string }
			Error  any
		}
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return slices.Values(ids), nil
		} else if err != nil {
			return nil, err
		}
		if line.Result == nil {
			return nil, fmt.Errorf("list: %v", line.Error)
		}
		ids = append(ids, strings.TrimPrefix(line.Result.Object, typ+":"))
	}
}

func mustEncode(v any) []byte {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encoded
}

func (f *openFGA) post(ctx context.Context, url string, body, into any) error {
	return f.send(ctx, url, mustEncode(body), into)
}

func (f *openFGA) send(ctx context.Context, url string, body []byte, into any) error {
	var answer bytes.Buffer
	if err := f.client.Send(ctx, http.MethodPost, url, "", body, &answer); err != nil || into == nil {
		return err
	}
	return json.Unmarshal(answer.Bytes(), into)
}
