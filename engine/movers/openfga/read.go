// Package openfga reads what people have for OpenFGA: authorization models, in
// its language, as JSON or made of modules, relationship tuples, and the store
// files that fga model test runs.
//
// A type becomes a resource type, and its relations become relations with the
// same rewrites and the same kinds of subjects. A type user or group that is
// just what every tenant has is not defined again. Conditions become conditions
// of the types whose relations name them.
//
// Tuples are taken as far as the model allows them. OpenFGA keeps those that a
// later model forbids and passes them over in its answers, so they are left out.
// The tuples of a test become contextual tuples of each of its assertions.
//
// What has no equivalent (a condition that cannot be compiled here, a condition
// that the tuples themselves bring) is left out together with every relation
// whose members depend on it: a set that misses some of its members denies what
// the original allows, and where it is subtracted allows what that denies.
package openfga

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

// The limits of what is read. What a parser turns into a tree of many times its
// size may be less than what is read line by line.
const (
	maxFile      = 32 << 20 // bytes
	maxYAML      = 8 << 20  // bytes
	maxJSONModel = 4 << 20  // bytes
	maxDSL       = 1 << 18  // bytes without comments; what OpenFGA takes by default
	maxModules   = 1 << 20  // bytes of all modules together, comments included
	maxFiles     = 1000     // modules of a model; files of tuples of a store file
)

// Read reads a file and those that it refers to. What the file is, its name and
// its contents say:
//
//	.fga            a model in the language of OpenFGA
//	fga.mod         a model made of modules
//	.json           a model, or a list of tuples
//	.yaml, .yml     a store file (.fga.yaml), or a list of tuples
//	.jsonl, .csv    tuples, one per line
//
// Tuples without a model keep their names as far as these are allowed here, so
// that they fit the types of a model that is read on its own.
//
// Files are referred to by paths relative to the folder of the file that does,
// and none is read that lies outside the root of files.
//
// Errors begin with the file and, where it is known, the line.
func Read(files fs.FS, name string) (*movers.World, error) {
	r := &reader{files: files, world: &movers.World{}}
	if err := r.read(name); err != nil {
		return nil, err
	}
	return r.world, nil
}

type reader struct {
	files fs.FS
	world *movers.World
	// tupleFiles and tupleBytes are how many files of tuples were referred to,
	// and their length together.
	tupleFiles, tupleBytes int
}

func (r *reader) read(name string) error {
	text, err := r.text(name, maxFile)
	if err != nil {
		return err
	}
	switch kindOf(name) {
	case ".mod", ".fga":
		_, err = r.model(name, text)
		return err
	case ".json":
		if isModel, err := isJSONModel(name, text); err != nil {
			return err
		} else if isModel {
			_, err = r.model(name, text)
			return err
		}
	case ".yaml":
		d, err := openYAML(name, text)
		if err != nil {
			return err
		}
		if !d.isList() {
			return r.store(d)
		}
		tuples, err := d.tuples(d.root)
		if err != nil {
			return err
		}
		return r.onlyTuples(tuples)
	case "":
		return failed(movers.Place{File: name}, "not known by its name: a model is .fga, .json or fga.mod, a store file .fga.yaml, tuples are .json, .jsonl, .csv or .yaml")
	}
	tuples, err := tuplesOf(name, text)
	if err != nil {
		return err
	}
	return r.onlyTuples(tuples)
}

// onlyTuples takes tuples that come without a model.
func (r *reader) onlyTuples(tuples []written) (err error) {
	r.world.Relations, err = r.operations(tuples, nil)
	return err
}

// kindOf is what the name says of a file.
func kindOf(name string) string {
	if path.Base(name) == "fga.mod" {
		return ".mod"
	}
	switch ext := path.Ext(name); ext {
	case ".fga", ".json", ".jsonl", ".csv", ".yaml":
		return ext
	case ".yml":
		return ".yaml"
	}
	return ""
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
		return "", "", failed(at, "%s is not within the folder that is read", quoted(name))
	}
	if text, err = r.text(full, limit); err != nil {
		return "", "", failed(at, "cannot read %s: %v", quoted(name), err)
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
	if at.Line == 0 {
		return fmt.Errorf("%s: %s", at.File, message)
	}
	return fmt.Errorf("%s:%d: %s", at.File, at.Line, message)
}

// quoted and clip show what comes from a file, not all of it if it is long.
func quoted(s string) string { return fmt.Sprintf("%.200q", s) }

func clip(s string) string { return fmt.Sprintf("%.200s", s) }
