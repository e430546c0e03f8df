package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestCheckCommand(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for _, relation := range []string{
		"folder:2026 viewer group:eng", "group:eng member user:ann", "document:q3 parent folder:2026",
	} {
		want(t, dir, append([]string{"relations", "add"}, strings.Fields(relation)...)...)
	}
	want(t, dir, "relations", "add", "document:near", "viewer", "user:ann", "--condition", "nearby", "--condition-context", `{"limit":5}`)

	want(t, dir, "relations", "add", "document:lone", "viewer", "user:ann")

	for _, test := range []struct {
		args, out string
		code      int
	}{
		{"user:ann view document:q3", "allowed\n", 0},
		{"user:bob view document:q3", "denied\n", 1},
		{"group:eng#member view document:q3", "allowed\n", 0},
		{`{"type":"group","id":"eng"} view document:q3`, "allowed\n", 0},
		{`user:ann view document:near --context {"distance":4}`, "allowed\n", 0},
		{`user:ann view document:near --context {"distance":6}`, "denied\n", 1},
		{"user:bob view document:lone --reasons", "denied\nallowed if document:lone#viewer@user:bob existed\n", 1},
		{`user:ann view document:near --context {"distance":6} --reasons`, "denied\nallowed if document:near#viewer@user:ann had no condition nearby, which is not met with {\"distance\":6,\"limit\":5}\n", 1},
		{"user:bob view document:lone", "denied\n", 1},
		{"user:bob view document:lone --with document:lone#viewer@user:bob", "allowed\n", 0},
		{"user:bob view document:q3 --with group:eng#member@user:bob --without group:eng#member@user:ann", "allowed\n", 0},
		{"user:ann view document:q3 --without document:q3#parent@folder:2026", "denied\n", 1},
	} {
		r := on(t, dir, append([]string{"check"}, strings.Fields(test.args)...)...)
		if r.out != test.out || r.code != test.code || r.errs != "" {
			t.Errorf("%s: %+v, want %q and code %d", test.args, r, test.out, test.code)
		}
	}

	lines := strings.Split(strings.TrimSpace(want(t, dir, "check", "user:ann", "view", "document:q3", "--reasons")), "\n")
	if len(lines) < 2 || lines[0] != "allowed" || !strings.Contains(strings.Join(lines, "\n"), "folder:2026") {
		t.Errorf("reasons: %q", lines)
	}

	var answer struct {
		Allowed          bool
		Reasons          []map[string]string
		ConsistencyToken string `json:"consistency_token"`
	}
	r := on(t, dir, "check", "user:ann", "view", "document:q3", "--reasons", "--output", "json")
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || !answer.Allowed || len(answer.Reasons) == 0 || answer.ConsistencyToken == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	want(t, dir, "check", "user:ann", "view", "document:q3", "--consistency-token", answer.ConsistencyToken)
	want(t, dir, "relations", "remove", "document:q3", "parent", "folder:2026")
	want(t, dir, "check", "user:ann", "view", "document:q3", "--at", answer.ConsistencyToken)
	for args, out := range map[string]string{
		"resources user:ann view folder": "folder:2026\n", "subjects user view document:q3": "user:ann\n", "actions user:ann document:q3": "view\nviewer\n",
	} {
		if got := want(t, dir, append([]string{"list", "--at", answer.ConsistencyToken}, strings.Fields(args)...)...); got != out {
			t.Errorf("%s at an earlier time: %q, want %q", args, got, out)
		}
	}
	r = on(t, dir, "check", "user:bob", "view", "document:q3", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || answer.Allowed || r.code != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A failure never looks like a denial.
func TestCheckCommandFails(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for args, word := range map[string]string{
		"user:ann view":                                            "SUBJECT ACTION RESOURCE",
		"ann view document:q3":                                     "not a subject",
		`{"type":1} view folder:f`:                                 "not a subject in JSON",
		"user:ann view q3":                                         "not a resource",
		"user:ann view paper:q3":                                   "resource_type_not_found",
		"user:ann view document:q3":                                "resource_not_found",
		"user:ann view document:q3 --context {":                    "--context is not a JSON object",
		"user:ann view document:q3 --context null":                 "--context is not a JSON object",
		"user:ann view document:q3 --context [1]":                  "--context is not a JSON object",
		"user:ann view document:q3 --consistency-token x":          "consistency token",
		"user:ann view document:q3 --with document:q3":             "is not a relation",
		"user:ann view document:q3 --without q3#viewer@user:ann":   "is not a resource",
		"user:ann view document:q3 --with document:q3#viewer@ann":  "is not a subject",
		"user:ann view folder:f --without folder:f#owner@user:ann": "relation_",
		"user:ann view document:q3 --at 2990-01-01T00:00:00Z":      "must not be in the future",
		"user:ann view document:q3 --nonsense":                     "unknown flag",
		"user:ann view document:q3 --output xml":                   "must be text or json",
		"user:ann view document:q3 --client-secret-file /nonsense": "no such file",
	} {
		refused(t, dir, 2, word, append([]string{"check"}, strings.Fields(args)...)...)
	}
	want(t, dir, "relations", "add", "document:near", "viewer", "user:ann", "--condition", "nearby")
	refused(t, dir, 2, "condition_context_missing", "check", "user:ann", "view", "document:near")
}

// The process ends with the exit code, and a denial prints nothing to the standard error.
func TestCheckProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann")
	for subject, test := range map[string]struct {
		code      int
		out, errs string
	}{
		"user:ann": {0, "allowed\n", ""},
		"user:bob": {1, "denied\n", ""},
		"bob":      {2, "", "stonetown: \"bob\" is not a subject"},
	} {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), self, "check", subject, "view", "document:q3", "--data-dir", dir)
		// The proxy of the environment does not receive requests to this machine.
		cmd.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1", "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1", "NO_PROXY=", "no_proxy=")
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // the exit code is tested below
		code := cmd.ProcessState.ExitCode()
		if code != test.code || out.String() != test.out || !strings.HasPrefix(errs.String(), test.errs) || (test.errs == "") != (errs.Len() == 0) {
			t.Errorf("%s: code %d, %q, %q", subject, code, out.String(), errs.String())
		}
	}
}

