package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"stonetown/internal/idempotency"
)

// idempotent executes an operation once for all requests with the same Idempotency-Key, and
// answers the others with the first response (draft-ietf-httpapi-idempotency-key-header). It
// runs after the authorization of the caller.
//
// Uploads are read as streams and not compared: requests with the same key count as equal.
func (s *Server) idempotent(res *response, r *http.Request, op Operation, next http.Handler) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if key == "" {
		next.ServeHTTP(res, r)
		return nil
	}
	var body []byte
	if op.MaxUpload == 0 {
		if body, err = io.ReadAll(http.MaxBytesReader(res, r.Body, MaxBody)); err != nil {
			return BodyError(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	caller := []string{res.Principal.Subject, res.Principal.ClientID, r.Method, r.URL.EscapedPath(), key}
	if op.Related && !res.Principal.Scopes.Has(op.Scope) {
		// A token that lost the scope must not get a response that it had with the scope.
		caller = append(caller, "without "+op.Scope)
	}
	claim, again, err := s.idempotency.Claim(r.Context(), idempotency.Request{
		Tenant: res.Tenant.ID, Scope: digest(caller...), Hash: digest(r.URL.RawQuery, string(body)),
	})
	switch {
	case errors.Is(err, idempotency.ErrInProgress):
		return &Error{
			Status: http.StatusConflict, Code: "idempotency_in_progress", Message: err.Error(),
			Header: http.Header{"Retry-After": {"1"}},
		}
	case errors.Is(err, idempotency.ErrReused):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused", Message: err.Error()}
	case err != nil:
		return err
	case again != nil:
		res.Header().Set("Idempotent-Replayed", "true")
		return res.send(again)
	}
	res.CommitID = claim.CommitID
	return s.hold(res, r, claim, next)
}

// idempotencyKey returns the key of a request; empty if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header["Idempotency-Key"]
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 || !isVisible(keys[0]) {
		return "", &Error{
			Status: http.StatusBadRequest, Code: "idempotency_key_invalid",
			Message: "Idempotency-Key must be given once, as 1 to 255 visible ASCII characters",
		}
	}
	return keys[0], nil
}

// repeatable gives all requests with the same Idempotency-Key the same commit ID. The handler
// derives those of the parts that it stores from it, because the response of a stream cannot be
// stored before it is sent.
func (s *Server) repeatable(res *response, r *http.Request) error {
	key, err := idempotencyKey(r)
	if key != "" {
		sum := digest(res.Principal.Subject, res.Principal.ClientID, r.Method, r.URL.EscapedPath(), key)
		res.CommitID = hex.EncodeToString(sum[:])
	}
	return err
}

// hold runs the handler and sends its response after it is stored, so a client that has the
// response can get it again.
func (s *Server) hold(res *response, r *http.Request, claim *idempotency.Claim, next http.Handler) error {
	res.held = new(bytes.Buffer)
	ended := false
	// The response is stored also if the client has disconnected, because it may repeat the
	// request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
	defer cancel()
	defer func() {
		if ended {
			return
		}
		res.held, res.status = nil, 0 // a panic, which gets a response of its own
		if err := claim.Release(ctx); err != nil {
			s.log.WarnContext(ctx, "release idempotency key", "request_id", res.RequestID, "error", err)
		}
	}()
	next.ServeHTTP(res, r)
	ended = true

	response := idempotency.Response{Status: max(res.status, http.StatusOK), Header: map[string][]string{}, Body: res.held.Bytes()}
	for _, name := range []string{"Content-Type", "Location", "X-Consistency-Token", "Warning", "Etag"} {
		if values := res.Header()[name]; values != nil {
			response.Header[name] = values
		}
	}
	res.held, res.status = nil, 0
	var err error
	if isFinal(response.Status) {
		err = claim.Complete(ctx, response)
	} else {
		err = claim.Release(ctx)
	}
	if err != nil {
		// The work is committed, and its commit id prevents a second execution.
		s.log.WarnContext(ctx, "store response under idempotency key", "request_id", res.RequestID, "error", err)
	}
	return res.send(&response)
}

// isFinal reports whether a repeated request would have the same response. Responses that
// depend on the caller's rights, the load or the state of the service are not final.
func isFinal(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

// send sends a held or stored response.
func (res *response) send(response *idempotency.Response) error {
	for name, values := range response.Header {
		res.Header()[name] = values
	}
	res.WriteHeader(response.Status)
	if len(response.Body) > 0 {
		// An error means that the client has disconnected.
		_, _ = res.Write(response.Body)
	}
	return nil
}

// digest hashes parts so that no two lists of parts have the same hash.
func digest(parts ...string) [32]byte {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		io.WriteString(h, part)
	}
	return [32]byte(h.Sum(nil))
}
