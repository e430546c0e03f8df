package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// Document is a response that does not depend on the caller and may be cached.
type Document struct {
	Body         []byte
	MediaType    string
	CacheControl string
}

// Serve sends the document, or 304 to a client that has it already (RFC 9110
// §13.1.2).
func (d Document) Serve(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256(d.Body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", d.CacheControl)
	h.Set("Access-Control-Allow-Origin", "*")
	if have := r.Header.Get("If-None-Match"); have == "*" || strings.Contains(have, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", d.MediaType)
	// An error means that the client has disconnected.
	_, _ = w.Write(d.Body)
}
