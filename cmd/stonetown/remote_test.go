package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ran is the result of a command.
type ran struct {
	out, errs string // errs is the text of the error
	code      int
}

// terminal runs a command as a process would, with an environment.
func terminal(t *testing.T, environ []string, args ...string) ran {
	t.Helper()
	var out, errs strings.Builder
	err := run(t.Context(), args, environ, &out, &errs)
	result := ran{out: out.String(), errs: errs.String(), code: exitCode(err)}
	if err != nil {
		result.errs += err.Error()
	}
	return result
}

// on runs a command against the server of a data folder.
func on(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	return terminal(t, nil, append(args, "--data-dir", dir)...)
}

// want runs a command that must succeed and returns its output.
func want(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := on(t, dir, args...)
	if r.code != 0 {
		t.Fatalf("%v: code %d, %s", args, r.code, r.errs)
	}
	return r.out
}

// refused runs a command that must fail with a text in its error.
func refused(t *testing.T, dir string, code int, word string, args ...string) {
	t.Helper()
	r := on(t, dir, args...)
	if r.code != code || !strings.Contains(r.errs, word) {
		t.Errorf("%v: code %d, %q, want code %d and a word about %q", args, r.code, r.errs, code, word)
	}
}

// development starts a server and returns its data folder.
func development(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	start(t, "--dev", "--data-dir", dir)
	return dir
}

const documents = `
types:
- name: folder
  relations:
  - {name: owner}
  - {name: viewer, rewrites: [{kind: this}, {kind: computed, relation: owner}]}
- name: document
  description: What is <in> a folder & shared
  relations:
  - {name: parent, subjects: [folder]}
  - {name: viewer, rewrites: [{kind: this}, {kind: tuple_to_userset, tupleset: parent, computed: viewer}]}
  conditions:
  - {name: nearby, expression: distance < limit, parameters: {distance: int, limit: int}}
`

// The sources of the server's address and the credentials.
func TestRemoteSources(t *testing.T) {
	dir := development(t)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	secret := writeFile(t, c.ClientSecret+"\n")
	empty := t.TempDir()
	for name, test := range map[string]struct {
		environ, args []string
		word          string // of the error; empty: no error
	}{
		"bootstrap.json":            {args: []string{"--data-dir", dir}},
		"folder in the environment": {environ: []string{"STONETOWN_DATA_DIR=" + dir}},
		"flags":                     {args: []string{"--data-dir", empty, "--server", c.BaseURL, "--client-id", c.ClientID, "--client-secret-file", secret}},
		"environment": {
			environ: []string{"STONETOWN_SERVER=" + c.BaseURL + "/", "STONETOWN_CLIENT_ID=" + c.ClientID, "STONETOWN_CLIENT_SECRET=" + c.ClientSecret},
		},
		"secret's file in the environment": {
			environ: []string{"STONETOWN_SERVER=" + c.BaseURL, "STONETOWN_CLIENT_ID=" + c.ClientID, "STONETOWN_CLIENT_SECRET_FILE=" + secret},
		},
		"a flag before the environment": {
			environ: []string{"STONETOWN_SERVER=http://nowhere.invalid"},
			args:    []string{"--data-dir", dir, "--server", c.BaseURL},
		},
		"nothing":        {args: []string{"--data-dir", empty}, word: "set --server, or the --data-dir"},
		"no credentials": {args: []string{"--data-dir", empty, "--server", c.BaseURL}, word: "--client-id and --client-secret-file"},
		"id alone":       {args: []string{"--data-dir", dir, "--client-id", c.ClientID}, word: "must be set together"},
		"two secrets": {
			environ: []string{"STONETOWN_CLIENT_ID=x", "STONETOWN_CLIENT_SECRET=y", "STONETOWN_CLIENT_SECRET_FILE=z"}, word: "both set",
		},
		"no such secret":    {args: []string{"--client-id", "x", "--client-secret-file", filepath.Join(empty, "x")}, word: "no such file"},
		"an empty secret":   {args: []string{"--client-id", "x", "--client-secret-file", writeFile(t, "\n")}, word: "is empty"},
		"not a URL":         {args: []string{"--data-dir", dir, "--server", "dev.localhost", "--client-id", "x", "--client-secret-file", secret}, word: "http://"},
		"password in a URL": {args: []string{"--server", "http://a:b@c", "--client-id", "x", "--client-secret-file", secret}, word: "must not have user information"},
		"output":            {args: []string{"--data-dir", dir, "--output", "xml"}, word: "must be text or json"},
		"wrong secret":      {args: []string{"--server", c.BaseURL, "--client-id", c.ClientID, "--client-secret-file", writeFile(t, "wrong")}, word: "invalid_client"},
		"no such tenant": {
			args: []string{"--server", strings.Replace(c.BaseURL, "dev.", "other.", 1), "--client-id", c.ClientID, "--client-secret-file", secret},
			word: "tenant_not_found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := terminal(t, test.environ, append([]string{"schema", "list"}, test.args...)...)
			if test.word == "" && r.code != 0 || test.word != "" && (r.code != 1 || !strings.Contains(r.errs, test.word)) {
				t.Errorf("code %d, %q, want a word about %q", r.code, r.errs, test.word)
			}
			if strings.Contains(r.out+r.errs, c.ClientSecret) || strings.Contains(r.errs, "a:b") {
				t.Error("it prints a secret")
			}
		})
	}
}

