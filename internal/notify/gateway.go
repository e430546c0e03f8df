package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"stonetown/internal/tracing"
)

// Gateway sends text messages through an HTTP gateway. Each message is a POST of
//
//	{"to": "+4930123456", "text": "…"}
//
// with a bearer token. A status of 2xx means that the gateway accepted the message, and one of
// 4xx other than 408 and 429 that it will never accept it.
type Gateway struct {
	url, token string
	countries  []string // prefixes of numbers: +49, +1
	client     *http.Client
}

// NewGateway returns a gateway that sends to numbers with one of some country codes; to all
// numbers if there are none.
func NewGateway(url, token string, countries []string) *Gateway {
	client := &http.Client{
		Timeout:       15 * time.Second,
		Transport:     tracing.Transport(http.DefaultTransport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Gateway{url, token, countries, client}
}

// Accepts implements [Texter].
func (g *Gateway) Accepts(number string) bool {
	return len(g.countries) == 0 || slices.ContainsFunc(g.countries, func(code string) bool { return strings.HasPrefix(number, code) })
}

// SendText implements [Texter].
func (g *Gateway) SendText(ctx context.Context, number, text string) error {
	body, err := json.Marshal(map[string]string{"to": number, "text": text})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send text: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if g.token != "" {
		req.Header.Set("Authorization", "Bearer "+g.token)
	}
	res, err := g.client.Do(req)
	if err != nil {
		return fmt.Errorf("send text: %w", err)
	}
	defer res.Body.Close()
	// The response may contain the message, so the error does not quote it.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	switch {
	case res.StatusCode < 300:
		return nil
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusRequestTimeout && res.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("send text: the gateway answered %d: %w", res.StatusCode, ErrRefused)
	}
	return fmt.Errorf("send text: the gateway answered %d", res.StatusCode)
}
