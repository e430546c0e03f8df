package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
	"stonetown/webhooks/signature"
)

const (
	// listenerName is the name of the subscription of webhooks listen.
	listenerName = "stonetown webhooks listen"
	// forwardTimeout bounds the response of the local program. A delivery takes no longer.
	forwardTimeout = 10 * time.Second
	// maxForwarded bounds the part of the local program's response that the server receives, in
	// bytes. It stores no more.
	maxForwarded = 16 << 10
	// unsubscribeTimeout bounds the deletion of the subscription when the command ends.
	unsubscribeTimeout = 5 * time.Second
)

func webhooksListenCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var forward string
	var events []string
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive the webhooks of a development server",
		Long: `Subscribes to the events of a tenant, verifies and prints each delivery, and forwards it
to a local program. The subscription is deleted when the command ends, with Ctrl-C.

A line has the time, the event type, the event id, the attempt, whether the signature is
verified, the status that the server receives, and the duration. With --output json it is
an object with all this and the whole body.

Deliveries are forwarded with their headers, so that the program can verify them, too:
its STONETOWN_WEBHOOK_SECRET is the secret that the command prints first. The status of
the program is the status of the delivery, or 502 if it does not respond. Without
--forward the status is 204. Requests that are not verified are refused with 401.

The server must run on this machine, with --dev or allow_insecure_targets, because the
deliveries go to a port of 127.0.0.1.`,
		Example: `  stonetown webhooks listen --forward http://127.0.0.1:3000/webhooks
  stonetown webhooks listen --events 'user.*,relation.created' --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l := &webhookListener{out: cmd.OutOrStdout(), json: r.output == "json", forward: forward}
			if err := l.checkForward(); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeSubscribe)
			if err != nil {
				return err
			}
			defer c.Close()
			return l.run(cmd.Context(), c, events, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&forward, "forward", "", "`URL` of a local program that receives the deliveries")
	f.StringSliceVar(&events, "events", []string{"*"}, "`patterns` of the events: types, categories such as user.*, or *")
	return r.command(cmd)
}

// webhookListener receives deliveries.
type webhookListener struct {
	forward string // empty: nowhere
	json    bool
	secret  signature.Secret
	program *http.Client // sends to forward

	mu     sync.Mutex // of out
	out    io.Writer
	failed chan error // ends the command; has room for one
}

func (l *webhookListener) checkForward() error {
	if l.forward == "" {
		return nil
	}
	target, err := url.Parse(l.forward)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Hostname() == "" {
		return errors.New("--forward is not an http:// or https:// URL")
	}
	return nil
}

// run receives deliveries until ctx ends, which is no error.
func (l *webhookListener) run(ctx context.Context, c *apiclient.Client, events []string, messages io.Writer) (err error) {
	l.failed = make(chan error, 1)
	l.program = apiclient.NewHTTP()
	l.program.Timeout = forwardTimeout
	defer l.program.CloseIdleConnections()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listen.Close()
	address := "http://" + listen.Addr().String() + "/"
	// An interrupted request could create a subscription without a response that has its id.
	created, err := c.Subscribe(context.WithoutCancel(ctx), apiclient.Subscription{Name: listenerName, URL: address, Events: events})
	if refused, ok := errors.AsType[*apiclient.Error](err); ok && refused.Code == "webhook_url_invalid" {
		return fmt.Errorf("the server does not deliver to %s without --dev or allow_insecure_targets: %w", address, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
		defer cancel()
		if failed := c.Unsubscribe(ctx, created.ID); failed != nil {
			err = errors.Join(err, fmt.Errorf("the subscription %s was not deleted: %w", created.ID, failed))
		}
	}()
	if l.secret, err = signature.ParseSecret(created.SigningSecret); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(messages, "Subscription %s, signing secret %s. Ctrl-C ends it.\n", created.ID, created.SigningSecret); err != nil {
		return err
	}
	server := &http.Server{Handler: l, ReadHeaderTimeout: forwardTimeout, ReadTimeout: forwardTimeout, MaxHeaderBytes: 64 << 10}
	go func() {
		if err := server.Serve(listen); !errors.Is(err, http.ErrServerClosed) {
			l.fail(err)
		}
	}()
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-l.failed:
		return err
	}
}

// fail ends the command with an error.
func (l *webhookListener) fail(err error) {
	select {
	case l.failed <- err:
	default: // there is an earlier one
	}
}

// received is a request with its result.
type received struct {
	At         time.Time `json:"received_at"`
	EventType  string    `json:"event_type"`
	EventID    string    `json:"event_id"`
	DeliveryID string    `json:"delivery_id"`
	Attempt    string    `json:"attempt"` // a number if it is verified
	Verified   bool      `json:"verified"`
	Status     int       `json:"status"`          // that the server receives
	Error      string    `json:"error,omitempty"` // why it is not verified, or was not forwarded
	DurationMS int64     `json:"duration_ms"`
	Body       any       `json:"body"`
}

// ServeHTTP receives a request.
func (l *webhookListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := received{
		At: time.Now(), EventType: r.Header.Get(signature.HeaderEvent), EventID: r.Header.Get(signature.HeaderID),
		DeliveryID: r.Header.Get(signature.HeaderDelivery), Attempt: r.Header.Get(signature.HeaderAttempt),
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCapture))
	if err == nil {
		err = signature.Verify(r.Header, body, l.secret, d.At, signature.Tolerance)
	}
	if err == nil { // the body is signed, and the header is not
		var event struct {
			Type string `json:"event_type"`
		}
		err = json.Unmarshal(body, &event)
		d.EventType = event.Type
	}
	switch {
	case err != nil:
		d.Status, d.Error = http.StatusUnauthorized, err.Error()
		http.Error(w, "not verified", d.Status)
	case l.forward == "":
		d.Verified, d.Status = true, http.StatusNoContent
		w.WriteHeader(d.Status)
	default:
		d.Verified = true
		if d.Status, err = l.pass(w, r, body); err != nil {
			d.Error = err.Error()
		}
	}
	d.DurationMS = time.Since(d.At).Milliseconds()
	if err := l.print(d, body); err != nil {
		l.fail(err)
	}
}

// connectionHeaders are about one connection (RFC 9110 §7.6.1) and are not forwarded.
var connectionHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"}

// pass forwards a delivery to the local program, and its response to the server.
func (l *webhookListener) pass(w http.ResponseWriter, r *http.Request, body []byte) (status int, err error) {
	fail := func(err error) (int, error) {
		http.Error(w, "the local program does not respond", http.StatusBadGateway)
		return http.StatusBadGateway, err
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, l.forward, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	request.Header = r.Header.Clone()
	for _, name := range connectionHeaders {
		request.Header.Del(name)
	}
	response, err := l.program.Do(request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxForwarded))
	if err != nil {
		return fail(err)
	}
	for name, values := range response.Header {
		if !slices.Contains(connectionHeaders, name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(text) // fails for a status without a body, and if the server has gone
	return response.StatusCode, nil
}

// print prints a request.
func (l *webhookListener) print(d received, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		d.Body = string(body)
		if json.Valid(body) {
			d.Body = json.RawMessage(body)
		}
		encoder := json.NewEncoder(l.out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(d)
	}
	value := func(text string) string {
		if text == "" {
			return "-"
		}
		return apiclient.Printable(text)
	}
	verified := "verified"
	if !d.Verified {
		verified = "not verified"
	}
	reason := ""
	if d.Error != "" {
		reason = ": " + apiclient.Printable(d.Error)
	}
	_, err := fmt.Fprintf(l.out, "%s  %s  %s  attempt %s  %s  %d  %d ms%s\n",
		d.At.Format("15:04:05.000"), value(d.EventType), value(d.EventID), value(d.Attempt), verified, d.Status, d.DurationMS, reason)
	return err
}
