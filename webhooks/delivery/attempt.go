package delivery

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stonetown/internal/document"
	"stonetown/internal/fair"
	"stonetown/internal/outbound"
	"stonetown/webhooks/signature"
	"stonetown/webhooks/subscription"
)

// Attempt is one attempt of a delivery.
type Attempt struct {
	Number     int                `json:"number"` // from 1
	StartedAt  document.Timestamp `json:"started_at"`
	DurationMS int64              `json:"duration_ms"`
	Status     *int               `json:"status"` // of the response; nil: there was none
	// Error is the class of the failure, one of those of package outbound; nil after a success.
	Error *string `json:"error"`
}

// Response is the response of a receiver, as it is stored.
type Response struct {
	Status    int                 `json:"status"`
	Headers   map[string][]string `json:"headers"` // without those that may have secrets
	Body      string              `json:"body"`    // bytes that are not UTF-8 are replaced
	Truncated bool                `json:"truncated"`
}

// Sender sends a request to a receiver. [outbound.Client] implements it.
type Sender interface {
	// Post sends a body, and reads at most limit bytes of the body of the response; see
	// [outbound.Client.Post].
	Post(ctx context.Context, url string, header http.Header, body []byte, limit int64) (outbound.Answer, error)
}

const (
	maxBody        = 256 << 10 // of a request, in bytes
	maxRecorded    = 16 << 10  // of the body of a response, in bytes
	maxHeaders     = 50        // stored of a response
	maxHeaderBytes = 8 << 10
)

// secretHeaders are not stored.
var secretHeaders = map[string]bool{
	"Set-Cookie": true, "Set-Cookie2": true, "Authorization": true, "Proxy-Authorization": true, "Cookie": true,
	"Www-Authenticate": true, "Proxy-Authenticate": true, "Authentication-Info": true,
}

// result is the result of an attempt.
type result struct {
	Attempt
	response *Response
	asked    time.Duration // by Retry-After
}

func (r result) ok() bool { return r.Error == nil }

func (r result) gone() bool { return r.Status != nil && *r.Status == http.StatusGone }

// attempt makes one attempt of a delivery and stores the result.
func (l *lane) attempt(ctx context.Context, d *Delivery) {
	q := l.queue
	gate := q.places
	if l.isFailing() {
		gate = q.failing
	}
	place, err := gate.Enter(ctx, fair.Caller{Tenant: l.key.tenantID, ID: l.key.subscriptionID})
	if err != nil {
		l.back(d)
		return
	}
	r, err := l.sendOne(ctx, d)
	place.Leave()
	switch {
	case errors.Is(err, subscription.ErrNotFound):
		l.stop()
		l.back(d)
		return
	case err != nil:
		if !errors.Is(err, errNotNow) {
			l.failed(ctx, "send webhook delivery", err)
		}
		l.back(d)
		return
	}
	if !r.ok() && ctx.Err() != nil { // the stop of the process has ended the attempt
		l.back(d)
		return
	}
	l.sent(r)
	l.record(ctx, d, r)
	l.forget(d)
}

// errNotNow: the lease may end before an attempt does, or the subscription is not enabled.
var errNotNow = errors.New("the attempt cannot begin now")

// sendOne signs a delivery with the secrets of now, and sends it.
func (l *lane) sendOne(ctx context.Context, d *Delivery) (r result, err error) {
	q := l.queue
	s, err := l.current(ctx)
	if err != nil {
		return r, err
	}
	if s.State != subscription.Enabled || q.clock().Add(attemptTime).After(l.leaseEnd()) || l.isEnded() {
		return r, errNotNow
	}
	body, err := q.body(ctx, d)
	if err != nil {
		return r, err
	}
	now := q.clock()
	secret, previous, err := s.Secrets(q.seal, now)
	if err != nil {
		return r, err
	}
	header := http.Header{}
	signature.Sign(header, d.EventID, now, body, secret, previous)
	header.Set("Content-Type", "application/json")
	header.Set(signature.HeaderEvent, d.EventType)
	header.Set(signature.HeaderDelivery, d.ID)
	header.Set(signature.HeaderAttempt, strconv.Itoa(d.next()))
	return q.send(ctx, s.URL, header, body, d.next(), secret, previous), nil
}

// body returns the body of a delivery, which is not modified.
func (q *Queue) body(ctx context.Context, d *Delivery) ([]byte, error) {
	if d.body != "" {
		return []byte(d.body), nil
	}
	t, err := q.tenant(ctx, d.TenantID)
	if err != nil {
		return nil, err
	}
	if d.operations != nil {
		return bodyOf(t, d.event.Event, d.operations)
	}
	if made := d.event.body.Load(); made != nil {
		return *made, nil
	}
	body, err := bodyOf(t, d.event.Event, nil)
	if err == nil {
		d.event.body.Store(&body)
	}
	return body, err
}

func (l *lane) isFailing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures >= failingAfter
}

// sent notes the end of an attempt.
func (l *lane) sent(r result) {
	l.mu.Lock()
	l.active--
	class := AttemptClass{Failing: l.failures >= failingAfter}
	if r.ok() {
		l.failures = 0
		class.Result = "success"
	} else {
		l.failures++
		class.Result = *r.Error
	}
	l.mu.Unlock()
	l.queue.stats.count(class)
	l.wake.Send()
}

// send makes one attempt. body has been signed, with some secrets, for its headers.
func (q *Queue) send(ctx context.Context, url string, header http.Header, body []byte, number int, secrets ...signature.Secret) result {
	started := q.clock()
	r := result{Attempt: Attempt{Number: number, StartedAt: document.Timestamp(started)}}
	answer, err := q.sender.Post(ctx, url, header, body, maxRecorded)
	r.DurationMS = q.clock().Sub(started).Milliseconds()
	if answer.Status != 0 {
		r.Status = &answer.Status
		r.response = recorded(answer, secrets)
		r.asked = retryAfter(answer.Status, answer.Header, q.clock())
	}
	if err != nil {
		class := outbound.Connection
		if failed, ok := errors.AsType[*outbound.Error](err); ok {
			class = failed.Class
		}
		if class == outbound.Invalid { // a URL that was accepted under another configuration
			class = outbound.BlockedAddress
		}
		r.Error = new(string(class))
	}
	return r
}

// recorded returns the stored form of a response, without secrets: also the receiver's own
// secret is replaced, in case that it echoes the request or its configuration.
func recorded(answer outbound.Answer, secrets []signature.Secret) *Response {
	hide := func(text string) string {
		for _, secret := range secrets {
			if !secret.IsZero() {
				_, bare, _ := strings.Cut(secret.Text(), "_")
				text = strings.ReplaceAll(text, bare, "[secret]")
			}
		}
		return strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	r := &Response{Status: answer.Status, Headers: map[string][]string{}, Body: hide(string(answer.Body)), Truncated: answer.Truncated}
	size := 0
	for name, values := range answer.Header {
		if secretHeaders[name] {
			continue
		}
		for _, value := range values {
			if size += len(name) + len(value); size > maxHeaderBytes || len(r.Headers) >= maxHeaders {
				r.Truncated = true
				break
			}
			name := hide(name)
			r.Headers[name] = append(r.Headers[name], hide(value))
		}
	}
	return r
}
