package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Client sends requests of JSON and reads whole answers. It is fasthttp's, because a client shares
// the processors with the server that it measures, and that of net/http takes more of their time:
// BenchmarkClients compares them. A Client is safe for concurrent use.
type Client struct{ http fasthttp.Client }

// answerTimeout is the longest time between a request and its answer. It ends a call that ctx
// cannot: one of a server that no longer answers.
const answerTimeout = time.Minute

// NewClient returns a client without connections. It makes as many as there are calls at once.
func NewClient() *Client {
	return &Client{fasthttp.Client{
		Dial: func(address string) (net.Conn, error) {
			return net.Dial("tcp", localAddress(address))
		},
		ReadTimeout:              answerTimeout,
		MaxConnsPerHost:          1 << 16,
		DisablePathNormalizing:   true,
		NoDefaultUserAgentHeader: true,
	}}
}

// localAddress replaces a name under localhost: RFC 6761 §6.3 says that such names are this
// machine, but not every resolver implements it.
func localAddress(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// Send sends a body, with a bearer token unless that is empty, and appends the answer to a buffer.
// A status of 300 or more is an error. A ctx that ends after the request was sent has no effect.
func (c *Client) Send(ctx context.Context, method, url, token string, body []byte, answer *bytes.Buffer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(res)
	req.Header.SetMethod(method)
	req.SetRequestURI(url)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.SetContentType("application/json")
	req.SetBodyRaw(body)
	if err := c.http.Do(req, res); err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	answer.Write(res.Body())
	if status := res.StatusCode(); status >= 300 {
		return fmt.Errorf("%s %s: %d %s: %.300s", method, url, status, http.StatusText(status), answer)
	}
	return nil
}
