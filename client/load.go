package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Loaded counts the lines that [Client.Load] has sent.
type Loaded struct {
	Line     int64 `json:"line"` // the last one that is stored
	Created  int   `json:"created"`
	Updated  int   `json:"updated"`
	Replaced int   `json:"replaced"`
	Existed  int   `json:"existed"`
	Expired  int   `json:"expired"` // were left out
}

// loadLine is a line of the response.
type loadLine struct {
	Event string `json:"event"`
	Loaded
}

// Load sends relations, one of each line, in one stream that the server stores chunk by chunk. The
// first line of r has the number first. If the connection ends, or the server is too busy, Load
// goes on after the last line that is stored, and no line is stored twice. progress, which may be
// nil, is called after each chunk. After an error the lines up to Loaded.Line are stored.
func (c *Client) Load(ctx context.Context, r io.Reader, first int64, progress func(Loaded)) (Loaded, error) {
	l := &loading{in: r, next: first, key: rand.Text(), total: Loaded{Line: first - 1}}
	p := pauses{until: time.Now().Add(c.patience)}
	renewed := false
	for {
		token, err := c.tokens.get(ctx)
		if err == nil {
			err = c.load(ctx, l, token, func() {
				p, renewed = pauses{until: time.Now().Add(c.patience)}, false
				if progress != nil {
					progress(l.total)
				}
			})
			if err == nil || l.failed() != nil {
				return l.total, l.failed()
			}
			if refused, ok := err.(*Error); ok && refused.Status == http.StatusUnauthorized && !renewed {
				renewed = true
				c.tokens.forget(token)
				continue
			}
		}
		pause, again := p.after(err)
		if !again || !sleep(ctx, pause) {
			return l.total, err
		}
	}
}

// load sends what is not stored yet in one request.
func (c *Client) load(ctx context.Context, l *loading, token string, stored func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path := resourcesPath + "/relations/import?first_line=" + strconv.FormatInt(l.next, 10)
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/x-ndjson"}, "Idempotency-Key": {l.key}}
	err := c.stream(ctx, http.MethodPost, path, header, l.body(ctx), func(text []byte) error {
		var line loadLine
		if err := json.Unmarshal(text, &line); err != nil {
			return errNotOurs
		}
		switch line.Event {
		case "stored":
			l.stored(line.Loaded)
			stored()
			return nil
		case "done":
			return errDone
		case "failed":
			return failedLoad(text)
		}
		return errNotOurs
	})
	if err == errDone {
		return nil
	}
	return err
}

// errDone ends a stream whose last line was read.
var errDone = errors.New("done")

// failedLoad returns the error of a last line. It has no status; only errors that can pass have one
// of those codes.
func failedLoad(line []byte) *Error {
	e := errorOf(0, http.Header{}, line)
	switch e.Code {
	case "service_unavailable":
		e.Status = http.StatusServiceUnavailable
	case "internal_error":
		e.Status = http.StatusInternalServerError
	default:
		e.Status = http.StatusBadRequest
	}
	return e
}

// loading is the state of [Client.Load]. It keeps what is not stored yet in memory, which is
// bounded because the server reads no more than a few chunks ahead.
type loading struct {
	in    io.Reader
	key   string
	next  int64 // the number of the first line that is not stored
	total Loaded

	mu      sync.Mutex
	kept    []byte        // from the line next on
	dropped int64         // bytes before
	err     error         // of in, also io.EOF
	fetched chan struct{} // is closed at the end of the read of in that is in progress; nil: none is
}

// stored notes that lines are stored.
func (l *loading) stored(chunk Loaded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; l.next <= chunk.Line; l.next++ {
		end := bytes.IndexByte(l.kept, '\n') + 1
		if end == 0 {
			end = len(l.kept) // the last line may have no end
		}
		l.kept, l.dropped = l.kept[end:], l.dropped+int64(end)
	}
	t := &l.total
	t.Line = chunk.Line
	t.Created, t.Updated, t.Replaced = t.Created+chunk.Created, t.Updated+chunk.Updated, t.Replaced+chunk.Replaced
	t.Existed, t.Expired = t.Existed+chunk.Existed, t.Expired+chunk.Expired
}

// failed returns the error of the source.
func (l *loading) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

// body returns the body of a request: what is not stored.
func (l *loading) body(ctx context.Context) io.Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &loadBody{ctx, l, l.dropped}
}

// fetch reads from the source in a goroutine of its own, unless one does so already, and returns
// a channel that is closed at the end. A source such as a terminal can block for as long as it
// likes, and must not keep a request that has ended.
func (l *loading) fetch() <-chan struct{} {
	if l.fetched == nil {
		fetched := make(chan struct{})
		l.fetched = fetched
		go func() {
			defer close(fetched)
			part := make([]byte, 64<<10)
			n, err := l.in.Read(part)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.kept, l.err, l.fetched = append(l.kept, part[:n]...), err, nil
		}()
	}
	return l.fetched
}

// loadBody reads from a position on.
type loadBody struct {
	ctx context.Context
	l   *loading
	at  int64
}

// Read implements [io.Reader].
func (b *loadBody) Read(p []byte) (int, error) {
	for {
		n, fetched, err := b.next(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-fetched:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
}

// next returns bytes or an error or, if there are none yet, the end of the read that gets some.
func (b *loadBody) next(p []byte) (n int, fetched <-chan struct{}, err error) {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	if b.at < b.l.dropped { // of a request that has ended
		return 0, nil, io.ErrClosedPipe
	}
	n = copy(p, b.l.kept[b.at-b.l.dropped:])
	b.at += int64(n)
	switch {
	case n > 0:
		return n, nil, nil
	case b.l.err != nil:
		return 0, nil, b.l.err
	}
	return 0, b.l.fetch(), nil
}
