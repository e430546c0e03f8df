// Package spicedb reads the files of SpiceDB: schemas, relationships and validation files, the
// YAML that zed validate runs.
//
// A definition becomes a resource type. Its relations become direct relations with the same
// kinds of subjects, its permissions become derived relations, and caveats become conditions of
// the types whose relations name them. A definition user or group that equals the built-in type
// is not defined again.
//
// The languages differ. A construct that this product cannot express (an arrow from a
// permission, a caveat that is not a valid condition here) is left out together with everything
// that depends on it, because a permission that lacks one part of its expression may allow what
// the original denies. Requirements that this product does not have (that tuples of one
// relation have an expiration, or that only those have a certain caveat) are in the report.
package spicedb

import (
	"io/fs"
	"path"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// The limits of files. A schema has far fewer words than a file has relationships, and each
// costs more.
const (
	maxFile   = 32 << 20 // bytes
	maxSchema = 1 << 19  // bytes, of one file
	maxFiles  = 200      // that make up a schema

)

// Read reads a file and the files that it refers to. The extension determines the kind of the
// file:
//
//	.zed, .schema                a schema
//	.yaml, .yml                  a validation file
//	.txt, .rel, .relationships   relationships, one per line
//
// Relationships without a schema keep their names as far as they are valid here, so that they
// fit the types of a schema that is imported separately.
//
// Errors begin with the file and, if it is known, the line.
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
