package openapi

import (
	"net/http"

	"github.com/gorilla/mux"

	"stonetown/api/web"
)

// Surface serves the document. Its zero value is not ready; see [NewSurface].
type Surface struct{ asYAML, asJSON, asCollection web.Document }

var _ ServerInterface = (*Surface)(nil)

// NewSurface prepares the forms of the document.
func NewSurface() (*Surface, error) {
	text, err := JSON()
	if err != nil {
		return nil, err
	}
	const cache = "public, max-age=300"
	return &Surface{
		asYAML: web.Document{Body: YAML(), MediaType: "application/yaml", CacheControl: cache},
		asJSON: web.Document{Body: text, MediaType: "application/json", CacheControl: cache},

		asCollection: web.Document{Body: collection, MediaType: "application/json", CacheControl: cache},
	}, nil
}

// Mount adds the operations to a router.
func (s *Surface) Mount(router *mux.Router) { HandlerFromMux(s, router) }

// GetDocumentYAML serves the document as it was written.
func (s *Surface) GetDocumentYAML(w http.ResponseWriter, r *http.Request) { s.asYAML.Serve(w, r) }

// GetDocumentJSON serves the document as JSON.
func (s *Surface) GetDocumentJSON(w http.ResponseWriter, r *http.Request) { s.asJSON.Serve(w, r) }

// GetCollection serves the document as a collection for HTTP clients.
func (s *Surface) GetCollection(w http.ResponseWriter, r *http.Request) { s.asCollection.Serve(w, r) }
