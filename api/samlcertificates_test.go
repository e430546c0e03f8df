package api_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

const samlCertificatesPath = "/api/v1/settings/saml-certificates"

// certificateStates returns the use and the state of each certificate in a list.
func certificateStates(t *testing.T, a answer) (states []string) {
	t.Helper()
	for _, item := range a.list() {
		c := item.(map[string]any)
		block, rest := pem.Decode([]byte(c["certificate"].(string)))
		if block == nil || len(rest) > 0 {
			t.Fatalf("not PEM: %v", c["certificate"])
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(block.Bytes)
		equal(t, "fingerprint", c["fingerprint"], hex.EncodeToString(sum[:]))
		equal(t, "end", c["not_after"], parsed.NotAfter.Format("2006-01-02T15:04:05.000Z"))
		if life := parsed.NotAfter.Sub(parsed.NotBefore); life < 3*365*24*time.Hour {
			t.Errorf("a certificate is valid for %v", life)
		}
		states = append(states, fmt.Sprint(c["use"], " ", c["state"], " ", c["activated_at"] != nil))
	}
	return states
}

func samlCertificates(t *testing.T, w *world, c *client) {
	list := func(by *client) answer {
		t.Helper()
		return by.want(t, 200, "", "GET", samlCertificatesPath, nil)
	}
	rotate := func(body object) answer {
		t.Helper()
		return c.want(t, 200, "", "POST", samlCertificatesPath+"/rotate", body)
	}
	fingerprint := func(a answer, i int) any { return a.list()[i].(map[string]any)["fingerprint"] }
	equal(t, "at first", len(list(c).list()), 0)
	equal(t, "the first", certificateStates(t, rotate(object{"use": "identity_provider"})), []string{"identity_provider active true"})
	ahead := rotate(object{"use": "identity_provider"})
	equal(t, "the next", certificateStates(t, ahead), []string{"identity_provider active true", "identity_provider next false"})
	equal(t, "again", rotate(object{"use": "identity_provider", "emergency": false}).body["data"], ahead.body["data"])
	both := rotate(object{"use": "service_provider"})
	equal(t, "of another use", certificateStates(t, both), []string{"identity_provider active true", "identity_provider next false", "service_provider active true"})
	equal(t, "listed", list(c).body["data"], both.body["data"])

	emergency := c.under(t, "key", "POST", samlCertificatesPath+"/rotate", object{"use": "identity_provider", "emergency": true})
	equal(t, "emergency", certificateStates(t, emergency), []string{"identity_provider active true", "service_provider active true"})
	for i := range 2 {
		equal(t, "an old certificate", fingerprint(emergency, 0) == fingerprint(ahead, i), false)
	}
	equal(t, "another use", fingerprint(emergency, 1), fingerprint(both, 2))
	equal(t, "repeated", c.under(t, "key", "POST", samlCertificatesPath+"/rotate", object{"use": "identity_provider", "emergency": true}).text, emergency.text)
	equal(t, "another tenant", len(list(w.tenant(t, "saml-certificates-other")).list()), 0)

	var records []eventlog.Event
	for _, e := range w.events(t, c, 0) {
		if e.Type == eventlog.TenantSAMLCertificateRotated {
			records = append(records, e)
		}
	}
	equal(t, "events", len(records), 2) // the first of a use is no rotation
	equal(t, "origin", records[1].Origin.RequestID, emergency.header.Get("X-Request-Id"))
	data := parse(t, string(records[0].Data)).(map[string]any)
	next := ahead.list()[1].(map[string]any)
	equal(t, "data", data, object{"emergency": false, "saml_certificates": []any{
		object{"fingerprint": next["fingerprint"], "use": "identity_provider", "state": "next", "not_after": next["not_after"]},
	}})
	removed := parse(t, string(records[1].Data)).(map[string]any)
	var states []any
	for _, item := range removed["saml_certificates"].([]any) {
		states = append(states, item.(map[string]any)["state"])
	}
	equal(t, "states", []any{removed["emergency"], states}, []any{true, []any{"removed", "removed", "active"}})

	reader := c.with(w.token(t, c, w.application(t, c, "settings:read")))
	list(reader)
	reader.want(t, 403, "insufficient_scope", "POST", samlCertificatesPath+"/rotate", object{"use": "identity_provider"})
	c.with(w.token(t, c, w.application(t, c, "settings:write"))).want(t, 403, "insufficient_scope", "GET", samlCertificatesPath, nil)
	c.with("").want(t, 401, "unauthenticated", "POST", samlCertificatesPath+"/rotate", object{"use": "identity_provider"})
	c.want(t, 400, "invalid_json", "POST", samlCertificatesPath+"/rotate", `{`)
	for _, body := range []any{object{"use": "signing"}, object{}} {
		equal(t, "field", fields(c.want(t, 400, "validation_failed", "POST", samlCertificatesPath+"/rotate", body)), []string{"use"})
	}
	c.want(t, 400, "cursor_invalid", "GET", samlCertificatesPath+"?cursor=x", nil)
	equal(t, "after bad ones", list(c).body["data"], emergency.body["data"])
}
