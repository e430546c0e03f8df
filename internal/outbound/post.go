package outbound

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Post delivers a body to a URL. It succeeds if the headers of a response with a status of
// 2xx arrive within 10 seconds of the start of the dial. The body of the response does not
// matter: at most limit bytes of it are read, for at most 5 more seconds, and a body that is
// longer, slower, broken or endless is returned as far as it arrived.
//
// Errors are [*Error]; those of the class [Status] come with the answer. Only if ctx is
// canceled before the headers arrive, the error is that of ctx. header is not modified.
//
// The receiver may get the request twice: a kept connection that ends before a byte of the
// response arrives is replaced once by a new one.
func (c *Client) Post(ctx context.Context, to string, header http.Header, body []byte, limit int64) (Answer, error) {
	if err := c.CheckURL(to); err != nil {
		return Answer{}, err
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(c.headerTime, cancel)
	defer timer.Stop()

	header = header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set("User-Agent", c.userAgent)
	var used connectionUse
	res, err := post(used.trace(limited), c.http, to, header, body)
	if err != nil && limited.Err() == nil && used.ended(err) {
		res, err = post(limited, c.fresh, to, header, body)
	}
	if err != nil {
		return Answer{}, failure(ctx, limited, err)
	}
	defer res.Body.Close()
	timer.Reset(c.bodyTime)
	a, _ := read(res, limit)
	if limited.Err() != nil {
		a.Truncated = true // even with an end: the peer may end the body when the client closes
	}
	if a.Status < 200 || a.Status > 299 {
		return a, &Error{Class: Status, Status: a.Status}
	}
	return a, nil
}

func post(ctx context.Context, client *http.Client, to string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Class: Invalid, err: err}
	}
	req.Header = header
	return client.Do(req)
}

// connectionUse records what became of a request on a connection.
//
// A peer may close a kept connection at any time, and a request may be on its way then. It
// fails although the receiver works, and would cost an attempt of a delivery. Package http
// sends a POST again only if it had written nothing, or if HTTP/2 tells that the peer did not
// process it: it cannot know whether repeating one is safe (RFC 9110 §9.2.2). A delivery is,
// because it is made at least once and receivers deduplicate it. So Post sends it again if the
// connection had served a request before and ended without a byte of a response. The second
// connection is a new one, so there is no third.
type connectionUse struct {
	reused, answered atomic.Bool
}

func (u *connectionUse) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(info httptrace.GotConnInfo) { u.reused.Store(info.Reused) },
		GotFirstResponseByte: func() { u.answered.Store(true) },
	})
}

// ended reports whether the request failed because a kept connection ended.
func (u *connectionUse) ended(err error) bool {
	var reset streamError // of one request, on an HTTP/2 connection that goes on
	return u.reused.Load() && !u.answered.Load() && !errors.As(err, &reset)
}

// streamError has the fields of the unexported HTTP/2 error of package http, which converts
// itself to such a type for [errors.As].
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "HTTP/2 stream error" }
