package web

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// ParseTemplates parses the templates of pages, templates/*.html, each with the layout. The result
// has them by their names.
func ParseTemplates(files fs.FS, functions template.FuncMap) (map[string]*template.Template, error) {
	layout, err := template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	templates := map[string]*template.Template{}
	for _, name := range names {
		page, err := layout.Clone()
		if err == nil {
			page, err = page.ParseFS(files, name)
		}
		if err != nil {
			return nil, err
		}
		templates[path.Base(name)] = page
	}
	return templates, nil
}

// ReadForm reads the query and the form of a request for a page. The form has at most limit bytes.
// It fails with [*Error].
func ReadForm(w http.ResponseWriter, r *http.Request, limit int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	err := r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &Error{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large", Message: fmt.Sprintf("the form must have at most %d KiB", limit>>10)}
	}
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Code: "validation_failed", Message: "the form is not valid"}
	}
	return nil
}

// Date returns an instant of a response as a page shows it; empty if it is none.
func Date(text any) string {
	s, _ := text.(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return ""
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}
