package identityprovider_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/oauth/saml/identityprovider"
)

// Documents that no binding and no signature makes a request.
func TestRequestAttacks(t *testing.T) {
	good := requestXML("", "")
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the request does not contain %s", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	acs := func(location string) string {
		return requestXML(`AssertionConsumerServiceURL="`+location+`"`, "")
	}
	issuer := `<saml:Issuer>` + testSP + `</saml:Issuer>`
	for name, tc := range map[string]struct{ document, detail string }{
		"unregistered ACS":         {acs("https://evil.example.com/acs"), "not registered"},
		"script as the ACS":        {acs("javascript:alert(document.domain)"), "not registered"},
		"data as the ACS":          {acs("data:text/html,x"), "not registered"},
		"ACS of another host":      {acs(testACS + ".evil.example.com"), "not registered"},
		"ACS with a user":          {acs("https://app.example.com@evil.example.com/saml/acs"), "not registered"},
		"ACS with a query":         {acs(testACS + "?x"), "not registered"},
		"ACS with a fragment":      {acs(testACS + "#"), "not registered"},
		"ACS in another case":      {acs(strings.ToUpper(testACS)), "not registered"},
		"ACS with a blank":         {acs(testACS + " "), "not registered"},
		"ACS by a path":            {acs("https://app.example.com/saml/x/../acs"), "not registered"},
		"URL and index":            {requestXML(`AssertionConsumerServiceURL="`+testACS+`" AssertionConsumerServiceIndex="0"`, ""), "a URL and an index"},
		"unknown index":            {requestXML(`AssertionConsumerServiceIndex="2"`, ""), "index"},
		"negative index":           {requestXML(`AssertionConsumerServiceIndex="-1"`, ""), "index"},
		"index that is no number":  {requestXML(`AssertionConsumerServiceIndex="x"`, ""), "index"},
		"another destination":      {replace(testSSO, "https://other.example/saml/idp/sso"), "Destination"},
		"destination of logout":    {replace(testSSO, testSLO), "Destination"},
		"another service provider": {replace(testSP, "https://other.example.com"), "issuer"},
		"two issuers":              {replace(issuer, issuer+issuer), "issuer"},
		"no issuer":                {replace(issuer, ""), "issuer"},
		"issuer of another format": {replace("<saml:Issuer>", `<saml:Issuer Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">`), "issuer"},
		"another version":          {replace(`"2.0"`, `"1.1"`), "version"},
		"no ID":                    {replace(`ID="_r"`, ""), "ID"},
		"long ID":                  {replace(`"_r"`, `"_`+strings.Repeat("r", samlprotocol.MaxText)+`"`), "ID"},
		"in the future":            {replace("12:00:00Z", "12:02:00Z"), "future"},
		"no time":                  {replace("2026-11-22T12:00:00Z", ""), "time"},
		"two policies":             {requestXML("", "<samlp:NameIDPolicy/><samlp:NameIDPolicy/>"), "twice"},
		"two subjects":             {requestXML("", "<saml:Subject/><saml:Subject/>"), "twice"},
		"two contexts":             {requestXML("", "<samlp:RequestedAuthnContext/><samlp:RequestedAuthnContext/>"), "twice"},
		"empty subject":            {requestXML("", "<saml:Subject><saml:NameID/></saml:Subject>"), "NameID"},
		"unknown comparison":       {requestXML("", `<samlp:RequestedAuthnContext Comparison="worse"/>`), "comparison"},
		"many classes":             {requestXML("", "<samlp:RequestedAuthnContext>"+strings.Repeat("<saml:AuthnContextClassRef>x</saml:AuthnContextClassRef>", 21)+"</samlp:RequestedAuthnContext>"), "more than 20"},
		"document type":            {"<!DOCTYPE x>" + good, "document type"},
		"external entity":          {`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + replace(testSP, "&e;"), "document type"},
		"billion laughs":           {`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>` + replace(testSP, "&b;"), "document type"},
		"comment in the issuer":    {replace(testSP, testSP+"<!-- -->.evil.example.com"), "comment"},
		"processing instruction":   {replace(issuer, issuer+"<?x y?>"), "processing instruction"},
		"deep":                     {requestXML("", strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)), "deep"},
		"wide":                     {requestXML("", strings.Repeat("<a/>", 10_001)), "too many"},
		"large":                    {requestXML("", "<a>"+strings.Repeat("x", samlprotocol.MaxDocument)+"</a>"), "too large"},
		"nested request":           {requestXML("", "<samlp:Extensions>"+strings.ReplaceAll(good, `"_r"`, `"_s"`)+"</samlp:Extensions>"), "nested"},
		"an assertion in it twice": {requestXML("", "<saml:Assertion/><saml:Assertion/>"), "several assertions"},
		"logout request":           {strings.ReplaceAll(good, "AuthnRequest", "LogoutRequest"), "not a AuthnRequest"},
		"request of SAML 1":        {strings.ReplaceAll(good, samlprotocol.ProtocolNS, "urn:oasis:names:tc:SAML:1.0:protocol"), "not a AuthnRequest"},
		"two roots":                {good + good, "two roots"},
		"not XML":                  {"{}", "document"},
		"not UTF-8":                {replace("</samlp", "\xff</samlp"), "UTF-8"},
		"ACS attribute twice":      {requestXML(`AssertionConsumerServiceURL="`+testACS+`" x:AssertionConsumerServiceURL="https://evil.example.com"`, ""), "two attributes"},
		"ACS in another namespace": {requestXML(`xmlns:x="urn:x" x:AssertionConsumerServiceURL="https://evil.example.com"`, ""), "not registered"},
		"empty signature":          {requestXML("", `<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"/>`), "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.document == good {
				t.Fatal("the attack changed nothing")
			}
			_, err := readQuery(testProvider(), registered(), samltest.Query(t, "SAMLRequest", tc.document))
			wantClass(t, err, samlprotocol.Invalid, tc.detail)
			_, err = readForm(testProvider(), registered(), samltest.Form("SAMLRequest", tc.document))
			wantClass(t, err, samlprotocol.Invalid, tc.detail)
		})
	}
	old := replace("12:00:00Z", "11:53:00Z")
	_, err := readForm(testProvider(), registered(), samltest.Form("SAMLRequest", old))
	wantClass(t, err, samlprotocol.Stale, "ago")
	_, err = readForm(testProvider(), registered(), samltest.Form("SAMLResponse", good))
	wantClass(t, err, samlprotocol.Invalid, "response")
	sp := registered()
	sp.ACS = nil
	_, err = readForm(testProvider(), sp, samltest.Form("SAMLRequest", good))
	wantClass(t, err, samlprotocol.Misconfigured, "assertion consumer")
	p := testProvider()
	p.SSO = ""
	_, err = readForm(p, sp, samltest.Form("SAMLRequest", good))
	wantClass(t, err, samlprotocol.Misconfigured, "URL")
}

