// Package docs serves the documentation at /docs, and writes it as a static site.
//
// Every page is Markdown: the pages of the repository ([stonetown.Documentation]), and pages that
// are generated from the OpenAPI documents. So there is one renderer, one search, and one check of
// links. Pages have no scripts and load nothing from elsewhere, and their policy refuses both. Only the
// playground has scripts (playground.go).
//
// The documentation is public, on the hosts of tenants and of the control plane, because its
// readers are developers of clients, which do not reach the listener for operators. It states
// nothing about a tenant or a deployment. The pages are rendered at the first request for one,
// because most servers are started without a reader.
package docs

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"sync"

	"github.com/gorilla/mux"

	"stonetown/api/console"
	"stonetown/api/pages"
	"stonetown/api/web"
	"stonetown/internal/ratelimit"
)

//go:embed templates assets playground
var files embed.FS

// home is the path of the first page.
const home = "/docs"

// contentPolicy is the content security policy of every page.
const contentPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Handlers serves the documentation. It is safe for concurrent use.
type Handlers struct {
	// RenderError renders errors; see [web.ErrorFormat].
	RenderError func(http.ResponseWriter, *web.Error, *web.RequestInfo)
}

// served is the site as the server has it. It is part of the program, so it is rendered once.
var served = sync.OnceValues(func() (*Site, error) { return New(Served) })

// Served are the addresses of the site on a server.
var Served = Layout{
	Page: func(name string) string {
		if name == "" {
			return home
		}
		return home + "/" + name
	},
	Scripts: func(folder string) string { return home + "/playground/" + folder + "/" },
	Style:   home + "/assets/docs.css", Icon: "/favicon.ico", Search: home + "/search",
}

// Routes returns the pages by path and method. wrap adds the pipeline of all requests to a page.
func (h *Handlers) Routes(wrap func(web.Operation, web.ErrorFormat, http.Handler) http.Handler) (map[string]map[string]http.Handler, error) {
	style, err := stylesheet()
	if err != nil {
		return nil, err
	}
	asset := web.Document{Body: style, MediaType: "text/css; charset=utf-8", CacheControl: "public, max-age=300"}
	routes := map[string]map[string]http.Handler{}
	for path, handler := range map[string]http.HandlerFunc{
		home: h.page, home + "/": moved, home + "/{page}": h.page, Served.Search: h.search, Served.Style: asset.Serve,
		home + "/playground/{folder}/{file}": h.script,
	} {
		op := web.Operation{ID: "docs " + path, Method: http.MethodGet, Path: path, Page: true, RateLimit: ratelimit.None}
		routes[path] = map[string]http.Handler{http.MethodGet: wrap(op, web.ErrorFormat{Render: h.RenderError}, handler)}
	}
	return routes, nil
}

// stylesheet returns the styles of the site, with the colours of the hosted pages.
func stylesheet() ([]byte, error) {
	own, err := files.ReadFile("assets/docs.css")
	return slices.Concat([]byte(pages.Colors), own, []byte(console.IslandStyle)), err
}

// moved redirects to the first page.
func moved(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", home)
	w.WriteHeader(http.StatusPermanentRedirect)
}

// page serves a page.
func (h *Handlers) page(w http.ResponseWriter, r *http.Request) {
	site, err := served()
	if err != nil {
		h.fail(w, r)
		return
	}
	p := site.Page(mux.Vars(r)["page"])
	if p == nil {
		h.RenderError(w, web.NotFound(), web.InfoOf(r.Context()))
		return
	}
	secure(w.Header())
	if p.hasScripts {
		w.Header().Set("Content-Security-Policy", playgroundPolicy)
	}
	web.Document{Body: p.HTML, MediaType: "text/html; charset=utf-8", CacheControl: "public, max-age=300"}.Serve(w, r)
}

// search serves the results of a search.
func (h *Handlers) search(w http.ResponseWriter, r *http.Request) {
	site, err := served()
	var b bytes.Buffer
	if err == nil {
		err = site.writeSearch(&b, r.URL.Query().Get("q"))
	}
	if err != nil {
		h.fail(w, r)
		return
	}
	secure(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // an error means that the client has disconnected
}

// fail answers a request for a page that cannot be rendered. A test renders all of them.
func (h *Handlers) fail(w http.ResponseWriter, r *http.Request) {
	h.RenderError(w, &web.Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "the documentation cannot be shown"}, web.InfoOf(r.Context()))
}

// secure sets the security headers of a page.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Frame-Options", "DENY")
}

// view is the data of every template.
type view struct {
	Layout
	Title      string
	Name       string // of the page
	Menu       []chapter
	Marks      []Heading // on the page
	Body       template.HTML
	Playground *playground // on its page
	Query      string
	Results    []result
	Notice     string // about the search
}

// Current reports whether a page is the one that is shown.
func (v view) Current(p *Page) bool { return p.Name == v.Name }
