package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"

	"github.com/gorilla/mux"

	"stonetown/api/web"
)

// Handlers serves the document. Make one with [NewHandlers].
type Handlers struct{ asYAML, asJSON, asCollection form }

// form is a form of the document, cut at the addresses of the server.
type form struct {
	before, after []byte
	mediaType     string
}

// sample is the address in the document that stands for the tenant's address.
const sample = "http://dev.localhost:8080"

// cut splits the document at the sample address after a mark.
func cut(text []byte, mark, mediaType string) (form, error) {
	at := bytes.Index(text, []byte(mark))
	if at >= 0 {
		if n := bytes.Index(text[at:], []byte(sample)); n >= 0 {
			return form{text[:at+n], text[at+n+len(sample):], mediaType}, nil
		}
	}
	return form{}, fmt.Errorf("openapi: no server behind %q", mark)
}

// serve sends the document with the tenant's address, which needs no escaping in any form.
func (f form) serve(w http.ResponseWriter, r *http.Request) {
	address := []byte(web.InfoOf(r.Context()).Tenant.BaseURL)
	web.Document{
		Body: slices.Concat(f.before, address, f.after), MediaType: f.mediaType, CacheControl: "public, max-age=300",
	}.Serve(w, r)
}

var _ ServerInterface = (*Handlers)(nil)

// NewHandlers prepares the forms of the document.
func NewHandlers() (*Handlers, error) {
	text, err := JSON()
	if err != nil {
		return nil, err
	}
	h := new(Handlers)
	if h.asYAML, err = cut(YAML(), "\nservers:\n", "application/yaml"); err != nil {
		return nil, err
	}
	if h.asJSON, err = cut(text, `"servers":[`, "application/json"); err != nil {
		return nil, err
	}
	if h.asCollection, err = cut(collection, `"key": "baseUrl"`, "application/json"); err != nil {
		return nil, err
	}
	return h, nil
}

// Mount adds the operations to a router.
func (h *Handlers) Mount(router *mux.Router) { HandlerFromMux(h, router) }

// GetDocumentYAML serves the document in its original form.
func (h *Handlers) GetDocumentYAML(w http.ResponseWriter, r *http.Request) { h.asYAML.serve(w, r) }

// GetDocumentJSON serves the document as JSON.
func (h *Handlers) GetDocumentJSON(w http.ResponseWriter, r *http.Request) { h.asJSON.serve(w, r) }

// GetCollection serves the document as a collection for HTTP clients.
func (h *Handlers) GetCollection(w http.ResponseWriter, r *http.Request) { h.asCollection.serve(w, r) }
