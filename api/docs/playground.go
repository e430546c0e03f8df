package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"

	"stonetown"
	"stonetown/api/console"
	"stonetown/api/web"
)

// The page with the playground: the engine in the browser. It is the page of the documentation that
// has scripts. They are those of the console's islands, a worker, and the engine, compiled to
// WebAssembly, which tools/playground builds into the folder playground. A program that is built
// without it has the page without the playground.

// playgroundPage is the name of the page.
const playgroundPage = "playground"

// engineFile is the engine, compressed with gzip. Clients get it as a file of this format, whatever
// encodings they accept: the worker decompresses it, as it has to on a server of static files.
const engineFile = "engine.gz"

// playgroundPolicy is the content security policy of the page, and of its worker.
const playgroundPolicy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// scripts are the files of the playground.
type scripts struct {
	files  map[string]console.Island // by name; nil: the engine was not built
	folder string                    // a name that changes with the files
}

// loadScripts reads the files once.
var loadScripts = sync.OnceValues(func() (s scripts, err error) {
	engine, err := fs.ReadFile(files, "playground/"+engineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	all, err := console.Islands()
	if err != nil {
		return s, err
	}
	all[engineFile] = console.NewIsland(engine, "application/gzip")
	for _, name := range []string{"playground/go.js", "assets/engine-worker.js"} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return s, err
		}
		all[path.Base(name)] = console.NewIsland(text, "text/javascript; charset=utf-8")
	}
	return scripts{all, console.FolderOf(all)}, nil
})

// playground is the data of its page.
type playground struct {
	Scripts    string // the address of their folder; empty: the engine was not built
	Examples   string // JSON
	Lead, Rest template.HTML
}

// sample is a document that the playground offers.
type sample struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// playgroundOf returns the playground in a page: after what stands before the first heading.
func playgroundOf(body template.HTML, layout Layout) (*playground, error) {
	lead, rest, _ := strings.Cut(string(body), "<h2")
	p := &playground{Lead: template.HTML(lead), Rest: template.HTML("<h2" + rest)} // of the page
	s, err := loadScripts()
	if err != nil || s.files == nil {
		return p, err
	}
	p.Scripts = layout.Scripts(s.folder)
	var examples []sample
	for _, pattern := range []string{"examples/*.yaml", "examples/*/*.yaml"} {
		names, err := fs.Glob(stonetown.Examples, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := stonetown.Examples.ReadFile(name)
			if err != nil {
				return nil, err
			}
			examples = append(examples, sample{strings.TrimPrefix(name, "examples/"), string(text)})
		}
	}
	text, err := json.Marshal(examples)
	p.Examples = string(text)
	return p, err
}

// script serves a file of the playground.
func (h *Handlers) script(w http.ResponseWriter, r *http.Request) {
	s, err := loadScripts()
	if err != nil {
		h.fail(w, r)
		return
	}
	name := mux.Vars(r)["file"]
	file, ok := s.files[name]
	if !ok || mux.Vars(r)["folder"] != s.folder {
		h.RenderError(w, web.NotFound(), web.InfoOf(r.Context()))
		return
	}
	w.Header().Set("Content-Security-Policy", playgroundPolicy) // a worker has its own
	if name != engineFile {
		file.Serve(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/gzip")
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("ETag", `"`+s.folder+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.Text()))
}

// export returns the files of the playground for a static site, by their names.
func (s scripts) export() map[string][]byte {
	all := map[string][]byte{}
	for name, file := range maps.All(s.files) {
		all[name] = file.Text()
	}
	return all
}
