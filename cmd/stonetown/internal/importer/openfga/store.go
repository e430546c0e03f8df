package openfga

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// store reads a store file: a model, tuples, and tests.
func (r *reader) store(d *document) error {
	members, err := d.members(d.root, r.passOver("store file"),
		"name", "model", "model_file", "tuples", "tuple_file", "tuple_files", "tests")
	if err != nil {
		return err
	}
	m, err := r.modelOf(d, members)
	if err != nil {
		return err
	}
	tuples, err := r.tuplesOf(d, members)
	if err != nil {
		return err
	}
	if r.data.Relations, err = r.operations(tuples, m); err != nil {
		return err
	}
	tests := members["tests"]
	if tests == nil {
		return nil
	}
	if m == nil {
		return source.Errorf(d.at(tests), "tests need a model, and the file has none")
	}
	t := tester{model: m, document: d, reader: r, left: maxAssertions}
	return t.tests(tests)
}

// passOver reports an unknown member.
func (r *reader) passOver(what string) func(pair) error {
	return func(p pair) error {
		r.data.Find(p.at, importer.Unsupported, fmt.Sprintf("%s of a %s is not known and is left out", source.Quoted(p.key), what))
		return nil
	}
}

func (r *reader) modelOf(d *document, members map[string]*yaml.Node) (*model, error) {
	here, there := members["model"], members["model_file"]
	switch {
	case here != nil && there != nil:
		return nil, source.Errorf(d.at(there), "model and model_file cannot both be given")
	case here != nil:
		text, err := d.scalar(here)
		if err != nil {
			return nil, err
		}
		n, _ := d.see(here)
		return r.dsl(d.name, text, d, source.Lines(d.lines, n))
	case there != nil:
		name, err := d.scalar(there)
		if err != nil {
			return nil, err
		}
		full, text, err := r.files.Referred(d.at(there), name, maxJSONModel)
		if err != nil {
			return nil, err
		}
		return r.model(full, text)
	}
	return nil, nil
}

// tuplesOf reads the tuples of a store file or of a test: those in the file and those in the
// files that it names.
func (r *reader) tuplesOf(d *document, members map[string]*yaml.Node) ([]written, error) {
	var all []written
	if n := members["tuples"]; n != nil {
		tuples, err := d.tuples(n)
		if err != nil {
			return nil, err
		}
		all = tuples
	}
	var names []located
	if n := members["tuple_file"]; n != nil {
		name, err := d.scalar(n)
		if err != nil {
			return nil, err
		}
		names = append(names, located{name, d.at(n)})
	}
	if n := members["tuple_files"]; n != nil {
		more, err := d.texts(n)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	for _, name := range names {
		if r.tupleFiles++; r.tupleFiles > maxFiles {
			return nil, source.Errorf(name.at, "more than %d files of tuples", maxFiles)
		}
		full, text, err := r.files.Referred(name.at, name.text, maxFile-r.tupleBytes)
		if err != nil {
			return nil, err
		}
		r.tupleBytes += len(text)
		tuples, err := tuplesOf(full, text)
		if err != nil {
			return nil, err
		}
		all = append(all, tuples...)
	}
	return all, nil
}
