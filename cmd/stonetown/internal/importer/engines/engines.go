// Package engines reads a file of any engine that [importer] has a reader for.
package engines

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/native"
	"stonetown/cmd/stonetown/internal/importer/openfga"
	"stonetown/cmd/stonetown/internal/importer/spicedb"
)

// Engine is an engine with supported files.
type Engine string

const (
	Stonetown Engine = "stonetown"
	OpenFGA   Engine = "openfga"
	SpiceDB   Engine = "spicedb"
)

// ErrUnknownFile is returned for a file whose engine cannot be told by its name.
var ErrUnknownFile = errors.New("unknown kind of file")

// Read reads a file and those that it refers to. Without an engine, the name and the content of the
// file decide.
func Read(files fs.FS, name string, from Engine) (_ *importer.Data, err error) {
	if from == "" {
		if from, err = guess(files, name); err != nil {
			return nil, err
		}
	}
	switch from {
	case Stonetown:
		return native.Read(files, name)
	case OpenFGA:
		return openfga.Read(files, name)
	case SpiceDB:
		return spicedb.Read(files, name)
	}
	return nil, fmt.Errorf("the engine is %q; it must be %s, %s or %s", string(from), Stonetown, OpenFGA, SpiceDB)
}

// guess returns the engine of a file.
func guess(files fs.FS, name string) (Engine, error) {
	switch path.Ext(name) {
	case ".zed", ".schema", ".txt", ".rel", ".relationships":
		return SpiceDB, nil
	case ".fga", ".mod", ".json", ".jsonl", ".csv":
		return OpenFGA, nil
	case ".yaml", ".yml":
	default:
		return "", fmt.Errorf("%s: %w", name, ErrUnknownFile)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return "", err
	}
	var members map[string]yaml.Node
	if yaml.NewDecoder(bytes.NewReader(text)).Decode(&members) == nil {
		if native.Is(members) {
			return Stonetown, nil
		}
		for _, name := range []string{"schema", "schemaFile", "relationships", "relationshipsFile", "validation", "assertions"} {
			if _, found := members[name]; found {
				return SpiceDB, nil
			}
		}
	}
	return OpenFGA, nil
}
