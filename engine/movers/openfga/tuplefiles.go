package openfga

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"stonetown/engine/movers"
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
	return nil, failed(movers.Place{File: name}, "not known by its name: tuples are .json, .jsonl, .csv or .yaml")
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
			return w, failed(d.at(n), "a condition without a name")
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

// refuse makes an error of a member that is not known: on a tuple it could
// change what that means.
func (d *document) refuse(p pair) error { return failed(p.at, "%s is not known here", quoted(p.key)) }

// jsonTuples reads a list of tuples, or what the API of OpenFGA returns for
// them: {"tuples": [{"key": {...}, "timestamp": ...}]}.
func jsonTuples(name, text string) ([]written, error) {
	j := &jsonReader{name: name, text: text, decoder: json.NewDecoder(strings.NewReader(text)), line: 1}
	var tuples []written
	token, err := j.decoder.Token()
	switch {
	case err != nil:
		return nil, j.misread(err)
	case token == json.Delim('['):
		if tuples, err = j.list(); err != nil {
			return nil, err
		}
	case token == json.Delim('{'):
		if tuples, err = j.response(); err != nil {
			return nil, err
		}
	default:
		return nil, failed(movers.Place{File: name}, "not a list of tuples")
	}
	if _, err := j.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, failed(j.place(), "something follows the tuples")
	}
	return tuples, nil
}

// jsonReader reads values one by one, so that it knows their lines.
type jsonReader struct {
	name, text string
	decoder    *json.Decoder
	line       int   // that offset stands in
	offset     int64 // up to which lines are counted
}

func (j *jsonReader) misread(err error) error { return misreadJSON(j.name, j.text, 0, err) }

// place is where the next value begins.
func (j *jsonReader) place() movers.Place {
	offset := j.decoder.InputOffset()
	for offset < int64(len(j.text)) && strings.IndexByte(" \t\r\n,:", j.text[offset]) >= 0 {
		offset++
	}
	j.line += strings.Count(j.text[j.offset:offset], "\n")
	j.offset = offset
	return movers.Place{File: j.name, Line: j.line}
}

// list reads the elements of a list that was begun.
func (j *jsonReader) list() ([]written, error) {
	var tuples []written
	for j.decoder.More() {
		at := j.place()
		var raw json.RawMessage
		if err := j.decoder.Decode(&raw); err != nil {
			return nil, j.misread(err)
		}
		w, err := jsonTuple(at, raw)
		if err != nil {
			return nil, err
		}
		tuples = append(tuples, w)
	}
	if _, err := j.decoder.Token(); err != nil { // the bracket
		return nil, j.misread(err)
	}
	return tuples, nil
}

// response reads the members of an object that was begun.
func (j *jsonReader) response() ([]written, error) {
	var tuples []written
	for j.decoder.More() {
		member, err := j.decoder.Token()
		if err != nil {
			return nil, j.misread(err)
		}
		if member != memberTuples {
			var skipped json.RawMessage
			if err := j.decoder.Decode(&skipped); err != nil {
				return nil, j.misread(err)
			}
			if text := string(skipped); member == "continuation_token" && text != `""` && text != "null" {
				return nil, failed(movers.Place{File: j.name}, "these are not all tuples: a continuation token says that more follow")
			}
			continue
		}
		at := j.place()
		if token, err := j.decoder.Token(); err != nil {
			return nil, j.misread(err)
		} else if token != json.Delim('[') {
			return nil, failed(at, "tuples must be a list")
		}
		more, err := j.list()
		if err != nil {
			return nil, err
		}
		tuples = append(tuples, more...)
	}
	if _, err := j.decoder.Token(); err != nil {
		return nil, j.misread(err)
	}
	return tuples, nil
}

