// Package spicedb reads what people have for SpiceDB: schemas, relationships and
// validation files, the YAML that zed validate runs.
//
// A definition becomes a resource type. Its relations become direct relations
// with the same kinds of subjects, its permissions relations that are only
// derived, and caveats become conditions of the types whose relations name them.
// A definition user or group that is just what every tenant has is not defined
// again.
//
// The languages do not mean quite the same. What this product can not express
// (self, all) is left out together with everything whose answers depend on it,
// since a permission that misses one part of its expression may allow what the
// original denies. What it does not ask for (that tuples of one relation have an
// expiration, that only those have a certain caveat) is said in the report.
package spicedb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"stonetown/engine/movers"
)

// The limits of what is read. A schema has far fewer words than there are
// relationships, and each costs more.
const (
	maxFile   = 32 << 20 // bytes
	maxSchema = 1 << 19  // bytes, of one file
	maxFiles  = 200      // that make up a schema

	maxMessage = 1000 // bytes; messages show what comes from the files
)

// Read reads a file and those that it refers to. What the file is, its name
// says:
//
//	.zed, .schema                a schema
//	.yaml, .yml                  a validation file
//	.txt, .rel, .relationships   relationships, one per line
//
// Relationships without a schema keep their names as far as these are allowed
// here, so that they fit the types of a schema that is read on its own.
//
// Errors begin with the file and, where it is known, the line.
func Read(files fs.FS, name string) (*movers.World, error) {
	r := &reader{files: files, world: &movers.World{}}
	text, err := r.text(name, maxFile)
	if err != nil {
		return nil, err
	}
	switch path.Ext(name) {
	case ".zed", ".schema":
		_, err = r.schema(name, text, nil)
	case ".yaml", ".yml":
		err = r.validation(name, text)
	case ".txt", ".rel", ".relationships":
		err = r.relationships(name, text, nil, nil)
	default:
		err = failed(movers.Place{File: name}, "not known by its name: a schema ends in .zed or .schema, a validation file in .yaml or .yml, relationships in .txt, .rel or .relationships")
	}
	if err != nil {
		return nil, err
	}
	return r.world, nil
}

type reader struct {
	files fs.FS
	world *movers.World
}

// text reads a file whole.
func (r *reader) text(name string, limit int) (string, error) {
	at := movers.Place{File: name}
	if !fs.ValidPath(name) {
		return "", failed(at, "not a path within the folder that is read")
	}
	f, err := r.files.Open(name)
	if err != nil {
		return "", failed(at, "%v", reason(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return "", failed(at, "%v", reason(err))
	case len(b) > limit:
		return "", failed(at, "longer than %d bytes", limit)
	case !utf8.Valid(b):
		return "", failed(at, "not UTF-8 text")
	}
	return strings.TrimPrefix(string(b), "\ufeff"), nil
}

// referred reads a file that another refers to by a path relative to its own
// folder.
func (r *reader) referred(at movers.Place, name string, limit int) (full, text string, err error) {
	full = path.Join(path.Dir(at.File), name)
	if path.IsAbs(name) || !fs.ValidPath(full) {
		return "", "", failed(at, "%q is not within the folder that is read", name)
	}
	if text, err = r.text(full, limit); err != nil {
		return "", "", failed(at, "cannot read %q: %v", name, err)
	}
	return full, text, nil
}

// reason is an error without the path, which stands before it already.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// failed is an error at a place.
func failed(at movers.Place, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	if at.Line == 0 {
		return fmt.Errorf("%s: %s", at.File, message)
	}
	return fmt.Errorf("%s:%d: %s", at.File, at.Line, message)
}

// quoted and clip show what comes from a file, not all of it if it is long.
func quoted(s string) string { return fmt.Sprintf("%.200q", s) }

func clip(s string) string { return fmt.Sprintf("%.200s", s) }