// A signature that is present must be valid, also where none is required, and removing it does not
// help where one is.
func TestRequestSignatureAttacks(t *testing.T) {
	document := requestXML("", "")
	evil := requestXML(`ForceAuthn="true"`, "")
	unsigned := samltest.Query(t, "SAMLRequest", document)
	good := samltest.SignQuery(t, unsigned+"&RelayState=a", spKey())
	_, signature, _ := strings.Cut(good, "&Signature=")
	value := strings.TrimPrefix(unsigned, "SAMLRequest=")
	evilMessage := samltest.Query(t, "SAMLRequest", evil)
	bomb := requestXML("", "") + strings.Repeat(" ", 64<<20)
	strict := registered()
	strict.WantRequestsSigned = true
	if r, err := readQuery(testProvider(), strict, good); err != nil || !r.Signed || r.RelayState != "a" {
		t.Fatal(r, err)
	}
	sha1 := func() string {
		context, err := dsig.NewSigningContext(spKey().Private, nil)
		if err == nil {
			err = context.SetSignatureMethod(dsig.RSASHA1SignatureMethod)
		}
		if err != nil {
			t.Fatal(err)
		}
		query := unsigned + "&SigAlg=" + url.QueryEscape(dsig.RSASHA1SignatureMethod)
		raw, err := context.SignString(query)
		if err != nil {
			t.Fatal(err)
		}
		return query + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(raw))
	}
	for name, tc := range map[string]struct {
		query, detail string
		valid         bool // without the requirement of a signature
	}{
		"unsigned":                    {unsigned, "not signed", true},
		"unsigned, another message":   {evilMessage, "not signed", true},
		"changed message":             {strings.Replace(good, value, strings.TrimPrefix(evilMessage, "SAMLRequest="), 1), "certificate", false},
		"changed RelayState":          {strings.Replace(good, "RelayState=a", "RelayState=b", 1), "certificate", false},
		"removed RelayState":          {strings.Replace(good, "&RelayState=a", "", 1), "certificate", false},
		"another encoding":            {strings.Replace(good, value, fmt.Sprintf("%%%X", value[0])+value[1:], 1), "certificate", false},
		"signature removed":           {strings.Replace(good, "&Signature="+signature, "", 1), "certificate", false},
		"algorithm removed":           {unsigned + "&RelayState=a&Signature=" + signature, "not signed", false},
		"empty signature":             {strings.Replace(good, signature, "", 1), "certificate", false},
		"of another":                  {samltest.SignQuery(t, unsigned, otherKey()), "certificate", false},
		"of the identity provider":    {samltest.SignQuery(t, unsigned, idpKey()), "certificate", false},
		"SHA-1":                       {sha1(), "not accepted", false},
		"HMAC":                        {strings.Replace(good, "rsa-sha256", "hmac-sha256", 1), "not accepted", false},
		"two messages, evil first":    {evilMessage + "&" + good, "twice", false},
		"two messages, evil last":     {good + "&" + evilMessage, "twice", false},
		"two signatures":              {good + "&Signature=x", "twice", false},
		"two algorithms":              {good + "&SigAlg=x", "twice", false},
		"two RelayStates":             {good + "&RelayState=b", "twice", false},
		"encoded name":                {strings.Replace(evilMessage, "SAMLRequest", "SAML%52equest", 1) + "&" + good, "unusual encoding", false},
		"response beside the request": {good + "&SAMLResponse=x", "request and a response", false},
		"long RelayState":             {unsigned + "&RelayState=" + strings.Repeat("x", samlprotocol.MaxRelayState+1), "too long", false},
		"another compression":         {good + "&SAMLEncoding=gzip", "encoding", false},
		"deflate bomb":                {samltest.SignQuery(t, samltest.Query(t, "SAMLRequest", bomb), spKey()), "too large", false},
		"unsigned deflate bomb":       {samltest.Query(t, "SAMLRequest", bomb), "too large", false},
		"not DEFLATE":                 {"SAMLRequest=AAAA", "DEFLATE", false},
		"not base64":                  {"SAMLRequest=%25", "base64", false},
		"nothing":                     {"", "response where a request", false},
		"a signature in it":           {samltest.Query(t, "SAMLRequest", samltest.Sign(t, document, spKey())), "signature in it", false},
		"no destination":              {samltest.SignQuery(t, samltest.Query(t, "SAMLRequest", strings.Replace(document, "Destination", "D", 1)), spKey()), "Destination", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readQuery(testProvider(), strict, tc.query)
			wantClass(t, err, samlprotocol.Invalid, tc.detail)
			r, err := readQuery(testProvider(), registered(), tc.query)
			if tc.valid != (err == nil) || r.Signed {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	strict.Certificates = nil
	_, err := readQuery(testProvider(), strict, good)
	wantClass(t, err, samlprotocol.Misconfigured, "certificate")
	m, err := samlprotocol.ReadQuery(good)
	if err != nil {
		t.Fatal(err)
	}
	strict = registered()
	_, err = testProvider().ReadRequest(strict, m, spKey().Certificate.NotAfter.Add(time.Hour))
	wantClass(t, err, samlprotocol.Misconfigured, "expired")
}

// Signature wrapping of a request of the POST binding: none is read as another than the signed one.
func TestRequestWrapping(t *testing.T) {
	good := samltest.Sign(t, requestXML(`AssertionConsumerServiceURL="`+testACS+`"`, ""), spKey())
	strict := registered()
	strict.WantRequestsSigned = true
	if r, err := readForm(testProvider(), strict, samltest.Form("SAMLRequest", good)); err != nil || !r.Signed {
		t.Fatal(r, err)
	}
	signature := func(e *etree.Element) *etree.Element { return samlprotocol.Children(e, samlprotocol.SignatureName)[0] }
	original := func(e *etree.Element) *etree.Element {
		c := e.Copy()
		c.RemoveChild(signature(c))
		return c
	}
	// evil changes a request to another URL that is registered, so that nothing but its signature is
	// wrong.
	evil := func(e *etree.Element) {
		e.CreateAttr("ID", "_evil")
		e.CreateAttr("AssertionConsumerServiceURL", testACS2)
	}
	for name, attack := range map[string]func(root *etree.Element) *etree.Element{
		"changed": func(root *etree.Element) *etree.Element {
			root.CreateAttr("AssertionConsumerServiceURL", testACS2)
			return root
		},
		"XSW1: request in the signature of a changed one": func(root *etree.Element) *etree.Element {
			o := original(root)
			evil(root)
			signature(root).AddChild(o)
			return root
		},
		"XSW2: request beside the signature of a changed one": func(root *etree.Element) *etree.Element {
			o := original(root)
			evil(root)
			root.InsertChildAt(signature(root).Index(), o)
			return root
		},
		"request with its signature in a changed one": func(root *etree.Element) *etree.Element {
			outer := original(root)
			evil(outer)
			outer.CreateElement("samlp:Extensions").AddChild(root)
			return outer
		},
		"request in an Object": func(root *etree.Element) *etree.Element {
			o := original(root)
			evil(root)
			signature(root).CreateElement("ds:Object").AddChild(o)
			return root
		},
		"signature of a request in Extensions": func(root *etree.Element) *etree.Element {
			o := root.Copy()
			evil(root)
			s := signature(root)
			root.RemoveChild(s)
			extensions := root.CreateElement("samlp:Extensions")
			extensions.AddChild(s)
			extensions.AddChild(original(o))
			return root
		},
		"request with the same ID beside": func(root *etree.Element) *etree.Element {
			o := original(root)
			root.CreateAttr("AssertionConsumerServiceURL", testACS2)
			root.AddChild(o)
			return root
		},
		"two signatures": func(root *etree.Element) *etree.Element {
			root.AddChild(signature(root).Copy())
			return root
		},
		"signature removed": func(root *etree.Element) *etree.Element {
			root.RemoveChild(signature(root))
			return root
		},
		"signature of another": func(root *etree.Element) *etree.Element {
			root.RemoveChild(signature(root))
			return samltest.Parse(t, samltest.Sign(t, samltest.Write(t, root), otherKey()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			document := samltest.Write(t, attack(samltest.Parse(t, good)))
			if document == good {
				t.Fatal("the attack changed nothing")
			}
			_, err := readForm(testProvider(), strict, samltest.Form("SAMLRequest", document))
			wantClass(t, err, samlprotocol.Invalid, "")
		})
	}
}

// The issuer that a message claims is read within the limits of documents.
func TestIssuer(t *testing.T) {
	issuer := func(document string) (string, error) {
		m, err := samlprotocol.ReadForm(samltest.Form("SAMLRequest", document))
		if err != nil {
			t.Fatal(err)
		}
		return m.Issuer()
	}
	if got, err := issuer(requestXML("", "")); got != testSP || err != nil {
		t.Error(got, err)
	}
	element := `<saml:Issuer>` + testSP + `</saml:Issuer>`
	for name, document := range map[string]string{
		"none": strings.Replace(requestXML("", ""), element, "", 1), "two": requestXML("", element), "nested": strings.Replace(requestXML("", "<a>"+element+"</a>"), element, "", 1),
		"empty": strings.Replace(requestXML("", ""), testSP, "", 1), "long": strings.Replace(requestXML("", ""), testSP, strings.Repeat("x", samlprotocol.MaxText+1), 1),
		"document type": "<!DOCTYPE x>" + requestXML("", ""), "not XML": "x", "no document": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := issuer(document)
			wantClass(t, err, samlprotocol.Invalid, "")
		})
	}
}

// A response to a service provider is not accepted by another one, and not as another response.
func TestResponseOfAnother(t *testing.T) {
	p, sp := testProvider(), registered()
	a := relying(t, p)
	b := relying(t, p)
	b.EntityID, b.ACS = "https://other.example.com", "https://other.example.com/acs"
	a.AllowIDPInitiated, b.AllowIDPInitiated = true, true
	answer, err := p.Respond(sp, identityprovider.Unsolicited(sp, ""), testAssertion(), samltest.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Finish(nil, answer.Form, samltest.Now); err != nil {
		t.Fatal(err)
	}
	_, err = b.Finish(nil, answer.Form, samltest.Now)
	wantClass(t, err, samlprotocol.Invalid, "Destination")
	b.ACS = a.ACS
	_, err = b.Finish(nil, answer.Form, samltest.Now)
	wantClass(t, err, samlprotocol.Invalid, "audience")
	changed := strings.Replace(documentOf(t, answer), ">ann<", ">bob<", 1)
	_, err = a.Finish(nil, samltest.Form("SAMLResponse", changed), samltest.Now)
	wantClass(t, err, samlprotocol.Invalid, "signature")
}