func TestHistoryCommand(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann")
	want(t, dir, "relations", "remove", "document:q3", "viewer", "user:ann")
	lines := strings.Split(strings.TrimSpace(want(t, dir, "history", "user:ann", "view", "document:q3")), "\n")
	for i, part := range []string{" denied write ", " allowed write ", " resource_not_found resource_types "} {
		if len(lines) != 3 || !strings.Contains(lines[i], part) {
			t.Errorf("line %d of %q, want %q", i, lines, part)
		}
	}
	refused(t, dir, 1, "not a subject", "history", "ann", "view", "document:q3")
	refused(t, dir, 1, "not a resource", "history", "user:ann", "view", "q3")
	if out := want(t, dir, "history", "user:ann", "view", "document:q3", "--output", "json"); !strings.Contains(out, `"history_ended": false`) || !strings.Contains(out, `"cause": "resource_types"`) {
		t.Errorf("as JSON: %s", out)
	}
}

// A decision that is older than the retained history is printed with its relations.
func TestHistoryCommandProves(t *testing.T) {
	pages := []string{
		`{"data":[{"allowed":true,"at":"2026-11-22T09:30:00Z","cause":"write","actor":"usr_bob","consistency_token":"b","changes":[]}],"meta":{"next_cursor":"more","history_ended":false}}`,
		`{"data":[],"meta":{"next_cursor":null,"history_ended":true,"proof":[{"resource":{"type":"document","external_id":"q3"},"relation":"viewer","subject":{"type":"user","id":"ann"},"created_at":"2026-01-02T03:04:05Z","created_by":"usr_bob"}]}}`,
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/oauth2/token" {
			fmt.Fprint(w, `{"access_token":"t","token_type":"Bearer","expires_in":3600}`)
			return
		}
		fmt.Fprint(w, pages[asked%2])
		asked++
	}))
	defer server.Close()
	history := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		args = append([]string{"history", "user:ann", "view", "document:q3", "--server", server.URL, "--client-id", "c"}, args...)
		if err := run(t.Context(), args, []string{"STONETOWN_CLIENT_SECRET=s"}, &out, &errs); err != nil {
			t.Fatal(err, errs.String())
		}
		return out.String()
	}
	want := "2026-11-22T09:30:00Z allowed write usr_bob\nearlier changes are not retained\n2026-01-02T03:04:05Z document:q3#viewer@user:ann by usr_bob\n"
	if out := history(); out != want {
		t.Errorf("%q, want %q", out, want)
	}
	var all struct {
		Changes []struct{ Actor string }
		Ended   bool `json:"history_ended"`
		Proof   []struct {
			By string `json:"created_by"`
		}
	}
	if err := json.Unmarshal([]byte(history("--output", "json")), &all); err != nil || len(all.Changes) != 1 || !all.Ended || len(all.Proof) != 1 || all.Proof[0].By != "usr_bob" {
		t.Errorf("%+v, %v", all, err)
	}
}
