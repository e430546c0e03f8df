package main

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver receives spans by OTLP, as a collector does.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*wire.Span
	from  []*common.KeyValue // of the resource
}

func newReceiver(t *testing.T) *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		text, err := io.ReadAll(body)
		var in collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(text, &in)
		}
		if err != nil || req.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", req.URL, err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, of := range in.ResourceSpans {
			r.from = of.Resource.Attributes
			for _, scope := range of.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// named is a span with the parts that tests read.
type named struct {
	*wire.Span
	id, parent string
	attributes map[string]string
}

// trace returns the spans of a trace.
func (r *receiver) trace(id string) []named {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []named
	for _, s := range r.spans {
		if hex.EncodeToString(s.TraceId) == id {
			list = append(list, named{s, hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), values(s.Attributes)})
		}
	}
	return list
}

func values(list []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.Key] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_BoolValue:
			m[a.Key] = strconv.FormatBool(v.BoolValue)
		}
	}
	return m
}

// below returns the children of a span with a name, of which there is at least one.
func below(t *testing.T, trace []named, parent named, name string) named {
	t.Helper()
	var names []string
	for _, s := range trace {
		if s.parent == parent.id {
			if s.Name == name {
				return s
			}
			names = append(names, s.Name)
		}
	}
	t.Fatalf("%s has no child %s, but %q", parent.Name, name, names)
	return named{}
}

