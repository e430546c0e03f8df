package mtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

func certificate(t *testing.T, change func(*x509.Certificate)) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject:  pkix.Name{CommonName: "worker, one", Organization: []string{"Acme"}, Country: []string{"DE"}},
		DNSNames: []string{"worker.example.com"}, EmailAddresses: []string{"worker@example.com"}, IPAddresses: []net.IP{net.ParseIP("192.0.2.7")},
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/worker"}},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestParse(t *testing.T) {
	der := certificate(t, nil)
	sequence := ":" + base64.StdEncoding.EncodeToString(der) + ":"
	block := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	escaped := url.PathEscape(block)
	for name, tc := range map[string]struct {
		values []string
		want   bool
		fails  bool
	}{
		"none":                  {nil, false, false},
		"empty":                 {[]string{""}, false, false},
		"empty sequence":        {[]string{"::"}, false, false},
		"RFC 9440":              {[]string{sequence}, true, false},
		"PEM":                   {[]string{escaped}, true, false},
		"two":                   {[]string{sequence, sequence}, false, true},
		"two in one":            {[]string{sequence + ", " + sequence}, false, true},
		"two blocks":            {[]string{escaped + escaped}, false, true},
		"text before":           {[]string{"x" + escaped}, false, true},
		"another type":          {[]string{url.PathEscape(strings.ReplaceAll(block, "CERTIFICATE", "PUBLIC KEY"))}, false, true},
		"no end":                {[]string{strings.TrimSuffix(sequence, ":")}, false, true},
		"no base64":             {[]string{":%:"}, false, true},
		"bytes after":           {[]string{":" + base64.StdEncoding.EncodeToString(append(der, 0)) + ":"}, false, true},
		"an escape that is cut": {[]string{escaped + "%2"}, false, true},
		"too large":             {[]string{strings.Repeat("x", maxHeader+1)}, false, true},
		"words":                 {[]string{"hello"}, false, true},
	} {
		got, err := Parse(tc.values, time.Now())
		if (got != nil) != tc.want || (err != nil) != tc.fails || got != nil && string(got.DER) != string(der) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	for name, now := range map[string]time.Time{"expired": time.Now().Add(2 * time.Hour), "not yet valid": time.Now().Add(-2 * time.Hour)} {
		if c, err := Parse([]string{sequence}, now); c != nil || err != errTime {
			t.Errorf("%s: %v %v", name, c, err)
		}
	}
}

func TestNames(t *testing.T) {
	c, err := read(certificate(t, nil), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if want := `CN=worker\, one,O=Acme,C=DE`; c.Subject != want {
		t.Errorf("subject %s, want %s", c.Subject, want)
	}
	for _, tc := range []struct {
		names Names
		want  bool
	}{
		{Names{SubjectDN: `CN=worker\, one,O=Acme,C=DE`}, true},
		{Names{SubjectDN: `cn=worker\, one, O=Acme , c = DE`}, true},
		{Names{SubjectDN: `C=DE,O=Acme,CN=worker\, one`}, false},
		{Names{SubjectDN: `CN=worker\, one`}, false},
		{Names{SubjectDN: `CN=worker, one,O=Acme,C=DE`}, false},
		{Names{SubjectDN: `CN=Worker\, one,O=Acme,C=DE`}, false},
		{Names{DNS: "Worker.example.com"}, true},
		{Names{DNS: "example.com"}, false},
		{Names{URI: "spiffe://example.org/worker"}, true},
		{Names{URI: "spiffe://example.org/worker/"}, false},
		{Names{IP: "192.0.2.7"}, true},
		{Names{IP: "::ffff:192.0.2.7"}, true},
		{Names{IP: "192.0.2.8"}, false},
		{Names{IP: "x"}, false},
		{Names{Email: "worker@example.com"}, true},
		{Names{Email: "worker@example.org"}, false},
		{Names{}, false},
		{Names{DNS: "worker.example.com", Email: "worker@example.com"}, false},
	} {
		if got := c.Has(tc.names); got != tc.want {
			t.Errorf("%+v: %v", tc.names, got)
		}
	}
}
