package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/gorilla/mux"

	"stonetown/api/web"
)

// Handlers serves a document. Make one with [NewHandlers].
type Handlers struct {
	asYAML, asCollection form
	asJSON               func() form
}

// form is a form of the document, cut at the addresses of the server.
type form struct {
	before, after []byte
	mediaType     string
}

// cut splits a form of the document at its server after a mark.
func (d Document) cut(text []byte, mark, mediaType string) (form, error) {
	at := bytes.Index(text, []byte(mark))
	if at >= 0 {
		if n := bytes.Index(text[at:], []byte(d.Server)); n >= 0 {
			return form{text[:at+n], text[at+n+len(d.Server):], mediaType}, nil
		}
	}
	return form{}, fmt.Errorf("openapi: no server behind %q", mark)
}

// serve sends the document with the tenant's address as its server, which needs no escaping in any form.
func (f form) serve(w http.ResponseWriter, r *http.Request) {
	address := []byte(web.InfoOf(r.Context()).Tenant.BaseURL)
	web.Document{
		Body: slices.Concat(f.before, address, f.after), MediaType: f.mediaType, CacheControl: "public, max-age=300",
	}.Serve(w, r)
}

var _ ServerInterface = (*Handlers)(nil)

// NewHandlers prepares the forms of a document.
func NewHandlers(d Document) (*Handlers, error) {
	h := new(Handlers)
	var err error
	if h.asYAML, err = d.cut(d.YAML, "\nservers:\n", "application/yaml"); err != nil {
		return nil, err
	}
	if h.asCollection, err = d.cut(d.Collection, `"key": "baseUrl"`, "application/json"); err != nil {
		return nil, err
	}
	h.asJSON = sync.OnceValue(func() form {
		text, err := d.JSON()
		if err != nil {
			panic(fmt.Sprintf("openapi: %v", err)) // the document is part of the program
		}
		f, err := d.cut(text, `"servers":[`, "application/json")
		if err != nil {
			panic(err.Error())
		}
		return f
	})
	return h, nil
}

// Mount adds the operations to a router.
func (h *Handlers) Mount(router *mux.Router) { HandlerFromMux(h, router) }

// GetDocumentYAML serves the document in its original form.
func (h *Handlers) GetDocumentYAML(w http.ResponseWriter, r *http.Request) { h.asYAML.serve(w, r) }

// GetDocumentJSON serves the document as JSON.
func (h *Handlers) GetDocumentJSON(w http.ResponseWriter, r *http.Request) { h.asJSON().serve(w, r) }

// GetCollection serves the document as a collection for HTTP clients.
func (h *Handlers) GetCollection(w http.ResponseWriter, r *http.Request) { h.asCollection.serve(w, r) }
