package identityprovider_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/oauth/saml/identityprovider"
)

// Implementations that nobody here wrote read the time of the machine, so keys and assertions are of
// that time.

func currentProvider() *identityprovider.Provider {
	p := testProvider()
	p.Keys = []samlprotocol.Key{samltest.NewKey(idpKey().Private, time.Now())}
	return p
}

func currentServiceProvider() (identityprovider.ServiceProvider, samlprotocol.Key) {
	key, sp := samltest.NewKey(spKey().Private, time.Now()), registered()
	sp.Certificates = []*x509.Certificate{key.Certificate}
	sp.WantRequestsSigned = true
	return sp, key
}

func currentAssertion() identityprovider.Assertion {
	a := testAssertion()
	a.AuthnInstant, a.SessionEnds = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	return a
}

// forms are the selections of signatures and encryption.
var forms = []struct{ assertion, response, encrypt bool }{{true, false, false}, {false, true, false}, {true, true, false}, {true, false, true}, {true, true, true}}

// xmlsec1 verifies the signatures of responses, and decrypts assertions.
func TestXMLSec(t *testing.T) {
	keys := map[string]samlprotocol.Key{
		"rsa-sha256":   samltest.NewKey(idpKey().Private, time.Now()),
		"ecdsa-sha384": samltest.NewKey(samltest.ECDSA(elliptic.P384()).Private, time.Now()),
	}
	for method, key := range keys {
		for _, form := range forms {
			t.Run(fmt.Sprintf("%s %+v", method, form), func(t *testing.T) {
				p := testProvider()
				p.Keys = []samlprotocol.Key{key}
				sp, own := currentServiceProvider()
				sp.SignAssertion, sp.SignResponse, sp.Encrypt = form.assertion, form.response, form.encrypt
				answer, err := p.Respond(sp, identityprovider.Unsolicited(sp, ""), currentAssertion(), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				_, certificate := samltest.Files(t, key)
				document := documentOf(t, answer)
				if !strings.Contains(document, "xmldsig-more#"+method) && !form.encrypt {
					t.Error(document)
				}
				verify := func(element, document string) {
					t.Helper()
					samltest.XMLSec1(t, "--verify", "--pubkey-cert-pem", certificate,
						"--id-attr:ID", samlprotocol.ProtocolNS+":Response", "--id-attr:ID", samlprotocol.AssertionNS+":Assertion",
						"--node-xpath", "//*[local-name()='"+element+"']/*[local-name()='Signature']", samltest.File(t, "response.xml", []byte(document)))
				}
				if form.response {
					verify("Response", document)
				}
				if form.encrypt {
					private, _ := samltest.Files(t, own)
					document = string(samltest.XMLSec1(t, "--decrypt", "--privkey-pem", private, samltest.File(t, "encrypted.xml", []byte(document))))
				}
				if form.assertion {
					verify("Assertion", document)
				}
				if !strings.Contains(document, "ann@example.com") {
					t.Error(document)
				}
			})
		}
	}
}

// pysaml2Answer is the answer of testdata/serviceprovider.py to an operation; each has some of the
// members.
type pysaml2Answer struct {
	Metadata   string
	Message    samltest.Message
	Name       string
	Format     string
	Attributes map[string][]string
	Session    string
	Sessions   []string
	Context    string
	Status     string
	OK         bool
	RelayState string `json:"relay_state"`
}

// Users of this identity provider sign in and out at pysaml2.
func TestPysaml2(t *testing.T) {
	p := currentProvider()
	metadata, err := p.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	_, key := currentServiceProvider()
	private, certificate := samltest.Files(t, key)
	for _, form := range forms {
		t.Run(fmt.Sprintf("%+v", form), func(t *testing.T) {
			sp, _ := currentServiceProvider()
			sp.SignAssertion, sp.SignResponse, sp.Encrypt = form.assertion, form.response, form.encrypt
			peer := samltest.Start(t, samltest.Python(t), "testdata/serviceprovider.py")
			do := func(operation map[string]any) (answer pysaml2Answer) {
				t.Helper()
				peer.Do(operation, &answer)
				return answer
			}
			do(map[string]any{
				"entity": testSP, "acs": testACS, "slo": testSPSLO, "key": private, "certificate": certificate,
				"want_assertion_signed": form.assertion, "want_response_signed": form.response,
				"identity_provider": samltest.File(t, "idp.xml", metadata), "identity_provider_entity": testIDP, "identity_provider_slo": testSLO,
			})
			for _, binding := range []string{samlprotocol.Redirect, samlprotocol.Post} {
				begin := func() identityprovider.Request {
					t.Helper()
					message := do(map[string]any{"operation": "begin", "binding": binding, "context": secondOnce}).Message
					request, err := p.ReadRequest(sp, receive(t, samlprotocol.Message(message)), time.Now())
					if err != nil {
						t.Fatalf("%v: %s", message, detail(err))
					}
					if !request.Signed || !request.ForceAuthn || !slices.Equal(request.AuthnContexts, []string{secondOnce, multi}) || request.RelayState != "state" {
						t.Errorf("%+v", request)
					}
					return request
				}
				a := currentAssertion()
				a.AuthnContext = multi
				message, err := p.Respond(sp, begin(), a, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				got := do(map[string]any{"operation": "finish", "message": samltest.Message(message)})
				want := pysaml2Answer{
					Name: "ann", Format: identityprovider.Persistent, Session: "s1", Context: multi, RelayState: "state",
					Attributes: map[string][]string{
						"mail": {"ann@example.com"}, "eduPersonEntitlement": {"staff", `R&D <ops> "it's"`}, "empty": {}, "lines": got.Attributes["lines"],
					},
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if message, err = p.Refuse(sp, begin(), identityprovider.RequestDenied, time.Now()); err != nil {
					t.Fatal(err)
				}
				if got := do(map[string]any{"operation": "finish", "message": samltest.Message(message)}); got.Status != "StatusRequestDenied" {
					t.Errorf("%+v", got)
				}

				asked := do(map[string]any{"operation": "begin_logout", "binding": binding, "subject": a.NameID, "session": "s1"}).Message
				l, err := p.SingleLogout(sp).Read(receive(t, samlprotocol.Message(asked)), time.Now())
				if err != nil || l.Request.Subject != a.NameID || !slices.Equal(l.Request.SessionIndexes, []string{"s1"}) {
					t.Fatal(l, detail(err))
				}
				if message, err = p.SingleLogout(sp).Answer(*l.Request, l.RelayState, false, time.Now()); err != nil {
					t.Fatal(err)
				}
				if got := do(map[string]any{"operation": "finish_logout", "message": samltest.Message(message)}); !got.OK || got.RelayState != "state" {
					t.Errorf("%+v", got)
				}
				message, pending, err := p.SingleLogout(sp).Begin(a.NameID, "s1", time.Now())
				if err != nil {
					t.Fatal(err)
				}
				got = do(map[string]any{"operation": "answer_logout", "message": samltest.Message(message)})
				if got.Name != "ann" || !slices.Equal(got.Sessions, []string{"s1"}) {
					t.Errorf("%+v", got)
				}
				if l, err = p.SingleLogout(sp).Read(receive(t, samlprotocol.Message(got.Message)), time.Now()); err != nil {
					t.Fatal(err)
				}
				if complete, err := p.SingleLogout(sp).Finish(pending, l); !complete || err != nil {
					t.Error(complete, err)
				}
			}
		})
	}
}

// nodeSAML installs the packages of testdata/nodesaml in a copy of the folder, because npm writes to
// it, and returns its path.
func nodeSAML(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/nodesaml")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), samltest.Program(t, "npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return folder
}

// nodeAnswer is the answer of testdata/nodesaml/serviceprovider.mjs to an operation.
type nodeAnswer struct {
	Error     string
	Message   samltest.Message
	Profile   map[string]any
	LoggedOut bool `json:"logged_out"`
}

// Users of this identity provider sign in and out at node-saml.
func TestNodeSAML(t *testing.T) {
	folder := nodeSAML(t)
	p := currentProvider()
	_, idpCertificate := samltest.PEM(t, p.Keys[0])
	_, key := currentServiceProvider()
	private, certificate := samltest.PEM(t, key)
	for _, form := range forms {
		t.Run(fmt.Sprintf("%+v", form), func(t *testing.T) {
			sp, _ := currentServiceProvider()
			sp.SignAssertion, sp.SignResponse, sp.Encrypt = form.assertion, form.response, form.encrypt
			peer := samltest.Start(t, samltest.Program(t, "node"), folder+"/serviceprovider.mjs")
			do := func(operation map[string]any) (answer nodeAnswer) {
				t.Helper()
				if peer.Do(operation, &answer); answer.Error != "" {
					t.Fatal(answer.Error)
				}
				return answer
			}
			do(map[string]any{
				"issuer": testSP, "audience": testSP, "callbackUrl": testACS, "entryPoint": testSSO, "logoutUrl": testSLO, "idpIssuer": testIDP,
				"idpCert": string(idpCertificate), "privateKey": string(private), "publicCert": string(certificate), "decryptionPvk": string(private),
				"signatureAlgorithm": "sha256", "digestAlgorithm": "sha256", "identifierFormat": identityprovider.Persistent, "forceAuthn": true,
				"wantAssertionsSigned": form.assertion, "wantAuthnResponseSigned": form.response, "validateInResponseTo": "always",
				"authnContext": []string{password}, "acceptedClockSkewMs": 1000,
			})
			for _, post := range []bool{false, true} {
				message := do(map[string]any{"operation": "begin", "post": post}).Message
				request, err := p.ReadRequest(sp, receive(t, samlprotocol.Message(message)), time.Now())
				if err != nil {
					t.Fatalf("%v: %s", message, detail(err))
				}
				if !request.Signed || !request.ForceAuthn || !slices.Equal(request.AuthnContexts, []string{password}) || request.RelayState != "state" {
					t.Errorf("%+v", request)
				}
				answer, err := p.Respond(sp, request, currentAssertion(), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				profile := do(map[string]any{"operation": "finish", "message": samltest.Message(answer)}).Profile
				want := map[string]any{
					"issuer": testIDP, "nameID": "ann", "nameIDFormat": identityprovider.Persistent, "nameQualifier": testIDP, "spNameQualifier": testSP,
					"sessionIndex": "s1", "mail": "ann@example.com", "urn:oid:1.3.6.1.4.1.5923.1.1.1.7": []any{"staff", `R&D <ops> "it's"`},
				}
				for name, value := range want {
					if diff := cmp.Diff(value, profile[name]); diff != "" {
						t.Errorf("%s: %s", name, diff)
					}
				}

				asked := do(map[string]any{"operation": "begin_logout", "profile": profile}).Message
				l, err := p.SingleLogout(sp).Read(receive(t, samlprotocol.Message(asked)), time.Now())
				if err != nil || l.Request.Subject != currentAssertion().NameID || !slices.Equal(l.Request.SessionIndexes, []string{"s1"}) {
					t.Fatal(l, detail(err))
				}
				if answer, err = p.SingleLogout(sp).Answer(*l.Request, l.RelayState, false, time.Now()); err != nil {
					t.Fatal(err)
				}
				if got := do(map[string]any{"operation": "finish_logout", "message": samltest.Message(answer)}); !got.LoggedOut {
					t.Errorf("%+v", got)
				}
				begun, pending, err := p.SingleLogout(sp).Begin(currentAssertion().NameID, "s1", time.Now())
				if err != nil {
					t.Fatal(err)
				}
				got := do(map[string]any{"operation": "answer_logout", "message": samltest.Message(begun)})
				if got.Profile["nameID"] != "ann" || got.Profile["sessionIndex"] != "s1" {
					t.Errorf("%+v", got)
				}
				if l, err = p.SingleLogout(sp).Read(receive(t, samlprotocol.Message(got.Message)), time.Now()); err != nil {
					t.Fatal(err)
				}
				if complete, err := p.SingleLogout(sp).Finish(pending, l); !complete || err != nil {
					t.Error(complete, err)
				}
			}
		})
	}
}
