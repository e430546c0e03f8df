package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxAnswer     = 64 << 20 // bytes; far more than the largest page
	maxUnheard    = 3        // repetitions of a request that the network lost
	firstPause    = 100 * time.Millisecond
	longestPause  = 5 * time.Second
	codeInProcess = "idempotency_in_progress"
)

// errNotOurs is returned if another program answers at the URL of the server.
var errNotOurs = errors.New("the response is not from Stonetown: check the server's URL")

// errIncomplete is returned if the last line of a response is missing.
var errIncomplete = errors.New("the server ended the response before the answer")

// request is one call of the API.
type request struct {
	method string
	path   string // escaped, below the base URL
	query  url.Values
	body   any  // as JSON, or [Lines]; nil: none
	asks   bool // changes nothing, although the method is POST
	// detached: the answer is from a state of the caller's choice, and not under [WithConsistency].
	detached bool
	version  *int // of the consistency's token that the request has; nil: it has none
	// progress, if not nil, is called with the lines of a response of several lines; the answer
	// is the line with data.
	progress func(line []byte)
}

// reply is a successful response.
type reply struct {
	status int
	data   json.RawMessage
	meta   struct {
		NextCursor       string `json:"next_cursor"`
		ConsistencyToken string `json:"consistency_token"`
		HistoryEnd              // of a history
	}
}

// do sends a request until it has a response or patience ends.
func (c *Client) do(ctx context.Context, r request) (reply, error) {
	var body []byte
	if lines, ok := r.body.(Lines); ok {
		body = lines
	} else if r.body != nil {
		var err error
		if body, err = encode(r.body); err != nil {
			return reply{}, err
		}
	}
	// All attempts have the same key, so that the request is executed once. The body is in
	// memory, so that it can be sent again.
	key := ""
	if r.method != http.MethodGet && !r.asks {
		key = rand.Text()
	}
	_, version := of(ctx).begin()
	if r.version != nil {
		version = *r.version
	}
	p := pauses{until: time.Now().Add(c.patience)}
	renewed := false
	for {
		token, err := c.tokens.get(ctx)
		if err == nil {
			var answer reply
			if answer, err = c.try(ctx, r, body, key, token); err == nil {
				if !r.detached {
					of(ctx).end(version, answer.meta.ConsistencyToken, key != "")
				}
				return answer, nil
			}
			refused, ok := errors.AsType[*Error](err)
			if ok && refused.Status == http.StatusUnauthorized && !renewed {
				renewed = true // revoked, or signed with a removed key
				c.tokens.forget(token)
				continue
			}
		}
		pause, again := p.after(err)
		if !again || !sleep(ctx, pause) {
			return reply{}, err
		}
	}
}

func (c *Client) try(ctx context.Context, r request, body []byte, key, token string) (reply, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	if _, lines := r.body.(Lines); lines {
		req.Header.Set("Content-Type", "application/x-ndjson")
	} else if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	answer := io.LimitReader(resp.Body, maxAnswer+1)
	var text []byte
	if r.progress != nil && resp.StatusCode == http.StatusOK {
		text, err = readLines(answer, r.progress)
	} else {
		text, err = io.ReadAll(answer)
	}
	if errors.Is(err, errIncomplete) {
		return reply{}, err
	}
	if err != nil {
		return reply{}, &url.Error{Op: r.method, URL: target, Err: err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return reply{}, errorOf(resp.StatusCode, resp.Header, text)
	}
	c.warnings.of(resp.Header)
	return replyOf(resp, text)
}

// readLines returns the line with data, and passes those before it on.
func readLines(r io.Reader, progress func(line []byte)) ([]byte, error) {
	for lines := bufio.NewReader(r); ; {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil, errIncomplete
		}
		if err != nil {
			return nil, err
		}
		var line struct{ Data json.RawMessage }
		if json.Unmarshal(text, &line) != nil || line.Data != nil {
			return text, nil
		}
		progress(text)
	}
}

func replyOf(resp *http.Response, text []byte) (reply, error) {
	answer := reply{status: resp.StatusCode}
	if resp.StatusCode == http.StatusNoContent {
		answer.meta.ConsistencyToken = resp.Header.Get("X-Consistency-Token")
		return answer, nil
	}
	envelope := struct {
		Data json.RawMessage `json:"data"`
		Meta any             `json:"meta"`
	}{Meta: &answer.meta}
	if len(text) > maxAnswer {
		return reply{}, fmt.Errorf("the response has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(text, &envelope); err != nil || envelope.Data == nil {
		return reply{}, errNotOurs
	}
	answer.data = envelope.Data
	return answer, nil
}

// call is do, and decodes the response.
func call[T any](ctx context.Context, c *Client, r request) (data T, answer reply, err error) {
	if answer, err = c.do(ctx, r); err != nil {
		return data, answer, err
	}
	if err := json.Unmarshal(answer.data, &data); err != nil {
		return data, answer, fmt.Errorf("decode the response: %w", err)
	}
	return data, answer, nil
}

// encode does not escape <, > and &.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// pauses decides whether and when a request is sent again.
type pauses struct {
	until   time.Time
	times   int
	unheard int
}

// after returns the pause after a failure, and whether to try again.
func (p *pauses) after(err error) (time.Duration, bool) {
	pause := min(firstPause<<min(p.times, 10), longestPause)
	p.times++
	if refused, ok := errors.AsType[*Error](err); ok {
		busy := refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable
		if !busy && refused.Code != codeInProcess {
			return 0, false
		}
		if refused.retryAfter > 0 {
			pause = refused.retryAfter
		}
	} else {
		p.unheard++
		if p.unheard > maxUnheard || !isLost(err) {
			return 0, false
		}
	}
	pause += mathrand.N(pause / 4) // concurrent calls should not be repeated at the same time
	return pause, !time.Now().Add(pause).After(p.until)
}

// isLost reports whether the network failed in a way that can be temporary.
func isLost(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return false
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// sleep reports whether it slept for the whole time.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
