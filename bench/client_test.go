package bench

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
)

// listening serves HTTP until the test ends, and returns the URL.
func listening(t testing.TB, handler fasthttp.RequestHandler) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := fasthttp.Server{Handler: handler}
	go server.Serve(listener)
	t.Cleanup(func() { server.Shutdown() })
	return "http://" + strings.Replace(listener.Addr().String(), "127.0.0.1", "tenant.localhost", 1)
}

// TestClient reads whole answers, and reports those that are errors.
func TestClient(t *testing.T) {
	var requests atomic.Int64
	url := listening(t, func(r *fasthttp.RequestCtx) {
		requests.Add(1)
		if string(r.Path()) == "/missing" {
			r.Error("no such path", http.StatusNotFound)
			return
		}
		_, _ = r.WriteString(strings.Join([]string{
			string(r.Method()), string(r.RequestURI()), string(r.Request.Header.Peek("Authorization")),
			string(r.Request.Header.ContentType()), string(r.PostBody()),
		}, " "))
	})
	c := NewClient()
	var answer bytes.Buffer
	if err := c.Send(t.Context(), http.MethodPatch, url+"/a%2Fb?c=d", "secret", []byte("{}"), &answer); err != nil {
		t.Fatal(err)
	}
	if want := "PATCH /a%2Fb?c=d Bearer secret application/json {}"; answer.String() != want {
		t.Errorf("the server got %q, want %q", answer.String(), want)
	}
	answer.Reset()
	err := c.Send(t.Context(), http.MethodPost, url+"/missing", "", nil, &answer)
	if err == nil || !strings.HasSuffix(err.Error(), "/missing: 404 Not Found: no such path") {
		t.Errorf("a status of 404 is %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.Send(ended, http.MethodPost, url, "", nil, &answer); err == nil || requests.Load() != 2 {
		t.Errorf("after its context: %v and %d requests, want an error and 2", err, requests.Load())
	}
}

// BenchmarkClients sends requests, 16 at once, to a server that does next to nothing: what a
// client costs.
func BenchmarkClients(b *testing.B) {
	url := listening(b, func(r *fasthttp.RequestCtx) { r.SetBodyString(`{"data":{}}`) })
	body, token := bytes.Repeat([]byte("x"), 200), strings.Repeat("t", 900)
	run := func(name string, call func(answer *bytes.Buffer) error) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				var answer bytes.Buffer
				for pb.Next() {
					answer.Reset()
					if err := call(&answer); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	lean := NewClient()
	run("fasthttp", func(answer *bytes.Buffer) error {
		return lean.Send(context.Background(), http.MethodPost, url, token, body, answer)
	})
	h := newHTTP(url, token, 16)
	run("net-http", func(answer *bytes.Buffer) error {
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
		return h.do(req, answer)
	})
}
