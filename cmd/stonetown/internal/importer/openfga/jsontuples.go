package openfga

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// jsonTuples reads a list of tuples, or the response of OpenFGA's API with tuples: {"tuples":
// [{"key": {...}, "timestamp": ...}]}.
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
		return nil, source.Errorf(importer.Place{File: name}, "not a list of tuples")
	}
	if _, err := j.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, source.Errorf(j.place(), "unexpected data after the tuples")
	}
	return tuples, nil
}

// jsonReader reads values one by one, so that it has their lines.
type jsonReader struct {
	name, text string
	decoder    *json.Decoder
	line       int   // the line of offset
	offset     int64 // lines are counted up to this offset
}

func (j *jsonReader) misread(err error) error { return misreadJSON(j.name, j.text, 0, err) }

// place returns the beginning of the next value.
func (j *jsonReader) place() importer.Place {
	offset := j.decoder.InputOffset()
	for offset < int64(len(j.text)) && strings.IndexByte(" \t\r\n,:", j.text[offset]) >= 0 {
		offset++
	}
	j.line += strings.Count(j.text[j.offset:offset], "\n")
	j.offset = offset
	return importer.Place{File: j.name, Line: j.line}
}

// list reads the elements of a list after its opening bracket.
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
	if _, err := j.decoder.Token(); err != nil { // the closing bracket
		return nil, j.misread(err)
	}
	return tuples, nil
}

// response reads the members of an object after its opening brace.
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
				return nil, source.Errorf(importer.Place{File: j.name}, "the list is incomplete: it has a continuation token")
			}
			continue
		}
		at := j.place()
		if token, err := j.decoder.Token(); err != nil {
			return nil, j.misread(err)
		} else if token != json.Delim('[') {
			return nil, source.Errorf(at, "tuples must be a list")
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

func jsonTuple(at importer.Place, raw []byte) (written, error) {
	w := written{at: at}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return w, source.Errorf(at, "a tuple must be a JSON object")
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
			return w, source.Errorf(at, "%s must be a text", f.name)
		}
	}
	if raw := members["condition"]; raw != nil && string(raw) != "null" {
		var condition map[string]json.RawMessage
		if json.Unmarshal(raw, &condition) != nil {
			return w, source.Errorf(at, "a condition must be an object")
		}
		if err := known(at, condition, "name", "context"); err != nil {
			return w, err
		}
		if json.Unmarshal(condition["name"], &w.condition) != nil || w.condition == "" {
			return w, source.Errorf(at, "a condition without a name")
		}
		if context := condition["context"]; context != nil {
			var err error
			if w.context, err = jsonObject(context); err != nil {
				return w, source.Errorf(at, "%v", err)
			}
		}
	}
	return w, w.incomplete()
}

func known(at importer.Place, members map[string]json.RawMessage, names ...string) error {
	n := 0
	for _, name := range names {
		if _, ok := members[name]; ok {
			n++
		}
	}
	if n == len(members) {
		return nil
	}
	return source.Errorf(at, "a tuple has members that are not known, besides %s", strings.Join(names, ", "))
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

// jsonLines reads tuples, one on each line.
func jsonLines(name, text string) ([]written, error) {
	var tuples []written
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		w, err := jsonTuple(importer.Place{File: name, Line: number}, []byte(line))
		if err != nil {
			return nil, err
		}
		tuples = append(tuples, w)
	}
	return tuples, nil
}
