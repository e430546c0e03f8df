package web

import (
	"bufio"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
)

// Lines writes a response of newline-delimited JSON. It is not safe for
// concurrent use.
type Lines struct {
	w      http.ResponseWriter
	buffer *bufio.Writer
}

// lineBuffer is how much is collected before it is sent.
const lineBuffer = 32 << 10

// NewLines starts a response with status 200. Its head is sent with the first
// line, so that until then the request can still end in an error.
func NewLines(w http.ResponseWriter) *Lines {
	return &Lines{w: w, buffer: bufio.NewWriterSize(w, lineBuffer)}
}

// Write adds a line. It may stay in memory until the next Flush.
func (l *Lines) Write(v any) error {
	l.w.Header()["Content-Type"] = ndjson
	if err := json.MarshalWrite(l.buffer, v, json.Deterministic(true)); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return l.buffer.WriteByte('\n')
}

// Flush sends the lines written so far.
func (l *Lines) Flush() error {
	if err := l.buffer.Flush(); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return http.NewResponseController(l.w).Flush()
}

var ndjson = []string{"application/x-ndjson"}