// The secret of one server is not sent to another.
func TestRemoteKeepsCredentialsAtHome(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	dir := t.TempDir()
	home := credentials{BaseURL: "http://dev.localhost:8080", ClientID: "id", ClientSecret: "secret"}
	if err := home.write(filepath.Join(dir, "bootstrap.json")); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, 1, "are for http://dev.localhost:8080", "schema", "list", "--server", other.URL)
	if asked {
		t.Error("the other server was asked")
	}
}

func TestRemoteMalformedBootstrap(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bootstrap.json"), []byte(`{"client_secret":"s3cret"`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := on(t, dir, "schema", "list")
	if r.code != 1 || !strings.Contains(r.errs, "not a file that bootstrap wrote") || strings.Contains(r.errs, "s3cret") {
		t.Errorf("%+v", r)
	}
}

// A server that does not run, and another program in its place.
func TestRemoteWithoutServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	secret := writeFile(t, "secret")
	for server, word := range map[string]string{"http://" + address: "refused", other.URL: "404"} {
		args := []string{"--server", server, "--client-id", "x", "--client-secret-file", secret}
		for command, code := range map[string]int{
			"check user:ann view document:q3": 2, "relations list document:q3": 1, "schema list": 1, "export": 1,
		} {
			r := terminal(t, nil, append(strings.Fields(command), args...)...)
			if r.code != code || !strings.Contains(r.errs, word) || r.out != "" {
				t.Errorf("%s: %+v, want code %d and a word about %q", command, r, code, word)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for _, command := range []string{
		"check", "relations list", "relations add", "relations remove",
		"schema list", "schema get", "schema diff", "schema plan", "schema apply", "schema delete", "export",
	} {
		r := terminal(t, nil, append(strings.Fields(command), "--help")...)
		if r.code != 0 || !strings.Contains(r.out, "Examples:\n  stonetown "+command) || !strings.Contains(r.out, "STONETOWN_CLIENT_SECRET_FILE") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

func TestMisspeltSubcommand(t *testing.T) {
	for _, command := range []string{"schema", "relations"} {
		if r := terminal(t, nil, command, "aply"); r.code != 1 || !strings.Contains(r.errs, "unknown command") {
			t.Errorf("%s: %+v", command, r)
		}
		if r := terminal(t, nil, command); r.code != 0 || !strings.Contains(r.out, "Available Commands") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}
