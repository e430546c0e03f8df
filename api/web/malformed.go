package web

import (
	"bytes"
	"fmt"
	"net"

	"github.com/go-json-experiment/json"

	"stonetown/internal/id"
)

// Listen replaces net/http's own responses to malformed requests, which are plain text, by
// errors of the API. Such a request reaches no handler, and net/http has no hook for it, so
// the response is recognized by its head when it is written; no handler writes this head.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return conn{tcp}, err
	}
	return c, err
}

// conn is a TCP connection with all its methods.
type conn struct{ *net.TCPConn }

func (c conn) Write(p []byte) (int, error) {
	answer := restated(p)
	if answer == nil {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plain is the head of net/http's own errors after the status line (errorHeaders there).
var plain = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

var (
	http11 = []byte("HTTP/1.1 ")
	// expectation is the error that net/http writes like an ordinary response.
	expectation = []byte("HTTP/1.1 417 Expectation Failed\r\n")
)

// unreadable are the codes and messages of these errors, by status.
var unreadable = map[string][2]string{
	"400": {"bad_request", "the request is not valid HTTP"},
	"417": {"expectation_failed", "the only supported expectation is 100-continue"},
	"431": {"headers_too_large", "the request header is too large"},
	"501": {"not_implemented", "the transfer encoding is not supported"},
	"505": {"http_version_not_supported", "the HTTP version is not supported"},
}

// restated returns an error of net/http in the form of the API, and nil for other responses.
func restated(p []byte) []byte {
	head, _, ok := bytes.Cut(p, plain)
	if !ok && bytes.HasPrefix(p, expectation) {
		head, _, ok = bytes.Cut(p, []byte("\r\n"))
	}
	status, known := bytes.CutPrefix(head, http11)
	if !ok || !known || bytes.IndexByte(head, '\n') >= 0 || len(status) < 3 {
		return nil
	}
	said, known := unreadable[string(status[:3])]
	if !known {
		return nil
	}
	message := said[1]
	// The text after the colon is the detail: "400 Bad Request: malformed Host header".
	if _, more, ok := bytes.Cut(status, []byte(": ")); ok {
		status = status[:len(status)-len(more)-2]
		message += ": " + string(more)
	}
	requestID := id.OfRequest()
	body, err := json.Marshal((&Error{Code: said[0], Message: message}).Body(requestID), json.Deterministic(true))
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nCache-Control: no-store\r\nContent-Length: %d\r\nContent-Type: application/json\r\n"+
		"Connection: close\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n\r\n%s", status, len(body), requestID, body)
}
