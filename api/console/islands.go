package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for a text
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"stonetown/api/web"
)

// Islands are the parts of pages that are better with a script: where a person draws or types code.
// They are built from the sources in web ("make console") into dist, so that the program is built
// without npm. A page works without its island, from which an island gets its data, too: the
// browser has no token with which a script could call operations.

// scripts is the path below which the islands are, in a folder that is named by a hash of all files:
// those of another build have another path, so browsers keep them for good.
const scripts = home + "/assets/"

// IslandStyle is the style sheet of the islands, for pages that are served elsewhere.
//
//go:embed assets/islands.css
var IslandStyle string

// Island is a file of the islands.
type Island struct {
	document   web.Document
	compressed func() []byte
}

// Text is the file.
func (i Island) Text() []byte { return i.document.Body }

// Serve sends the file, compressed to clients that accept it.
func (i Island) Serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept-Encoding")
	d := i.document
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		d.Body = i.compressed()
	}
	d.Serve(w, r)
}

// Islands returns the files by their names.
func Islands() (map[string]Island, error) {
	entries, err := fs.ReadDir(files, "dist")
	if err != nil {
		return nil, err
	}
	all := map[string]Island{}
	for _, entry := range entries {
		body, err := fs.ReadFile(files, "dist/"+entry.Name())
		if err != nil {
			return nil, err
		}
		mediaType := "text/plain; charset=utf-8"
		if path.Ext(entry.Name()) == ".js" {
			mediaType = "text/javascript; charset=utf-8"
		}
		all[entry.Name()] = NewIsland(body, mediaType)
	}
	return all, nil
}

// NewIsland returns a file that is part of the program, and has another path when it changes.
func NewIsland(body []byte, mediaType string) Island {
	return Island{
		web.Document{Body: body, MediaType: mediaType, CacheControl: "public, max-age=31536000, immutable"},
		sync.OnceValue(func() []byte { return compress(body) }),
	}
}

// FolderOf returns a name for the folder of some files, which is another one if any of them changes.
func FolderOf(all map[string]Island) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		body := all[name].document.Body
		fmt.Fprintf(sum, "%s %d\n", name, len(body))
		sum.Write(body)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// islands returns the files by their paths, and the path of their folder.
func islands() (all map[string]Island, folder string, err error) {
	named, err := Islands()
	folder = scripts + FolderOf(named) + "/"
	all = map[string]Island{}
	for name, file := range named {
		all[folder+name] = file
	}
	return all, folder, err
}

// compress returns a text in the format of gzip.
func compress(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
