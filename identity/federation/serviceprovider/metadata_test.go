package serviceprovider

import (
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol/samltest"
)

func pemless(c *x509.Certificate) string { return base64.StdEncoding.EncodeToString(c.Raw) }

func keyDescriptor(use string, c *x509.Certificate) string {
	return `<KeyDescriptor` + attr("use", or(use, "-")) + `><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>
		` + pemless(c) + `
	</ds:X509Certificate></ds:X509Data></ds:KeyInfo></KeyDescriptor>`
}

const redirectService = `<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example.com/sso"/>`

func idpDescriptor(attributes, content string) string {
	return `<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:1.1:protocol urn:oasis:names:tc:SAML:2.0:protocol" cacheDuration="PT1H"` + attributes + `>` + content + `</IDPSSODescriptor>`
}

func entity(attributes, content string) string {
	return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" ` + attributes + `>` + content + `</EntityDescriptor>`
}

func goodDescriptor() string {
	return idpDescriptor(` WantAuthnRequestsSigned="1"`,
		keyDescriptor("signing", idpKey().Certificate)+keyDescriptor("", otherKey().Certificate)+keyDescriptor("encryption", spKey().Certificate)+keyDescriptor("signing", idpKey().Certificate)+
			`<ArtifactResolutionService Binding="urn:oasis:names:tc:SAML:2.0:bindings:SOAP" Location="javascript:x" index="0"/>
			<SingleLogoutService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://idp.example.com/slo" ResponseLocation="https://idp.example.com/slo/response"/>
			<NameIDFormat> urn:oasis:names:tc:SAML:2.0:nameid-format:persistent </NameIDFormat>
			<SingleSignOnService Binding="urn:mace:shibboleth:1.0:profiles:AuthnRequest" Location="https://idp.example.com/shibboleth"/>`+redirectService)
}

