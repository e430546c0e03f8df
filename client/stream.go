package client

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
)

// stream makes a request whose response has no end, or a late one, and calls each with its lines
// until that fails. The error is that of each, of the response, or of the connection, which has
// ended.
func (c *Client) stream(ctx context.Context, method, path string, header http.Header, body io.Reader, each func(line []byte) error) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header = header
	endless := *c.http
	endless.Timeout = 0
	resp, err := endless.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return &url.Error{Op: method, URL: c.base, Err: err}
		}
		return errorOf(resp.StatusCode, resp.Header, text)
	}
	c.warnings.of(resp.Header)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	if err = lines.Err(); err == nil || ctx.Err() != nil {
		err = io.ErrUnexpectedEOF // which is repeated, unless the caller's context has ended
	}
	return &url.Error{Op: method, URL: c.base, Err: err}
}
