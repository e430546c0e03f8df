// Package spicedb reads what people have for SpiceDB: schemas, relationships and
// validation files, the YAML that zed validate runs.
//
// A definition becomes a resource type. Its relations become direct relations
// with the same kinds of subjects, its permissions relations that are only
// derived, and caveats become conditions of the types whose relations name them.
// A definition user or group that is just what every tenant has is not defined
// again.
//
// The languages do not mean quite the same. What this product cannot express (an
// arrow from a permission, a caveat that is no condition here) is left out
// together with everything that depends on it, since a permission that misses one part of its expression may allow what the
// original denies. What it does not ask for (that tuples of one relation have an
// expiration, that only those have a certain caveat) is said in the report.
package spicedb

import (
	"io/fs"
	"path"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// The limits of what is read. A schema has far fewer words than there are
// relationships, and each costs more.
const (
	maxFile   = 32 << 20 // bytes
	maxSchema = 1 << 19  // bytes, of one file
	maxFiles  = 200      // that make up a schema

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
func Read(files fs.FS, name string) (*importer.Data, error) {
	r := &reader{files: source.Files{FS: files}, data: &importer.Data{}}
	text, err := r.files.Text(name, maxFile)
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
		err = source.Errorf(importer.Place{File: name}, "unknown file name: a schema ends in .zed or .schema, a validation file in .yaml or .yml, relationships in .txt, .rel or .relationships")
	}
	if err != nil {
		return nil, err
	}
	return r.data, nil
}

type reader struct {
	files source.Files
	data  *importer.Data
}