// A server sends the spans of its requests to a collector: in the trace of the caller, each
// below its parent. It passes the trace on in its own requests.
func TestTraces(t *testing.T) {
	collector := newReceiver(t)
	var mu sync.Mutex
	var passed []string
	breached := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		passed = append(passed, r.Header.Get("traceparent"))
	}))
	defer breached.Close()
	s := start(t, "--dev", "--data-dir", t.TempDir(), "--log-format", "json", "--access-log", "--trace-url", collector.URL+"/v1/traces", "--breached-passwords-url", breached.URL+"/range/")
	c := readJSON(t, s.config.bootstrapFile())
	token := s.token(c)
	send := func(traceparent, method, path, body string) (requestID string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = hostOf(t, c.BaseURL)
		req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Traceparent": {traceparent}}
		res, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if text, err := io.ReadAll(res.Body); res.StatusCode >= 400 {
			t.Fatalf("%s: %d %s %v", path, res.StatusCode, text, err)
		}
		return res.Header.Get("X-Request-Id")
	}
	const caller = "00f067aa0ba902b7"
	traceID := func(last string) string { return "4bf92f3577b34da6a3ce929d0e0e473" + last }
	in := func(last string) string { return "00-" + traceID(last) + "-" + caller + "-01" }
	send(in("1"), "POST", "/api/v1/users", `{"email":"hunter2@example.com","password":"correct horse battery"}`)
	send(in("2"), "POST", "/api/v1/resource-types", `{"name":"document","relations":[{"name":"viewer"}]}`)
	send(in("3"), "POST", "/api/v1/resources/document/hunter2%2Fplan/relations", `{"relation":"viewer","subject":{"type":"user","id":"hunter2-ann"}}`)
	checked := send(in("4"), "POST", "/api/v1/resources/check", `{"subject":{"type":"user","id":"hunter2-ann"},"action":"view","resource":{"type":"document","external_id":"hunter2/plan"}}`)
	own := send("00-bad", "GET", "/api/v1/resource-types/document?secret=hunter2", "")
	send("00-"+traceID("5")+"-"+caller+"-00", "GET", "/api/v1/resource-types/document", "")
	if err := s.wait(); err != nil { // wait sends the remaining spans
		t.Fatal(err)
	}

	root := func(id, name string) ([]named, named) {
		t.Helper()
		trace := collector.trace(id)
		for _, span := range trace {
			if span.parent == caller && span.Name == name && span.Kind == wire.Span_SPAN_KIND_SERVER {
				return trace, span
			}
		}
		t.Fatalf("trace %s has no span %s", id, name)
		return nil, named{}
	}
	// A user: an outgoing request, and a transaction with its statements.
	trace, created := root(traceID("1"), "createUser")
	asked := below(t, trace, created, "GET")
	if want := "00-" + traceID("1") + "-" + asked.id + "-01"; len(passed) != 1 || passed[0] != want || asked.attributes["server.address"] != "127.0.0.1" || asked.Kind != wire.Span_SPAN_KIND_CLIENT {
		t.Errorf("passed on %q, want %s", passed, want)
	}
	transaction := below(t, trace, created, "transaction")
	if !slices.ContainsFunc(trace, func(s named) bool { return s.parent == transaction.id }) {
		t.Error("a transaction has no statements")
	}
	// A write, a check.
	trace, written := root(traceID("3"), "createRelation")
	write := below(t, trace, written, "engine.write")
	below(t, trace, below(t, trace, below(t, trace, write, "tuplestore.commit"), "transaction"), "COMMIT")
	trace, check := root(traceID("4"), "check")
	for name, want := range map[string]string{
		"http.request.method": "POST", "http.route": "/api/v1/resources/check", "http.response.status_code": "200", "url.scheme": "http",
		"client.address": "127.0.0.1", "stonetown.tenant": c.TenantID, "stonetown.request_id": checked,
	} {
		if check.attributes[name] != want {
			t.Errorf("%s is %q, want %q", name, check.attributes[name], want)
		}
	}
	evaluated := below(t, trace, check, "engine.check").attributes
	if evaluated["stonetown.queries"] != "1" || evaluated["stonetown.revision"] == "" || evaluated["stonetown.resident"] == "" {
		t.Errorf("%v", evaluated)
	}
	if len(collector.trace(traceID("5"))) != 0 {
		t.Error("a trace that the caller does not record was recorded")
	}
	// One log line for each request has the ids of its span.
	var lines []map[string]any
	for line := range strings.Lines(s.log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry["msg"] == "request" {
			lines = append(lines, entry)
		}
	}
	at := slices.IndexFunc(lines, func(e map[string]any) bool { return e["request_id"] == checked })
	if at < 0 {
		t.Fatal("a request was not logged")
	}
	for name, want := range map[string]any{
		"trace_id": traceID("4"), "span_id": check.id, "method": "POST", "route": "/api/v1/resources/check", "status": 200.0, "tenant": c.TenantID,
		"client_ip": "127.0.0.1", "client_id": c.ClientID, "subject": c.ClientID, "operation": "check", "level": "INFO",
	} {
		if lines[at][name] != want {
			t.Errorf("log: %s is %v, want %v", name, lines[at][name], want)
		}
	}
	if bytes, _ := lines[at]["bytes"].(float64); bytes < 20 {
		t.Errorf("log: %v bytes", lines[at]["bytes"])
	}
	// An invalid context is ignored.
	ignored := slices.IndexFunc(lines, func(e map[string]any) bool { return e["request_id"] == own })
	if ignored < 0 || len(collector.trace(lines[ignored]["trace_id"].(string))) == 0 {
		t.Errorf("no trace of %s", own)
	}
	var all []string
	for _, span := range collector.spans {
		all = append(all, span.String())
	}
	for _, secret := range []string{"hunter2", "correct horse", token, c.ClientSecret} {
		if strings.Contains(strings.Join(all, "\n"), secret) || strings.Contains(s.log.String(), secret) {
			t.Errorf("%s is in a span or in the log", secret)
		}
	}
	if of := values(collector.from); of["service.name"] != "stonetown" || of["service.version"] != version() {
		t.Errorf("%v", of)
	}
}

// A collector that is down delays neither requests nor the end.
func TestTracesOfNobody(t *testing.T) {
	s := start(t, "--dev", "--data-dir", t.TempDir(), "--trace-url", "http://127.0.0.1:1/v1/traces")
	s.token(readJSON(t, s.config.bootstrapFile()))
	began := time.Now()
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if !strings.Contains(s.log.String(), "spans are lost") {
		t.Error(s.log.String())
	}
}

// Without access_log, requests are logged at debug level.
func TestAccessLogOff(t *testing.T) {
	s := start(t, "--dev", "--data-dir", t.TempDir())
	s.token(readJSON(t, s.config.bootstrapFile()))
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Contains(log, "level=INFO msg=request") || !strings.Contains(log, "level=DEBUG msg=request") {
		t.Error(s.log.String())
	}
}