func TestParseMetadata(t *testing.T) {
	want := &IdentityProvider{
		EntityID: testIDP, SingleSignOn: []Service{{Binding: Redirect, Location: "https://idp.example.com/sso"}},
		SingleLogout:       []Service{{Binding: Post, Location: "https://idp.example.com/slo", ResponseLocation: "https://idp.example.com/slo/response"}},
		Certificates:       [][]byte{idpKey().Certificate.Raw, otherKey().Certificate.Raw},
		WantRequestsSigned: true, NameIDFormats: []string{"urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"},
	}
	id := `entityID="` + testIDP + `"`
	sp := entity(`entityID="https://sp.example.com" validUntil="2020-01-01T00:00:00Z"`, `<SPSSODescriptor protocolSupportEnumeration="x"/>`)
	group := func(attributes, content string) string {
		return `<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata"` + attributes + `>` + content + `</EntitiesDescriptor>`
	}
	for name, tc := range map[string]struct {
		document string
		until    time.Time
	}{
		"entity":        {`<?xml version="1.0" encoding="utf-8"?><!-- (c) -->` + entity(id, goodDescriptor()), time.Time{}},
		"validUntil":    {entity(id+` validUntil="2026-11-23T00:00:00Z"`, goodDescriptor()), time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)},
		"entities":      {group("", sp+entity(id, goodDescriptor())), time.Time{}},
		"nested groups": {group(` validUntil="2026-11-25T00:00:00Z"`, group(` validUntil="2026-11-24T00:00:00Z"`, entity(id, goodDescriptor()))+group("", sp)), time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseMetadata([]byte(tc.document), testNow)
			if err != nil {
				t.Fatal(err)
			}
			want := *want
			want.ValidUntil = tc.until
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
			stored, err := json.Marshal(got)
			var read IdentityProvider
			if err != nil || json.Unmarshal(stored, &read) != nil || !cmp.Equal(*got, read) {
				t.Errorf("%s %v", stored, err)
			}
		})
	}
	described, err := want.Describe()
	sum := sha256.Sum256(idpKey().Certificate.Raw)
	if err != nil || len(described) != 2 || described[0] != (Certificate{hex.EncodeToString(sum[:]), testNow.AddDate(1, 0, 0)}) {
		t.Error(described, err)
	}
	for name, tc := range map[string]struct{ document, want string }{
		"two providers":       {group("", entity(id, goodDescriptor())+entity(id, goodDescriptor())), "one identity provider"},
		"two roles":           {entity(id, goodDescriptor()+goodDescriptor()), "one identity provider"},
		"no provider":         {sp, "one identity provider"},
		"no entities":         {group("", ""), "one identity provider"},
		"expired":             {entity(id+` validUntil="2026-11-22T12:00:00Z"`, goodDescriptor()), "expired"},
		"expired group":       {group(` validUntil="2026-11-22T11:00:00Z"`, entity(id, goodDescriptor())), "expired"},
		"expired role":        {entity(id, strings.Replace(goodDescriptor(), "cacheDuration", `validUntil="2026-11-22T11:00:00Z" cacheDuration`, 1)), "expired"},
		"validUntil":          {entity(id+` validUntil="soon"`, goodDescriptor()), "not a time"},
		"no entity id":        {entity("", goodDescriptor()), "entityID"},
		"long entity id":      {entity(`entityID="`+strings.Repeat("x", 1025)+`"`, goodDescriptor()), "entityID"},
		"SAML 1":              {entity(id, strings.Replace(goodDescriptor(), "SAML:2.0:protocol", "SAML:1.0:protocol", 1)), "SAML 2.0"},
		"no service":          {entity(id, idpDescriptor("", keyDescriptor("", idpKey().Certificate))), "single sign-on"},
		"javascript":          {entity(id, strings.Replace(goodDescriptor(), "https://idp.example.com/sso", "javascript:alert(1)", 1)), "invalid URL"},
		"javascript response": {entity(id, strings.Replace(goodDescriptor(), "https://idp.example.com/slo/response", "javascript:alert(1)", 1)), "invalid URL"},
		"user in the URL":     {entity(id, strings.Replace(goodDescriptor(), "https://idp.example.com/sso", "https://a@idp.example.com/", 1)), "invalid URL"},
		"relative URL":        {entity(id, strings.Replace(goodDescriptor(), "https://idp.example.com/sso", "/sso", 1)), "invalid URL"},
		"no certificate":      {entity(id, idpDescriptor("", redirectService+keyDescriptor("encryption", idpKey().Certificate))), "no signing certificate"},
		"not a certificate":   {entity(id, strings.Replace(goodDescriptor(), pemless(idpKey().Certificate)[:8], "AAAAAAAA", 1)), "X.509"},
		"small key":           {entity(id, idpDescriptor("", redirectService+keyDescriptor("", samltest.RSA(1024).Certificate))), "2048"},
		"many services":       {entity(id, idpDescriptor("", strings.Repeat(redirectService, 21))), "more than 20"},
		"document type":       {`<!DOCTYPE x [<!ENTITY e "x">]>` + entity(id, goodDescriptor()), "document type"},
		"deep":                {strings.Repeat("<a>", 100), "too deep"},
		"another document":    {"<html/>", "not SAML"},
		"another namespace":   {`<EntityDescriptor entityID="x"/>`, "not SAML"},
		"not XML":             {"{}", "outside"},
		"empty":               {"", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseMetadata([]byte(tc.document), testNow)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v %v, want %s", got, err, tc.want)
			}
		})
	}
	if _, err := ParseMetadata(make([]byte, MaxDocument+1), testNow); !errors.Is(err, ErrMetadataTooLarge) {
		t.Error(err)
	}
}

func TestManyCertificates(t *testing.T) {
	private := samltest.ECDSA(elliptic.P256()).Private
	var keys strings.Builder
	for n := 1; n <= maxCertificates+1; n++ {
		keys.WriteString(keyDescriptor("signing", samltest.NewKey(private, testNow).Certificate)) // each has another signature
		_, err := ParseMetadata([]byte(entity(`entityID="x"`, idpDescriptor("", redirectService+keys.String()))), testNow)
		if (err == nil) != (n <= maxCertificates) {
			t.Errorf("%d certificates: %v", n, err)
		}
	}
}
