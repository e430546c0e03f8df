package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Answer is the response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte

	// Truncated reports whether Body is incomplete: the body was longer than the limit, too
	// slow, or broken. Only [Client.Post] returns such an answer without an error.
	Truncated bool
}

// Do sends a request and reads the answer, of which at most limit bytes of body. Errors are
// [*Error]; those of the classes [Status] and [TooLarge] come with the answer as far as it
// was read. Only if the request's context is canceled, the error is that of the context.
func (c *Client) Do(req *http.Request, limit int64) (Answer, error) {
	if err := c.CheckURL(req.URL.String()); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), c.allTime)
	defer cancel()
	a, err := c.do(req.WithContext(ctx), limit, time.AfterFunc(c.headerTime, cancel))
	if err != nil {
		err = failure(req.Context(), ctx, err)
		if errors.Is(err, context.Canceled) {
			a = Answer{}
		}
	}
	return a, err
}

// do stops the timer when it has the headers.
func (c *Client) do(req *http.Request, limit int64, waiting *time.Timer) (Answer, error) {
	defer waiting.Stop()
	req.Header = req.Header.Clone()
	req.Header.Set("User-Agent", c.userAgent)
	res, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	waiting.Stop()
	a, err := read(res, limit)
	switch {
	case err != nil:
		return Answer{}, err
	case res.StatusCode < 200 || res.StatusCode > 299:
		return a, &Error{Class: Status, Status: res.StatusCode}
	case a.Truncated:
		return a, &Error{Class: TooLarge, Status: res.StatusCode}
	}
	return a, nil
}

// read reads at most limit bytes of the body. The answer is valid even if the body fails.
func read(res *http.Response, limit int64) (Answer, error) {
	a := Answer{Status: res.StatusCode, Header: res.Header}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return a, nil // it has no body, but the connection, whose reads ignore the request's context
	}
	// The byte beyond the limit also finds the end of a body of exactly that length, without
	// which the connection would not be kept.
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	a.Body = body[:min(int64(len(body)), limit)]
	a.Truncated = err != nil || int64(len(body)) > limit
	return a, err
}

// failure returns the error of a request: of the caller's context if that was canceled, else
// an [*Error]. A timer has canceled ctx if the caller has not.
func failure(caller, ctx context.Context, err error) error {
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		return caller.Err()
	case errors.Is(ctx.Err(), context.Canceled):
		return &Error{Class: Timeout, err: err}
	}
	return classify(err)
}

// Get fetches the body at a URL, of at most limit bytes. It fails as [Client.Do] does.
func (c *Client) Get(ctx context.Context, from string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, &Error{Class: Invalid, err: err}
	}
	a, err := c.Do(req, limit)
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}
