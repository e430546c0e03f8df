// Package source reads the files of other engines: completely, within limits, and only inside
// the folder that was opened. Errors have the place of the text that cannot be read.
package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"stonetown/cmd/stonetown/internal/importer"
)

// Files is the folder to read, with all folders below it.
type Files struct{ fs.FS }

// Text reads a file of at most limit bytes of UTF-8.
func (f Files) Text(name string, limit int) (string, error) {
	at := importer.Place{File: name}
	if !fs.ValidPath(name) {
		return "", Errorf(at, "not a path within the folder that is read")
	}
	file, err := f.Open(name)
	if err != nil {
		return "", Errorf(at, "%v", reason(err))
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	switch {
	case err != nil:
		return "", Errorf(at, "%v", reason(err))
	case len(b) > limit:
		return "", Errorf(at, "longer than %d bytes", limit)
	case !utf8.Valid(b):
		return "", Errorf(at, "not UTF-8 text")
	}
	return strings.TrimPrefix(string(b), "\ufeff"), nil
}

// Referred reads a file that another file refers to, at a place, by a path relative to the
// folder of that file.
func (f Files) Referred(at importer.Place, name string, limit int) (full, text string, err error) {
	full = path.Join(path.Dir(at.File), name)
	if path.IsAbs(name) || !fs.ValidPath(full) {
		return "", "", Errorf(at, "%s is not within the folder that is read", Quoted(name))
	}
	if text, err = f.Text(full, limit); err != nil {
		return "", "", Errorf(at, "cannot read %s: %v", Quoted(name), err)
	}
	return full, text, nil
}

// reason returns an error without the path, which already stands before it.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

const maxMessage = 1000 // bytes; messages quote the files

// Errorf returns an error at a place, in the format of compilers.
func Errorf(at importer.Place, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	if at.Line == 0 {
		return fmt.Errorf("%s: %s", at.File, message)
	}
	return fmt.Errorf("%s:%d: %s", at.File, at.Line, message)
}

// Quoted and Clip return text of a file for messages, shortened if it is long.
func Quoted(s string) string { return fmt.Sprintf("%.200q", s) }

// Clip is Quoted without quotes.
func Clip(s string) string { return fmt.Sprintf("%.200s", s) }

// First stores the place of a name, unless the name has one.
func First[K comparable](places map[K]importer.Place, k K, at importer.Place) {
	if _, ok := places[k]; !ok {
		places[k] = at
	}
}
