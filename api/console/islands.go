package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
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

// island is a file of the islands.
type island struct {
	document   web.Document
	compressed func() []byte
}

// serve sends the file, compressed to clients that accept it.
func (i island) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept-Encoding")
	d := i.document
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		d.Body = i.compressed()
	}
	d.Serve(w, r)
}

// islands returns the files by their paths, and the path of their folder.
func islands() (all map[string]island, folder string, err error) {
	entries, err := fs.ReadDir(files, "dist")
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	bodies := map[string][]byte{}
	for _, entry := range entries {
		body, err := fs.ReadFile(files, "dist/"+entry.Name())
		if err != nil {
			return nil, "", err
		}
		bodies[entry.Name()] = body
		fmt.Fprintf(sum, "%s %d\n", entry.Name(), len(body))
		sum.Write(body)
	}
	folder = scripts + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"
	all = map[string]island{}
	for name, body := range bodies {
		mediaType := "text/plain; charset=utf-8"
		if path.Ext(name) == ".js" {
			mediaType = "text/javascript; charset=utf-8"
		}
		all[folder+name] = island{
			web.Document{Body: body, MediaType: mediaType, CacheControl: "public, max-age=31536000, immutable"},
			sync.OnceValue(func() []byte { return compress(body) }),
		}
	}
	return all, folder, nil
}

// compress returns a text in the format of gzip.
func compress(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
