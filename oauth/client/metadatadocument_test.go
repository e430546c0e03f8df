package client

import (
	"net/http"
	"testing"
	"time"
)

func TestDocumentAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": time.Hour, "public": time.Hour, "max-age=600": 10 * time.Minute, "public, Max-Age=\"900\"": 15 * time.Minute, "max-age=1": 5 * time.Minute,
		"max-age=99999999": 24 * time.Hour, "max-age=-1": 5 * time.Minute, "max-age=99999999999": time.Hour, "max-age=600, no-store": 5 * time.Minute, "no-cache": 5 * time.Minute,
	} {
		if got := documentAge(http.Header{"Cache-Control": {text}}); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestDocumentHosts(t *testing.T) {
	for host, valid := range map[string]bool{
		"agent.example.com": true, "agent.example.com:8443": true, "127.0.0.1:80": true, "[::1]:80": true,
		"": false, "*.example.com": false, "EXAMPLE.com": false, "https://example.com": false, "example.com/": false, "a@example.com": false, "a b": false, "example.com?x": false, "ex\x00ample": false,
	} {
		if err := ValidateDocumentHosts([]string{host}); (err == nil) != valid {
			t.Errorf("%q: %v", host, err)
		}
	}
	if ValidateDocumentHosts(make([]string, 51)) == nil {
		t.Error("51 hosts are valid")
	}
}

// No document makes a client that is not its URL's, or that has a shared secret.
func FuzzDocument(f *testing.F) {
	const id = "https://agent.example.com/client.json"
	for _, text := range []string{
		`{"client_id":"` + id + `","redirect_uris":["https://agent.example.com/cb"],"grant_types":["refresh_token"]}`, `{"client_id":"` + id + `","client_secret":null}`,
		`{"client_id":"` + id + `","token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}}`, `{"client_id":"` + id + `","client_id":"x"}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseDocument(id, text)
		if err != nil {
			if _, ok := err.(*DocumentError); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		if m.AuthMethod != NoClientAuth && m.AuthMethod != PrivateKeyJWT || m.ClientSecret != "" || m.applicationType() == Machine {
			t.Errorf("%+v", m)
		}
	})
}
