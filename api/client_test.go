package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"stonetown/api/control"
	"stonetown/api/openapi"
	"stonetown/oauth/dpop/dpoptest"
)

// document and controlDocument are the OpenAPI documents of tenants and of the control plane,
// parsed by an independent library, and the responses that tests have seen.
var (
	document        = sync.OnceValue(func() *contract { return newContract(openapi.DataPlane) })
	controlDocument = sync.OnceValue(func() *contract { return newContract(control.Document) })
)

func contracts() []*contract { return []*contract{document(), controlDocument()} }

func newContract(d openapi.Document) *contract {
	doc, err := openapi3.NewLoader().LoadFromData(d.YAML)
	if err != nil {
		panic(err)
	}
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.JSONBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/samlmetadata+xml", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/token-introspection+jwt", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/jwt", openapi3filter.PlainBodyDecoder)
	doc.Servers = nil // tests choose the host
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return &contract{doc: doc, router: router, seen: map[string]bool{}}
}

type contract struct {
	doc    *openapi3.T
	router routers.Router

	mu   sync.Mutex
	seen map[string]bool // "operation status" and "operation status code"
}

// unseen lists the responses and the error codes of operations that no test has seen.
func (d *contract) unseen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var missing []string
	for _, item := range d.doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if key := op.OperationID + " " + status; status < "4" && !d.seen[key] {
					missing = append(missing, key)
				}
			}
			for status, codes := range errorCodes(op) {
				for _, code := range codes {
					if key := op.OperationID + " " + status + " " + code; !d.seen[key] {
						missing = append(missing, key)
					}
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// errorCodes are the codes that the document lists at the operation itself, by status.
func errorCodes(op *openapi3.Operation) map[string][]string {
	codes := map[string][]string{}
	listed, _ := op.Extensions["x-error-codes"].(map[string]any)
	for status, list := range listed {
		codes[status] = stringsOf(list)
	}
	return codes
}

func stringsOf(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		out = append(out, item.(string))
	}
	return out
}

// client sends requests and validates every response by the document.
type client struct {
	server *httptest.Server
	host   string
	token  string
	key    *dpoptest.Key // of which every request has a proof; nil: none has
}

// base is the base URL of the client's tenant.
func (c *client) base() string { return "https://" + c.host }

// name is the name of the client's tenant.
func (c *client) name() string { return strings.TrimSuffix(c.host, ".test") }

// answer is a response that the document allows.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// data is the answer's data, if it is an object.
func (a answer) data() map[string]any { d, _ := a.body["data"].(map[string]any); return d }

// list is the answer's data, if it is an array.
func (a answer) list() []any { d, _ := a.body["data"].([]any); return d }

func (a answer) meta(name string) any {
	m, _ := a.body["meta"].(map[string]any)
	return m[name]
}

func (a answer) code() string {
	if e, ok := a.body["error"].(map[string]any); ok { // of the control plane
		s, _ := e["code"].(string)
		return s
	}
	s, _ := a.body["error"].(string)
	return s
}

func (a answer) details() map[string]any { d, _ := a.body["details"].(map[string]any); return d }

// do sends a JSON request; a body that is a string is sent unchanged.
func (c *client) do(t testing.TB, method, target string, body any) answer {
	t.Helper()
	var text []byte
	header := http.Header{}
	if body != nil {
		header.Set("Content-Type", "application/json")
		if s, ok := body.(string); ok {
			text = []byte(s)
		} else {
			var err error
			if text, err = json.Marshal(body); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c.send(t, method, target, header, text)
}

// lines are the objects of an answer of many lines.
func (a answer) lines(t testing.TB) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for text := range strings.Lines(a.text) {
		lines = append(lines, parse(t, text).(map[string]any))
	}
	return lines
}

// want sends a request and requires a status and, for an error, its code.
func (c *client) want(t testing.TB, status int, code, method, target string, body any) answer {
	t.Helper()
	a := c.do(t, method, target, body)
	if a.status != status || a.code() != code {
		t.Fatalf("%s %s: %d %q, want %d %q\n%s", method, target, a.status, a.code(), status, code, a.text)
	}
	return a
}

func (c *client) send(t testing.TB, method, target string, header http.Header, body []byte) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, c.server.URL+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = c.host
	for name, values := range header {
		req.Header[name] = values
	}
	scheme := "Bearer "
	if c.key != nil {
		scheme = "DPoP "
		if req.Header["Dpop"] == nil {
			req.Header.Set("DPoP", c.key.Proof(t, method, "https://"+c.host+req.URL.EscapedPath(), c.token, nil))
		}
	}
	if c.token != "" && req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", scheme+c.token)
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, text: string(text)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") && len(text) > 0 {
		if err := json.Unmarshal(text, &a.body); err != nil {
			t.Fatalf("%s %s: body is not JSON: %v\n%s", method, target, err, text)
		}
	}
	if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil && req.Header.Get("Content-Encoding") == "gzip" {
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	c.contract(req).judge(t, req, body, a)
	return a
}

// controlHost is the host of the control plane.
const controlHost = "control.test"

// contract returns the document that has the path of a request: at the address of the control plane
// that is its own, or that of tenants for the operations that both serve.
func (c *client) contract(req *http.Request) *contract {
	if c.host != controlHost {
		return document()
	}
	for _, method := range []string{"GET", "POST", "PATCH", "DELETE"} {
		asked := req.Clone(context.Background())
		asked.Method, asked.URL.Host, asked.URL.Scheme = method, "", ""
		if route, _, err := document().router.FindRoute(asked); err == nil && isShared(route.Path, route.Operation) {
			return document()
		}
	}
	return controlDocument()
}

// isShared reports whether an operation of tenants is served at the address of the control plane,
// too.
func isShared(path string, op *openapi3.Operation) bool {
	shared := []string{"auth", "me", "authorization", "oauth2", "userinfo", "discovery"}
	return slices.Contains(shared, op.Tags[0]) && !strings.HasPrefix(path, "/saml/")
}

// raw sends a request and returns the header of the response without validation.
func (c *client) raw(t testing.TB, method, target string, header http.Header, body string) http.Header {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, c.server.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header = c.host, header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.Header
}

// judge validates a request and its response by the document.
func (d *contract) judge(t testing.TB, req *http.Request, body []byte, a answer) {
	t.Helper()
	id := a.header.Get("X-Request-Id")
	if len(id) != len("req_")+26 {
		t.Errorf("%s %s: X-Request-Id is %q", req.Method, req.URL, id)
	}
	if a.body != nil && a.header.Get("Idempotent-Replayed") == "" { // else the body has the first request's
		meta, _ := a.body["meta"].(map[string]any)
		if inBody, ok := a.body["request_id"]; ok && inBody != id {
			t.Errorf("%s %s: request_id is %q, the header says %q", req.Method, req.URL, inBody, id)
		}
		if inMeta, ok := meta["request_id"]; ok && inMeta != id {
			t.Errorf("%s %s: meta.request_id is %q, the header says %q", req.Method, req.URL, inMeta, id)
		}
	}
	if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Cache-Control") == "" {
		t.Errorf("%s %s: security headers are missing: %v", req.Method, req.URL, a.header)
	}

	asked := req.Clone(context.Background())
	asked.Body, asked.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	asked.URL.Host, asked.URL.Scheme = "", ""
	if asked.Method == http.MethodHead {
		asked.Method = http.MethodGet
	}
	route, variables, err := d.router.FindRoute(asked)
	if err != nil {
		ofControl := req.Host == controlHost && (a.status == 404 && a.code() == "NOT_FOUND" || a.status == 405 && a.code() == "BAD_REQUEST")
		if a.code() != "not_found" && a.code() != "method_not_allowed" && !ofControl {
			t.Errorf("%s %s: the document has no such operation, the answer was %d %s", req.Method, req.URL, a.status, a.text)
		}
		return
	}
	for name, value := range variables { // the library leaves them as they were sent
		if text, err := url.PathUnescape(value); err == nil {
			variables[name] = text
		}
	}
	op := route.Operation
	input := &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: variables, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true},
	}
	if a.status < 400 {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			t.Errorf("%s %s was accepted with %d although the document forbids it: %v", req.Method, req.URL, a.status, err)
		}
	}
	if req.Method != http.MethodHead {
		response := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: input, Status: a.status, Header: a.header,
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		}
		bodies := []string{a.text}
		if a.header.Get("Content-Type") == "application/x-ndjson" { // the document describes a line
			bodies = slices.Collect(strings.Lines(a.text))
		}
		for _, text := range bodies {
			response.SetBodyBytes([]byte(text))
			if err := openapi3filter.ValidateResponse(context.Background(), response); err != nil {
				t.Errorf("%s %s: the document does not allow the answer %d %s: %v", req.Method, req.URL, a.status, text, err)
			}
		}
	}
	status := strconv.Itoa(a.status)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[op.OperationID+" "+status] = true
	documented := op.Responses.Value(status)
	if documented == nil {
		t.Errorf("%s: status %s is not documented", op.OperationID, status)
		return
	}
	if a.status >= 400 && req.Method != http.MethodHead && !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") { // pages speak to people
		d.seen[op.OperationID+" "+status+" "+a.code()] = true
		allowed := append(stringsOf(documented.Value.Extensions["x-error-codes"]), errorCodes(op)[status]...)
		if !slices.Contains(allowed, a.code()) {
			t.Errorf("%s: code %q is not documented for status %s, only %v", op.OperationID, a.code(), status, allowed)
		}
	}
}

// unjudged sends JSON, or nothing, and returns the status of the response without validation.
func (c *client) unjudged(t testing.TB, method, target, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, c.server.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = c.host
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}
