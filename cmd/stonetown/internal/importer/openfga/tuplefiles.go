package openfga

import (
	"go.yaml.in/yaml/v3"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// tuplesOf reads a file of tuples.
func tuplesOf(name, text string) ([]written, error) {
	switch kindOf(name) {
	case ".json":
		return jsonTuples(name, text)
	case ".jsonl":
		return jsonLines(name, text)
	case ".csv":
		return csvTuples(name, text)
	case ".yaml":
		d, err := openYAML(name, text)
		if err != nil {
			return nil, err
		}
		return d.tuples(d.root)
	}
	return nil, source.Errorf(importer.Place{File: name}, "unknown file name: tuples are .json, .jsonl, .csv or .yaml")
}

// tuples reads a list of tuples.
func (d *document) tuples(n *yaml.Node) ([]written, error) {
	items, err := d.items(n)
	if err != nil {
		return nil, err
	}
	tuples := make([]written, 0, len(items))
	for _, item := range items {
		w, err := d.tuple(item)
		if err != nil {
			return nil, err
		}
		tuples = append(tuples, w)
	}
	return tuples, nil
}

func (d *document) tuple(n *yaml.Node) (written, error) {
	w := written{at: d.at(n)}
	members, err := d.members(n, d.refuse, "user", "relation", "object", "condition")
	if err != nil {
		return w, err
	}
	for _, f := range w.fields() {
		if members[f.name] == nil {
			continue
		}
		if *f.value, err = d.scalar(members[f.name]); err != nil {
			return w, err
		}
	}
	if n := members["condition"]; n != nil {
		if members, err = d.members(n, d.refuse, "name", "context"); err != nil {
			return w, err
		}
		if members["name"] == nil {
			return w, source.Errorf(d.at(n), "a condition without a name")
		}
		if w.condition, err = d.scalar(members["name"]); err != nil {
			return w, err
		}
		if members["context"] != nil {
			if w.context, err = d.object(members["context"]); err != nil {
				return w, err
			}
		}
	}
	return w, w.incomplete()
}

// refuse is the error of an unknown member, which could change the meaning of the tuple.
func (d *document) refuse(p pair) error {
	return source.Errorf(p.at, "%s is not known here", source.Quoted(p.key))
}
