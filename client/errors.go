package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Error is an error of the server.
type Error struct {
	Status    int
	Code      string // for branching; empty if the answer is not from the API
	Message   string
	RequestID string
	Details   map[string]any

	retryAfter time.Duration // 0: none
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(Printable(e.Message))
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", Printable(e.Code))
	} else {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.RequestID != "" && e.Status >= http.StatusInternalServerError {
		fmt.Fprintf(&b, " [request %s]", Printable(e.RequestID))
	}
	return b.String()
}

// index is the operation of a bulk that an error is about.
func (e *Error) index() (int, bool) {
	n, ok := e.Details["index"].(float64)
	return int(n), ok
}

// LineOf returns the line of [Client.Load] that an error is about.
func LineOf(err error) (int64, bool) {
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		return 0, false
	}
	line, ok := refused.Details["line"].(float64)
	return int64(line), ok
}

// errorOf parses an error response. The errors of OAuth have the same members.
func errorOf(status int, header http.Header, body []byte) *Error {
	var wire struct {
		Error     string         `json:"error"`
		Message   string         `json:"message"`
		RequestID string         `json:"request_id"`
		Details   map[string]any `json:"details"`
	}
	e := &Error{Status: status}
	if json.Unmarshal(body, &wire) == nil {
		e.Code, e.Message, e.RequestID, e.Details = wire.Error, wire.Message, wire.RequestID, wire.Details
	}
	if e.Message == "" { // the error of a proxy
		e.Message = fmt.Sprintf("the server responded with %d %s", status, http.StatusText(status))
	}
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && seconds > 0 {
		e.retryAfter = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header.Get("Retry-After")); err == nil {
		e.retryAfter = max(0, time.Until(at))
	}
	return e
}

// Printable quotes text that contains control sequences of terminals: ids can have any
// character.
func Printable(text string) string {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.Quote(text)
		}
	}
	return text
}
