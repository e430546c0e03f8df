// Package inprocess calls operations of the API from pages that the same process serves.
//
// A page has no privileges: it sends the requests that any client could send, through the same
// steps, and only the network is left out. The operation sees the address and the user agent of
// the browser that asked for the page.
package inprocess

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// Answer is the response of an operation.
type Answer struct {
	// Data is the member data of the response, or all of a response without one, such as metadata.
	Data any
	Meta Meta
	// Cookies are for the browser, as values of Set-Cookie.
	Cookies []string
}

// Meta is the part of the metadata of responses that pages use.
type Meta struct {
	NextCursor       string `json:"next_cursor"`
	Cursor           string `json:"cursor"` // NextCursor, as the control plane names it
	ConsistencyToken string `json:"consistency_token"`
	Code             string `json:"code"` // of a success that is worth a message
}

// Error is the error response of an operation.
type Error struct {
	Status  int
	Code    string
	Message string
	Details Object
	After   int // seconds to wait
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Call calls an operation for the request of a browser, with an access token or the token of a
// session; empty: without. The error is an [*Error] or an internal one.
func Call(api http.Handler, r *http.Request, token, method, path string, body any) (Answer, error) {
	return CallOnce(api, r, token, "", method, path, body)
}

// CallOnce is Call with an Idempotency-Key; empty: none.
func CallOnce(api http.Handler, r *http.Request, token, key, method, path string, body any) (a Answer, err error) {
	var text []byte
	header := http.Header{}
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return a, err
		}
		header.Set("Content-Type", "application/json")
	}
	return send(api, r, &recorder{header: http.Header{}, status: http.StatusOK}, token, key, method, path, header, bytes.NewReader(text))
}

// Upload is CallOnce with a body that the operation reads as a stream while the browser sends it.
// header describes the body. The operation bounds the time until the next part of it arrives, on the
// connection of w, the response to the browser; a deadline of the context of r would bound all of it.
func Upload(api http.Handler, w http.ResponseWriter, r *http.Request, token, key, method, path string, header http.Header, body io.Reader) (Answer, error) {
	res := &recorder{header: http.Header{}, status: http.StatusOK, connection: http.NewResponseController(w)}
	return send(api, r, res, token, key, method, path, header, body)
}

func send(api http.Handler, r *http.Request, res *recorder, token, key, method, path string, header http.Header, body io.Reader) (a Answer, err error) {
	req, err := http.NewRequestWithContext(r.Context(), method, path, body)
	if err != nil {
		return a, err
	}
	maps.Copy(req.Header, header)
	req.Host, req.RemoteAddr = r.Host, r.RemoteAddr
	for _, name := range []string{"User-Agent", "X-Forwarded-For"} {
		if values := r.Header.Values(name); values != nil {
			req.Header[name] = values
		}
	}
	if cookie, err := r.Cookie("__Host-dev"); err == nil { // the device, if it is remembered
		req.AddCookie(cookie)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	api.ServeHTTP(res, req)
	a.Cookies = res.header.Values("Set-Cookie")
	if res.status == http.StatusNoContent {
		return a, nil
	}
	var read struct {
		Data    json.RawMessage `json:"data"`
		Meta    Meta            `json:"meta"`
		Error   failure         `json:"error"`
		Message string          `json:"message"`
		Details Object          `json:"details"`
	}
	if err := json.Unmarshal(res.body.Bytes(), &read); err != nil {
		return a, fmt.Errorf("%s %s: %w", method, path, err)
	}
	a.Meta = read.Meta
	a.Meta.NextCursor = cmp.Or(a.Meta.NextCursor, a.Meta.Cursor)
	if res.status >= http.StatusBadRequest {
		after, _ := strconv.Atoi(res.header.Get("Retry-After"))
		e := &Error{res.status, read.Error.Code, cmp.Or(read.Message, read.Error.Message), read.Details, after}
		if len(read.Error.FieldErrors) > 0 {
			e.Details = Object{"field_errors": read.Error.FieldErrors}
		}
		return a, e
	}
	if read.Data == nil {
		read.Data = res.body.Bytes()
	}
	return a, json.Unmarshal(read.Data, &a.Data)
}

// failure is the member error of a response: a code, or in the control plane an object with all
// that there is about the error.
type failure struct {
	Code        string `json:"code"`
	Message     string `json:"message"`
	FieldErrors []any  `json:"field_errors"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *failure) UnmarshalJSON(text []byte) error {
	type ofControlPlane failure
	if json.Unmarshal(text, (*ofControlPlane)(f)) == nil {
		return nil
	}
	return json.Unmarshal(text, &f.Code)
}

// recorder records a response.
type recorder struct {
	header     http.Header
	status     int
	body       bytes.Buffer
	connection *http.ResponseController // of the browser, which sends the body of an upload; otherwise nil
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// SetReadDeadline sets the deadline of the browser's connection, if the body comes from there; see
// [http.ResponseController].
func (r *recorder) SetReadDeadline(at time.Time) error {
	if r.connection == nil {
		return http.ErrNotSupported
	}
	return r.connection.SetReadDeadline(at)
}

// SetWriteDeadline is SetReadDeadline for the response.
func (r *recorder) SetWriteDeadline(at time.Time) error {
	if r.connection == nil {
		return http.ErrNotSupported
	}
	return r.connection.SetWriteDeadline(at)
}
