package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiclient "stonetown/client"
	"stonetown/internal/definitions"
)

// connect returns a client for the server of a data folder.
func connect(t *testing.T, dir string) *apiclient.Client {
	t.Helper()
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	conn, err := apiclient.New(apiclient.Config{BaseURL: c.BaseURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// An export has all data once, also beyond the first page of each list. An import into another
// tenant makes that tenant equal.
func TestExportCommand(t *testing.T) {
	dir := development(t)
	c := connect(t, dir)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	var tuples []apiclient.Tuple
	add := func(resource apiclient.Ref, relation, subjectType, id string) {
		tuples = append(tuples, apiclient.Tuple{Resource: resource, Relation: relation, Subject: apiclient.Subject{Type: subjectType, ID: id}})
	}
	for i := range 260 {
		add(apiclient.Ref{Type: "document", ExternalID: fmt.Sprintf("d %d/é", i)}, "parent", "folder", "f")
		add(apiclient.Ref{Type: "folder", ExternalID: "f"}, "viewer", "user", fmt.Sprintf("u%d", i))
	}
	add(apiclient.Ref{Type: "group", ExternalID: "eng"}, "member", "group", "ops")
	add(apiclient.Ref{Type: "folder", ExternalID: "f"}, "viewer", "group", "eng")
	tuples = append(tuples, apiclient.Tuple{
		Resource: apiclient.Ref{Type: "document", ExternalID: "t"}, Relation: "viewer", Subject: apiclient.Subject{Type: "user", ID: "ann"},
		ExpiresAt: "2099-01-01T00:00:00.000Z", Condition: &apiclient.Condition{Name: "nearby", Context: json.RawMessage(`{"limit":5}`)},
	})
	if _, err := c.WriteTuples(t.Context(), sequence(tuples), nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.PutResource(t.Context(), apiclient.Resource{
		Ref: apiclient.Ref{Type: "document", ExternalID: "t"}, Attributes: json.RawMessage(`{"title":"<T>"}`),
	})
	if err != nil {
		t.Fatal(err)
	}

	// Resources of the types that the API does not list.
	for _, typ := range []string{"user", "application"} {
		if _, err := c.PutResource(t.Context(), apiclient.Resource{Ref: apiclient.Ref{Type: typ, ExternalID: "x"}}); err != nil {
			t.Fatal(err)
		}
	}

	file := filepath.Join(t.TempDir(), "tenant.jsonl")
	if out := want(t, dir, "export", file); out != "" {
		t.Errorf("printed %q", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first := readExport(t, text)
	// The documents, f, eng, t and the registered ones; a subject alone is not a resource.
	if first.end != (apiclient.End{Kind: "end", ResourceTypes: 2, Resources: 260 + 3 + 2, Relations: len(tuples)}) {
		t.Errorf("%+v", first.end)
	}
	if got, want := terms(first.tuples), terms(tuples); !slices.Equal(got, want) {
		t.Errorf("%d relations are not the %d written", len(got), len(want))
	}
	if !bytes.Contains(text, []byte(`"attributes":{"title":"<T>"}`)) {
		t.Error("the attributes are not there")
	}
	if out := want(t, dir, "export"); out != string(text) {
		t.Error("the standard output gets something else")
	}

	other := development(t)
	want(t, other, "import", file)
	second := readExport(t, []byte(want(t, other, "export", "-")))
	if second.end != first.end || !slices.Equal(terms(second.tuples), terms(first.tuples)) || !slices.Equal(second.texts(), first.texts()) {
		t.Errorf("%+v, want %+v", second.end, first.end)
	}
}

func sequence(tuples []apiclient.Tuple) func(yield func(apiclient.Tuple, error) bool) {
	return func(yield func(apiclient.Tuple, error) bool) {
		for _, t := range tuples {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// terms returns tuples as comparable, sorted text.
func terms(tuples []apiclient.Tuple) []string {
	var texts []string
	for _, t := range tuples {
		text, _ := json.Marshal(t)
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

// exported is a parsed export.
type exported struct {
	types     []definitions.Definition
	resources []apiclient.Resource
	tuples    []apiclient.Tuple
	end       apiclient.End
}

func readExport(t *testing.T, text []byte) (e exported) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	last := 0
	for i, line := range lines {
		var head struct{ Kind, Name string }
		if err := json.Unmarshal(line, &head); err != nil {
			t.Fatalf("line %d, %s: %v", i+1, line, err)
		}
		order := slices.Index([]string{"resource_type", "resource", "relation", "end"}, head.Kind)
		if order < last {
			t.Fatalf("line %d, %s: out of order", i+1, line)
		}
		last = order
		var err error
		switch head.Kind {
		case "resource_type":
			e.types = append(e.types, definitions.Definition{Name: head.Name, JSON: line})
		case "resource":
			var r apiclient.Resource
			err = json.Unmarshal(line, &r)
			e.resources = append(e.resources, r)
		case "relation":
			var tuple apiclient.Tuple
			err = json.Unmarshal(line, &tuple)
			e.tuples = append(e.tuples, tuple)
		case "end":
			err = json.Unmarshal(line, &e.end)
		}
		if err != nil {
			t.Fatalf("line %d, %s: %v", i+1, line, err)
		}
	}
	if e.end.Kind == "" {
		t.Fatal("there is no end")
	}
	if e.end.ResourceTypes != len(e.types) || e.end.Resources != len(e.resources) || e.end.Relations != len(e.tuples) {
		t.Errorf("%+v is not how many there are", e.end)
	}
	return e
}

// texts returns the types and resources without their times.
func (e exported) texts() []string {
	var texts []string
	for _, d := range e.types {
		var members map[string]any
		_ = json.Unmarshal(d.JSON, &members) // it was parsed before
		delete(members, "created_at")
		delete(members, "updated_at")
		text, _ := json.Marshal(members)
		texts = append(texts, string(text))
	}
	for _, r := range e.resources {
		text, _ := json.Marshal(r)
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

func TestExportEmpty(t *testing.T) {
	if out := want(t, development(t), "export"); out != `{"kind":"end","resource_types":0,"resources":0,"relations":0}`+"\n" {
		t.Errorf("%q", out)
	}
}

// breaking makes requests fail after some have succeeded.
type breaking struct {
	http.RoundTripper
	left int
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.left--; b.left < 0 {
		return nil, errors.New("broken")
	}
	return b.RoundTripper.RoundTrip(r)
}

// An export that fails anywhere does not look complete.
func TestExportBreaks(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	whole := false
	for left := 0; !whole; left++ {
		transport := &breaking{apiclient.NewHTTP().Transport, left}
		conn, err := apiclient.New(apiclient.Config{
			BaseURL: c.BaseURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, HTTP: &http.Client{Transport: transport}, Patience: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = export(context.Background(), conn, &out, progress{})
		conn.Close()
		whole = strings.Contains(out.String(), `"end"`)
		if whole != (err == nil) {
			t.Errorf("after %d requests: %v\n%s", left, err, out.String())
		}
		if left > 100 {
			t.Fatal("it never ends")
		}
	}
}

func TestExportReplacesFile(t *testing.T) {
	dir := development(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "x")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, t.TempDir(), 1, "does not exist", "export", file)
	r := terminal(t, nil, "export", file, "--data-dir", dir, "--client-id", "x", "--client-secret-file", writeFile(t, "x"))
	if text, err := os.ReadFile(file); r.code != 1 || err != nil || string(text) != "old" {
		t.Errorf("%+v, and then the file holds %q, %v", r, text, err)
	}
	want(t, dir, "export", file)
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"end"`) {
		t.Errorf("%s, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	refused(t, dir, 1, "is not a file", "export", os.DevNull)
	refused(t, dir, 1, "is not a file", "export", folder)
	refused(t, dir, 1, "no such file", "export", filepath.Join(folder, "none", "x"))
}