func jsonTuple(at movers.Place, raw []byte) (written, error) {
	w := written{at: at}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return w, failed(at, "a tuple must be a JSON object")
	}
	if inner := members["key"]; inner != nil {
		if err := known(at, members, "key", "timestamp"); err != nil {
			return w, err
		}
		return jsonTuple(at, inner)
	}
	if err := known(at, members, "user", "relation", "object", "condition"); err != nil {
		return w, err
	}
	for _, f := range w.fields() {
		if members[f.name] != nil && json.Unmarshal(members[f.name], f.value) != nil {
			return w, failed(at, "%s must be a text", f.name)
		}
	}
	if raw := members["condition"]; raw != nil && string(raw) != "null" {
		var condition map[string]json.RawMessage
		if json.Unmarshal(raw, &condition) != nil {
			return w, failed(at, "a condition must be an object")
		}
		if err := known(at, condition, "name", "context"); err != nil {
			return w, err
		}
		if json.Unmarshal(condition["name"], &w.condition) != nil || w.condition == "" {
			return w, failed(at, "a condition without a name")
		}
		if context := condition["context"]; context != nil {
			var err error
			if w.context, err = jsonObject(context); err != nil {
				return w, failed(at, "%v", err)
			}
		}
	}
	return w, w.incomplete()
}

func known(at movers.Place, members map[string]json.RawMessage, names ...string) error {
	n := 0
	for _, name := range names {
		if _, ok := members[name]; ok {
			n++
		}
	}
	if n == len(members) {
		return nil
	}
	return failed(at, "a tuple has members that are not known, besides %s", strings.Join(names, ", "))
}

var errContext = errors.New("the context is not a JSON object")

// jsonObject decodes a JSON object or null.
func jsonObject(text []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, errContext
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errContext
	}
	return values, nil
}

// jsonLines reads tuples, one per line.
func jsonLines(name, text string) ([]written, error) {
	var tuples []written
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		w, err := jsonTuple(movers.Place{File: name, Line: number}, []byte(line))
		if err != nil {
			return nil, err
		}
		tuples = append(tuples, w)
	}
	return tuples, nil
}

// The columns of a CSV file, in any order.
const (
	userType         = "user_type"
	userID           = "user_id"
	userRelation     = "user_relation"
	relationName     = "relation"
	objectType       = "object_type"
	objectID         = "object_id"
	conditionName    = "condition_name"
	conditionContext = "condition_context"
)

// csvTuples reads tuples below a line that names their columns.
func csvTuples(name, text string) ([]written, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return nil, misreadCSV(name, err)
	}
	columns, err := csvColumns(movers.Place{File: name, Line: 1}, header)
	if err != nil {
		return nil, err
	}
	var tuples []written
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return tuples, nil
		}
		if err != nil {
			return nil, misreadCSV(name, err)
		}
		field := func(column string) string {
			if i, ok := columns[column]; ok {
				return record[i]
			}
			return ""
		}
		line, _ := reader.FieldPos(0)
		w := written{
			at:   movers.Place{File: name, Line: line},
			user: field(userType) + ":" + field(userID), relation: field(relationName),
			object: field(objectType) + ":" + field(objectID), condition: field(conditionName),
		}
		if relation := field(userRelation); relation != "" {
			w.user += "#" + relation
		}
		if context := strings.TrimSpace(field(conditionContext)); context != "" {
			if w.condition == "" {
				return nil, failed(w.at, "a %s without a %s", conditionContext, conditionName)
			}
			if w.context, err = jsonObject([]byte(context)); err != nil {
				return nil, failed(w.at, "%v", err)
			}
		}
		tuples = append(tuples, w)
	}
}

func csvColumns(at movers.Place, header []string) (map[string]int, error) {
	known := []string{userType, userID, userRelation, relationName, objectType, objectID, conditionName, conditionContext}
	columns := map[string]int{}
	for i, column := range header {
		column = strings.TrimSpace(column)
		if _, ok := columns[column]; ok {
			return nil, failed(at, "column %s stands twice", quoted(column))
		}
		found := false
		for _, name := range known {
			found = found || name == column
		}
		if !found {
			return nil, failed(at, "column %s is not known, these are: %s", quoted(column), strings.Join(known, ", "))
		}
		columns[column] = i
	}
	for _, required := range []string{userType, userID, relationName, objectType, objectID} {
		if _, ok := columns[required]; !ok {
			return nil, failed(at, "column %s is missing", required)
		}
	}
	return columns, nil
}

func misreadCSV(name string, err error) error {
	at := movers.Place{File: name}
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		at.Line = parse.Line
		return failed(at, "%v", parse.Err)
	}
	if errors.Is(err, io.EOF) {
		return failed(at, "empty")
	}
	return failed(at, "%v", err)
}
