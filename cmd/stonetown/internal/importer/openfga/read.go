// Package openfga reads the files of OpenFGA: authorization models, in its language, as JSON or
// as modules, relationship tuples, and the store files that fga model test runs.
//
// A type becomes a resource type, and its relations become relations with the same rewrites and
// the same kinds of subjects. A type user or group that equals the built-in type is not defined
// again. Conditions become conditions of the types whose relations name them.
//
// Tuples that the model does not allow are left out. OpenFGA stores tuples that a later model
// forbids, and ignores them in its answers. The tuples of a test become contextual tuples of
// each of its assertions.
//
// A construct without an equivalent (a condition that cannot be compiled here, a condition in
// the tuples themselves) is left out together with every relation that depends on it: a set
// that lacks some of its members denies what the original allows, and where it is subtracted it
// allows what the original denies.
package openfga

import (
	"io/fs"
	"path"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// The limits of files. A file that becomes a tree of many times its size has a lower limit than
// one that is read line by line.
const (
	maxFile      = 32 << 20 // bytes
	maxYAML      = 8 << 20  // bytes
	maxJSONModel = 4 << 20  // bytes
	maxDSL       = 1 << 18  // bytes without comments; the default limit of OpenFGA
	maxModules   = 1 << 20  // bytes of all modules together, comments included
	maxFiles     = 1000     // modules of a model; files of tuples of a store file
)

// Read reads a file and the files that it refers to. The name and the content determine the
// kind of the file:
//
//	.fga            a model in the language of OpenFGA
//	fga.mod         a model made of modules
//	.json           a model, or a list of tuples
//	.yaml, .yml     a store file (.fga.yaml), or a list of tuples
//	.jsonl, .csv    tuples, one per line
//
// Tuples without a model keep their names as far as they are valid here, so that they fit the
// types of a model that is imported separately.
//
// Files refer to others by paths relative to their own folder. Files outside the root are not
// read.
//
// Errors begin with the file and, if it is known, the line.
func Read(files fs.FS, name string) (*importer.Data, error) {
	r := &reader{files: source.Files{FS: files}, data: &importer.Data{}}
	if err := r.read(name); err != nil {
		return nil, err
	}
	return r.data, nil
}

type reader struct {
	files source.Files
	data  *importer.Data
	// tupleFiles and tupleBytes are the number and the total size of the files of tuples so
	// far.
	tupleFiles, tupleBytes int
}

func (r *reader) read(name string) error {
	text, err := r.files.Text(name, maxFile)
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
		return source.Errorf(importer.Place{File: name}, "unknown file name: a model is .fga, .json or fga.mod, a store file .fga.yaml, tuples are .json, .jsonl, .csv or .yaml")
	}
	tuples, err := tuplesOf(name, text)
	if err != nil {
		return err
	}
	return r.onlyTuples(tuples)
}

// onlyTuples imports tuples without a model.
func (r *reader) onlyTuples(tuples []written) (err error) {
	r.data.Relations, err = r.operations(tuples, nil)
	return err
}

// kindOf returns the kind of a file by its name.
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
