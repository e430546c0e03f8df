package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"stonetown/internal/fair"
)

// stream returns the context of a response without end. It ends with the caller's token, or
// when the server stops.
func (s *Server) stream(res *response, r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(r.Context(), res.Principal.ExpiresAt)
	stop := context.AfterFunc(s.stopping, cancel)
	return ctx, func() { stop(); cancel() }
}

// Lines writes a response of newline-delimited JSON. It is not safe for concurrent use.
type Lines struct {
	w        http.ResponseWriter
	buffer   *bufio.Writer
	encoders *fair.Threads // nil: there are none
}

// lineBuffer is the size of the buffer in bytes.
const lineBuffer = 32 << 10

// NewLines starts a response with status 200. Its head is sent with the first
// line, so that until then the request can still end in an error.
func NewLines(w http.ResponseWriter) *Lines {
	l := &Lines{w: w, buffer: bufio.NewWriterSize(w, lineBuffer)}
	if res, ok := w.(*response); ok {
		l.encoders = res.encoders
	}
	return l
}

// ReportErrors makes the error of the request its last line, if lines were sent before: an object
// with the members of an error and the event failed.
func (l *Lines) ReportErrors() {
	if res, ok := l.w.(*response); ok {
		res.lines = l
	}
}

// failedLine is the last line of a stream that failed.
type failedLine struct {
	Event string `json:"event"`
	errorBody
}

// Write adds a line. It may stay in memory until the next Flush.
func (l *Lines) Write(v any) error {
	l.begin()
	return writeLine(l.buffer, v)
}

func (l *Lines) begin() {
	l.w.Header()["Content-Type"], l.w.Header()["X-Accel-Buffering"] = ndjson, unbuffered
}

func writeLine(to interface {
	io.Writer
	io.ByteWriter
}, v any,
) error {
	if err := json.MarshalWrite(to, v, json.Deterministic(true)); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return to.WriteByte('\n')
}

// linesAtOnce is the number of lines that are encoded together, in about a millisecond.
const linesAtOnce = 2000

// WriteAll adds n lines. Each is encoded before the next call of line, so that calls may return the
// same pointer. Many are encoded by threads of low priority, so that other requests do not wait for a
// long list. These threads never wait for the client.
func (l *Lines) WriteAll(n int, line func(i int) any) error {
	l.begin()
	var encoded bytes.Buffer
	for from := 0; from < n; from += linesAtOnce {
		encoded.Reset()
		var err error
		encode := func() {
			for i := from; i < min(n, from+linesAtOnce) && err == nil; i++ {
				err = writeLine(&encoded, line(i))
			}
		}
		if n < linesAtOnce || l.encoders == nil {
			encode()
		} else {
			l.encoders.Do(encode)
		}
		if err != nil {
			return err
		}
		if _, err := l.buffer.Write(encoded.Bytes()); err != nil {
			return fmt.Errorf("write line: %w", err)
		}
	}
	return nil
}

// flushTime bounds the time in which a client accepts flushed lines.
const flushTime = 30 * time.Second

// Flush sends the lines written so far. The server's limit for the time of a whole response does
// not apply.
func (l *Lines) Flush() error {
	c := http.NewResponseController(l.w)
	if err := c.SetWriteDeadline(time.Now().Add(flushTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("write line: %w", err)
	}
	if err := l.buffer.Flush(); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return c.Flush()
}

var (
	ndjson = []string{"application/x-ndjson"}
	// Without it nginx buffers some thousand bytes of lines.
	unbuffered = []string{"no"}
)
