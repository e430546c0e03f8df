package web

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestUnreadable sends malformed requests, which reach no handler.
func TestUnreadable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		MaxHeaderBytes: 4 << 10, ReadHeaderTimeout: 10 * time.Second, DisableGeneralOptionsHandler: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "HTTP/1.1 400 "+string(plain), http.StatusTeapot) // of no concern, whatever it says
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(Listen(l)) }()
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-done
	}()
	for name, tc := range map[string]struct {
		request string
		status  int
		code    string
		message string
	}{
		"no host":           {"GET / HTTP/1.1\r\n\r\n", 400, "bad_request", "the request is not valid HTTP: missing required Host header"},
		"malformed host":    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "bad_request", "the request is not valid HTTP: malformed Host header"},
		"two hosts":         {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_request", "the request is not valid HTTP"},
		"no HTTP":           {"BAD\r\n\r\n", 400, "bad_request", "the request is not valid HTTP"},
		"malformed path":    {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request", "the request is not valid HTTP"},
		"malformed header":  {"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n", 400, "bad_request", "the request is not valid HTTP: invalid header name"},
		"malformed length":  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, "bad_request", "the request is not valid HTTP"},
		"large head":        {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", 431, "headers_too_large", "the request header is too large"},
		"transfer encoding": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not_implemented", "the transfer encoding is not supported"},
		"version":           {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "http_version_not_supported", "the HTTP version is not supported: unsupported protocol version"},
		"expectation":       {"POST / HTTP/1.1\r\nHost: a\r\nExpect: a pony\r\nContent-Length: 2\r\n\r\n{}", 417, "expectation_failed", "the only supported expectation is 100-continue"},
		"a good request":    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 418, "", ""},
		"options of all":    {"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 418, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, tc.request); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != tc.status {
				t.Errorf("%d %s, want %d", res.StatusCode, text, tc.status)
			}
			if tc.code == "" {
				return
			}
			var got errorBody
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var body struct {
				RequestID string `json:"request_id"`
				Details   any    `json:"details"`
			}
			if err := json.Unmarshal(text, &body); err != nil {
				t.Fatal(err)
			}
			id := res.Header.Get("X-Request-Id")
			if got.Error != tc.code || got.Message != tc.message || body.Details == nil || body.RequestID != id || !strings.HasPrefix(id, "req_") ||
				res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s\n%v", text, res.Header)
			}
		})
	}
}
