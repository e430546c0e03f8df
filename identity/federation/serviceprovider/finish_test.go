package serviceprovider

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol/samltest"
)

func TestFinish(t *testing.T) {
	want := Identity{
		Subject:      NameID{Value: "ann", Format: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"},
		Attributes:   map[string]any{"mail": []string{"ann@example.com"}, "groups": []string{"staff", "R&D"}},
		SessionIndex: "s1", AuthnContext: "urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
		AuthnInstant: testNow.Add(-time.Minute), AssertionID: "_assertion", NotOnOrAfter: testNow.Add(6 * time.Minute),
	}
	p256, p384, p521 := samltest.ECDSA(elliptic.P256()), samltest.ECDSA(elliptic.P384()), samltest.ECDSA(elliptic.P521())
	for name, a := range map[string]answer{
		"assertion signed":        {signAssertion: idpKey()},
		"response signed":         {signResponse: idpKey()},
		"both signed":             {signAssertion: idpKey(), signResponse: idpKey()},
		"RSA with SHA-512":        {signAssertion: idpKey(), method: crypto.SHA512},
		"ECDSA P-256":             {signAssertion: p256},
		"ECDSA P-384, SHA-384":    {signResponse: p384},
		"ECDSA P-521, SHA-512":    {signAssertion: p521},
		"without optional things": {signAssertion: idpKey(), destination: "-", responseIssuer: "-", notBefore: "-", notOnOrAfter: "-"},
		"skew":                    {signAssertion: idpKey(), issued: at(50 * time.Second), notBefore: at(50 * time.Second), confirmEnd: at(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			p := testProvider()
			for _, key := range []Key{otherKey(), p256, p384, p521} { // certificates of a rollover
				p.IdentityProvider.Certificates = append([][]byte{key.Certificate.Raw}, p.IdentityProvider.Certificates...)
			}
			got, err := p.Finish(testPending(), post(a.build(t)), testNow)
			if err != nil {
				t.Fatal(err, err.(*Error).Detail)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each check of a response and an assertion refuses what is wrong in it only.
func TestFinishRefuses(t *testing.T) {
	confirmation := func(method, attributes string) string {
		return `<saml:Subject><saml:NameID>ann</saml:NameID><saml:SubjectConfirmation Method="` + method + `"><saml:SubjectConfirmationData ` + attributes + `/></saml:SubjectConfirmation></saml:Subject>`
	}
	good := ` Recipient="` + testACS + `" InResponseTo="_request" NotOnOrAfter="` + at(time.Minute) + `"`
	audience := `<saml:AudienceRestriction><saml:Audience>` + testEntity + `</saml:Audience></saml:AudienceRestriction>`
	if _, err := testProvider().Finish(testPending(), post(signed(answer{subject: confirmation(bearer, good), conditions: `<saml:Conditions>` + audience + `<saml:OneTimeUse/></saml:Conditions>`}).build(t)), testNow); err != nil {
		t.Fatal(err)
	}
	status := func(codes ...string) string {
		second := ""
		if len(codes) > 1 {
			second = `<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:` + codes[1] + `"/>`
		}
		return `<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:` + codes[0] + `">` + second + `</samlp:StatusCode><samlp:StatusMessage>sensitive &lt;b&gt;` + strings.Repeat("x", 1000) + `</samlp:StatusMessage></samlp:Status>`
	}
	for name, tc := range map[string]struct {
		answer
		class  Class
		detail string
	}{
		"wrong audience":              {answer{audience: "https://other.example.com"}, Invalid, "audience"},
		"audience is a prefix":        {answer{audience: testEntity + "/x"}, Invalid, "audience"},
		"no audience":                 {answer{audience: "-"}, Invalid, "no audience"},
		"second audience restriction": {answer{conditions: `<saml:Conditions>` + audience + `<saml:AudienceRestriction><saml:Audience>x</saml:Audience></saml:AudienceRestriction></saml:Conditions>`}, Invalid, "audience"},
		"unknown condition":           {answer{conditions: `<saml:Conditions>` + audience + `<saml:Condition/></saml:Conditions>`}, Invalid, "condition"},
		"foreign condition":           {answer{conditions: `<saml:Conditions>` + audience + `<x:OneTimeUse xmlns:x="urn:x"/></saml:Conditions>`}, Invalid, "condition"},
		"no conditions":               {answer{conditions: "-"}, Invalid, "Conditions"},
		"two conditions":              {answer{conditions: `<saml:Conditions>` + audience + `</saml:Conditions><saml:Conditions>` + audience + `</saml:Conditions>`}, Invalid, "Conditions"},
		"wrong destination":           {answer{destination: testACS + "/"}, Invalid, "Destination"},
		"destination missing":         {answer{destination: "-", signResponse: idpKey()}, Invalid, "Destination"},
		"wrong recipient":             {answer{recipient: "https://sp.example.com/saml/sp/other/acs"}, Invalid, "recipient"},
		"no recipient":                {answer{recipient: "-"}, Invalid, "recipient"},
		"foreign InResponseTo":        {answer{responseTo: "_other", confirmTo: "_other"}, Stale, "InResponseTo"},
		"response InResponseTo":       {answer{responseTo: "_other"}, Stale, "response is not"},
		"assertion InResponseTo":      {answer{confirmTo: "_other"}, Stale, "assertion is not"},
		"unsolicited":                 {answer{responseTo: "-", confirmTo: "-"}, Stale, "response is not"},
		"unsolicited assertion":       {answer{confirmTo: "-"}, Stale, "assertion is not"},
		"wrong issuer":                {answer{issuer: "https://other.example.com"}, Invalid, "issuer of the assertion"},
		"wrong response issuer":       {answer{responseIssuer: "https://other.example.com"}, Invalid, "issuer of the message"},
		"response issuer missing":     {answer{responseIssuer: "-", signResponse: idpKey()}, Invalid, "issuer of the message"},
		"expired":                     {answer{notOnOrAfter: at(-61 * time.Second)}, Stale, "expired"},
		"expired at the limit":        {answer{notOnOrAfter: at(-60 * time.Second)}, Stale, "expired"},
		"expired confirmation":        {answer{confirmEnd: at(-61 * time.Second)}, Stale, "expired"},
		"no end of confirmation":      {answer{confirmEnd: "-"}, Invalid, "no end"},
		"future":                      {answer{notBefore: at(61 * time.Second)}, Invalid, "not valid yet"},
		"future confirmation":         {answer{confirmNotBefore: at(61 * time.Second)}, Invalid, "not valid yet"},
		"issued in the future":        {answer{issued: at(61 * time.Second)}, Invalid, "future"},
		"no time":                     {answer{issued: "-"}, Invalid, "no time"},
		"not a time":                  {answer{notOnOrAfter: "tomorrow"}, Invalid, "time"},
		"holder of key":               {answer{subject: confirmation("urn:oasis:names:tc:SAML:2.0:cm:holder-of-key", good)}, Invalid, "bearer"},
		"no confirmation":             {answer{subject: `<saml:Subject><saml:NameID>ann</saml:NameID></saml:Subject>`}, Invalid, "bearer"},
		"no subject":                  {answer{subject: "-"}, Invalid, "subject"},
		"two subjects":                {answer{subject: confirmation(bearer, good) + confirmation(bearer, good)}, Invalid, "subject"},
		"empty NameID":                {answer{nameID: " "}, Invalid, "NameID"},
		"long NameID":                 {answer{nameID: strings.Repeat("x", 1025)}, Invalid, "NameID"},
		"lines in NameID":             {answer{nameID: "ann&#10;bob"}, Invalid, "NameID"},
		"elements in NameID":          {answer{nameID: "ann<saml:x/>bob"}, Invalid, "NameID"},
		"instruction in NameID":       {answer{nameID: "ann<?x y?>.evil.com"}, Invalid, "processing instruction"},
		"no authentication":           {answer{authn: "-"}, Invalid, "AuthnStatement"},
		"future authentication":       {answer{authn: `<saml:AuthnStatement AuthnInstant="` + at(2*time.Minute) + `"/>`}, Invalid, "AuthnInstant"},
		"session ended":               {answer{authn: `<saml:AuthnStatement AuthnInstant="` + at(-time.Hour) + `" SessionNotOnOrAfter="` + at(-2*time.Minute) + `"/>`}, Stale, "session"},
		"end of session":              {answer{authn: `<saml:AuthnStatement AuthnInstant="` + at(-time.Hour) + `" SessionNotOnOrAfter="soon"/>`}, Invalid, "SessionNotOnOrAfter"},
		"long SessionIndex":           {answer{authn: `<saml:AuthnStatement AuthnInstant="` + at(-time.Hour) + `" SessionIndex="` + strings.Repeat("x", 1025) + `"/>`}, Invalid, "SessionIndex"},
		"no ID of the response":       {answer{responseID: "-"}, Invalid, "no ID"},
		"long ID of the response":     {answer{responseID: strings.Repeat("x", 1025)}, Invalid, "no ID"},
		"long ID of the assertion":    {answer{assertionID: "_" + strings.Repeat("x", 1025)}, Invalid, "no ID"},
		"status without a code":       {answer{status: `<samlp:Status/>`}, Invalid, "status"},
		"many attributes":             {answer{attributes: `<saml:AttributeStatement>` + manyNames() + `</saml:AttributeStatement>`}, Invalid, "500"},
		"encrypted attribute":         {answer{attributes: `<saml:AttributeStatement><saml:EncryptedAttribute/></saml:AttributeStatement>`}, Invalid, "encrypted attribute"},
		"attribute without a name":    {answer{attributes: `<saml:AttributeStatement><saml:Attribute/></saml:AttributeStatement>`}, Invalid, "name of an attribute"},
		"canceled":                    {answer{status: status("Responder", "AuthnFailed")}, Denied, "sensitive <b>xx"},
		"denied":                      {answer{status: status("Requester", "RequestDenied")}, Denied, "RequestDenied"},
		"passive":                     {answer{status: status("Responder", "NoPassive")}, InteractionRequired, "NoPassive"},
		"NameID policy":               {answer{status: status("Requester", "InvalidNameIDPolicy")}, Misconfigured, "InvalidNameIDPolicy"},
		"requester":                   {answer{status: status("Requester")}, Misconfigured, "Requester"},
		"responder":                   {answer{status: status("Responder", "Other")}, Unavailable, "Other"},
		"unknown status":              {answer{status: status("Strange")}, Unavailable, "Strange"},
		"no status":                   {answer{status: "<samlp:x/>"}, Invalid, "status"},
		"two statuses":                {answer{status: success + success}, Invalid, "status"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testProvider().Finish(testPending(), post(signed(tc.answer).build(t)), testNow)
			e := wantClass(t, err, tc.class)
			if !strings.Contains(e.Detail, tc.detail) || len(e.Detail) > 1000 {
				t.Errorf("detail %q, want %q", e.Detail, tc.detail)
			}
			if strings.Contains(e.Error(), "sensitive") {
				t.Error(e)
			}
		})
	}
}

func manyNames() string {
	var b strings.Builder
	for i := range maxAttributeNames + 1 {
		fmt.Fprintf(&b, `<saml:Attribute Name="a%d"/>`, i)
	}
	return b.String()
}

// A message or an assertion of another version is refused, with a valid signature.
func TestVersions(t *testing.T) {
	assertion := strings.Replace(answer{}.assertion(), `Version="2.0"`, `Version="1.1"`, 1)
	for name, document := range map[string]string{
		"assertion": answer{}.wrap(sign(t, assertion, idpKey(), 0)),
		"response":  sign(t, strings.Replace(answer{}.wrap(answer{}.assertion()), `Version="2.0"`, `Version="1.1"`, 1), idpKey(), 0),
	} {
		_, err := testProvider().Finish(testPending(), post(document), testNow)
		if e := wantClass(t, err, Invalid); !strings.Contains(e.Detail, "version") {
			t.Errorf("%s: %s", name, e.Detail)
		}
	}
}

// A sign-in is bound to its browser, its identity provider and its request.
func TestFinishBinding(t *testing.T) {
	document := signed(answer{}).build(t)
	for name, tc := range map[string]struct {
		change func(*Pending, url.Values)
		class  Class
	}{
		"other RelayState": {func(_ *Pending, form url.Values) { form.Set("RelayState", "other") }, Stale},
		"no RelayState":    {func(_ *Pending, form url.Values) { form.Del("RelayState") }, Stale},
		"other provider":   {func(p *Pending, _ url.Values) { p.Provider = "https://old.example.com" }, Stale},
		"other request":    {func(p *Pending, _ url.Values) { p.RequestID = "_new" }, Stale},
		"zero pending":     {func(p *Pending, form url.Values) { *p = Pending{Provider: testIDP}; form.Set("RelayState", "") }, Stale},
		"two responses":    {func(_ *Pending, form url.Values) { form.Add("SAMLResponse", form.Get("SAMLResponse")) }, Invalid},
		"two RelayStates":  {func(_ *Pending, form url.Values) { form.Add("RelayState", "relay") }, Invalid},
		"a request, too":   {func(_ *Pending, form url.Values) { form.Add("SAMLRequest", "x") }, Invalid},
		"a request instead": {func(_ *Pending, form url.Values) {
			form["SAMLRequest"] = form["SAMLResponse"]
			form.Del("SAMLResponse")
		}, Invalid},
		"no response": {func(_ *Pending, form url.Values) { form.Del("SAMLResponse") }, Invalid},
		"not base64":  {func(_ *Pending, form url.Values) { form.Set("SAMLResponse", "%%%") }, Invalid},
		"too large":   {func(_ *Pending, form url.Values) { form.Set("SAMLResponse", strings.Repeat("A", 1<<20)) }, Invalid},
		"old authentication": {func(p *Pending, _ url.Values) {
			p.ForceAuthn, p.Begun = true, testNow.Add(time.Second)
		}, Invalid},
		"weak authentication": {func(p *Pending, _ url.Values) { p.AuthnContexts = []string{"urn:strong"} }, Denied},
	} {
		t.Run(name, func(t *testing.T) {
			pending, form := testPending(), post(document)
			tc.change(pending, form)
			_, err := testProvider().Finish(pending, form, testNow)
			wantClass(t, err, tc.class)
		})
	}
	pending := testPending()
	pending.ForceAuthn, pending.AuthnContexts = true, []string{"urn:strong", "urn:oasis:names:tc:SAML:2.0:ac:classes:Password"}
	if _, err := testProvider().Finish(pending, post(document), testNow); err != nil {
		t.Error(err)
	}
	p := testProvider()
	p.EntityID = ""
	_, err := p.Finish(pending, post(document), testNow)
	wantClass(t, err, Misconfigured)
}

// A response to no request is accepted only where it is allowed, and only without InResponseTo: a
// stolen response to a request is not one.
func TestUnsolicited(t *testing.T) {
	unsolicited := signed(answer{responseTo: "-", confirmTo: "-"}).build(t)
	p := testProvider()
	_, err := p.Finish(nil, post(unsolicited), testNow)
	wantClass(t, err, Stale)
	p.AllowIDPInitiated = true
	identity, err := p.Finish(nil, post(unsolicited), testNow)
	if err != nil || !identity.Unsolicited {
		t.Fatal(identity, err)
	}
	for name, a := range map[string]answer{"both": {}, "response": {confirmTo: "-"}, "assertion": {responseTo: "-"}} {
		_, err = p.Finish(nil, post(signed(a).build(t)), testNow)
		t.Log(name)
		wantClass(t, err, Stale)
	}
}

// The returned ID and time are sufficient to refuse a replay: the same assertion has the same ID,
// and is refused from then on.
func TestReplay(t *testing.T) {
	p, form := testProvider(), post(signed(answer{}).build(t))
	first, err := p.Finish(testPending(), form, testNow)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Finish(testPending(), form, first.NotOnOrAfter.Add(-time.Millisecond))
	if err != nil || again.AssertionID != first.AssertionID {
		t.Fatal(again, err)
	}
	_, err = p.Finish(testPending(), form, first.NotOnOrAfter)
	wantClass(t, err, Stale)
}

// Many groups are no problem, and attributes with a name twice are joined.
func TestAttributes(t *testing.T) {
	var values strings.Builder
	for range 3000 {
		values.WriteString(`<saml:AttributeValue>0a6c1e1f-7bd2-4c6b</saml:AttributeValue>`)
	}
	a := signed(answer{attributes: `<saml:AttributeStatement>` +
		`<saml:Attribute Name="groups">` + values.String() + `</saml:Attribute>` +
		`<saml:Attribute Name="x"><saml:AttributeValue>1</saml:AttributeValue></saml:Attribute><saml:Attribute Name="x"><saml:AttributeValue><![CDATA[2<]]></saml:AttributeValue></saml:Attribute>` +
		`<saml:Attribute Name="none"/>` +
		`<saml:Attribute Name="id"><saml:AttributeValue><saml:NameID>pairwise</saml:NameID></saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`})
	identity, err := testProvider().Finish(testPending(), post(a.build(t)), testNow)
	if err != nil {
		t.Fatal(err.(*Error).Detail)
	}
	if n := len(identity.Attributes["groups"].([]string)); n != 3000 {
		t.Error(n)
	}
	delete(identity.Attributes, "groups")
	if diff := cmp.Diff(map[string]any{"x": []string{"1", "2<"}, "none": []string{}, "id": []string{"pairwise"}}, identity.Attributes); diff != "" {
		t.Error(diff)
	}
}

func TestRelayState(t *testing.T) {
	for _, tc := range []struct {
		values url.Values
		want   string
	}{
		{url.Values{"RelayState": {"a"}}, "a"},
		{url.Values{"RelayState": {"a", "b"}}, ""},
		{url.Values{}, ""},
		{url.Values{"RelayState": {string(bytes.Repeat([]byte("x"), 1025))}}, ""},
	} {
		if got := RelayState(tc.values); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
