package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// TestNPMClients runs independent JavaScript clients, which enforce the standards strictly.
// Each script in testdata/npmclients uses all functions of one client and asserts the results.
func TestNPMClients(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := npmClients(ctx, t)

	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	token, api := server.token(c), "http://"+server.Addr()+"/api/v1/"
	create := func(path string, what map[string]any) map[string]any {
		t.Helper()
		body, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		status, answer := server.do("POST", api+path, hostOf(t, c.BaseURL), token, string(body))
		data, _ := answer["data"].(map[string]any)
		if status != 201 {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
		return data
	}
	const email, password = "ann@example.com", "correct horse battery"
	create("users", map[string]any{"email": email, "name": "Ann", "email_verified": true, "password": password})
	const audience = "https://orders.example.com"
	create("resources/audience/"+url.PathEscape(audience)+"/relations", map[string]any{"relation": "caller", "subject": map[string]any{"type": "user", "id": "*"}})
	private, public := signingKey(t)
	back := []string{"https://app.example.com/back"}
	applications := map[string]map[string]any{
		"website": {
			"type": "server", "redirect_uris": back, "post_logout_redirect_uris": []string{"https://app.example.com/bye"},
			"token_exchange": map[string]any{"enabled": true, "allowed_audiences": []string{audience}},
		},
		"guest":   {"type": "server", "redirect_uris": back, "first_party": false},
		"service": {"type": "server", "redirect_uris": back, "token_endpoint_auth_method": "private_key_jwt", "jwks": map[string]any{"keys": []any{public}}},
		"assured": {
			"type": "server", "redirect_uris": back, "token_endpoint_auth_method": "private_key_jwt", "jwks": map[string]any{"keys": []any{public}},
			"require_signed_request_object": true, "userinfo_signed_response_alg": "ES256",
		},
		"page":       {"type": "spa", "redirect_uris": back, "dpop_bound_access_tokens": true},
		"television": {"type": "native", "redirect_uris": []string{}},
		"machine":    {"type": "m2m", "allowed_scopes": []string{"resources:read"}},
		"robot": {
			"type": "m2m", "allowed_scopes": []string{"resources:read"}, "token_endpoint_auth_method": "private_key_jwt", "jwks": map[string]any{"keys": []any{public}},
		},
	}
	for name, application := range applications {
		application["name"] = name
		applications[name] = create("applications", application)
	}
	setup, err := json.Marshal(map[string]any{
		"issuer": c.BaseURL, "email": email, "password": password, "audience": audience, "applications": applications, "key": private,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Authlib", func(t *testing.T) {
		cmd := exec.CommandContext(ctx, pythonWith(t, "authlib", "python3-authlib"), "testdata/authlib_client.py")
		cmd.Env, cmd.WaitDelay = append(os.Environ(), "SETUP="+string(setup)), time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
	})
	t.Run("clients", func(t *testing.T) { // it returns when both are done
		for _, script := range []string{"openid-client", "oauth4webapi"} {
			t.Run(script, func(t *testing.T) {
				t.Parallel() // each waits for a device most of the time
				t.Log(run(t, string(setup), "node", script+".mjs"))
			})
		}
	})
}

// npmClients installs the packages of testdata/npmclients, and returns a function that runs a command
// there, with a value of SETUP.
func npmClients(ctx context.Context, t *testing.T) func(t *testing.T, setup, name string, args ...string) string {
	t.Helper()
	return inFolder(ctx, npmFolder(ctx, t))
}

// npmFolder installs the packages of testdata/npmclients in a copy of the folder, because npm writes
// to it.
func npmFolder(ctx context.Context, t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/npmclients")); err != nil {
		t.Fatal(err)
	}
	inFolder(ctx, folder)(t, "", "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error")
	return folder
}

// inFolder returns a function that runs a command in a folder.
func inFolder(ctx context.Context, folder string) func(t *testing.T, setup, name string, args ...string) string {
	return func(t *testing.T, setup, name string, args ...string) string {
		t.Helper()
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("clients are tested in Node.js (Debian: apt install npm): %v", err)
		}
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = folder, append(os.Environ(), "SETUP="+setup), time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
}

// signingKey is a key of an application, complete and as its public half.
func signingKey(t *testing.T) (private, public jwk.Key) {
	t.Helper()
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err = jwk.Import(raw)
	if err == nil {
		err = errors.Join(private.Set(jwk.KeyIDKey, "key-1"), private.Set(jwk.AlgorithmKey, jwa.ES256()))
	}
	if err == nil {
		public, err = private.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}
