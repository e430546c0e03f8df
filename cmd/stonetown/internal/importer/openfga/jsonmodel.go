package openfga

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// The members that identify a JSON file: a model, a model in a response of the API, or tuples
// in a response of the API.
const (
	memberTypes  = "type_definitions"
	memberModel  = "authorization_model"
	memberTuples = "tuples"
)

// isJSONModel distinguishes a model from a list of tuples.
func isJSONModel(name, text string) (bool, error) {
	members, err := jsonMembers(name, text)
	if err != nil {
		return false, err
	}
	switch {
	case members == nil, members[memberTuples] != nil:
		return false, nil
	case members[memberTypes] != nil, members[memberModel] != nil:
		return true, nil
	}
	return false, source.Errorf(importer.Place{File: name}, "neither a model, which has type_definitions, nor a list of tuples")
}

// jsonMembers returns the members of an object, and nil for a list.
func jsonMembers(name, text string) (map[string]json.RawMessage, error) {
	if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "[") {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, misreadJSON(name, text, 0, err)
	}
	if members == nil {
		return nil, source.Errorf(importer.Place{File: name}, "not a JSON object")
	}
	return members, nil
}

// misreadJSON is an error of a JSON decoder, at its line; start is the offset of the decoded
// text.
func misreadJSON(name, text string, start int64, err error) error {
	at := importer.Place{File: name}
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at.Line = lineAt(text, start+syntax.Offset)
	case errors.As(err, &typ):
		at.Line = lineAt(text, start+typ.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return source.Errorf(at, "not JSON: it ends too early")
	}
	return source.Errorf(at, "not the JSON that is expected: %s", source.Clip(strings.TrimPrefix(err.Error(), "json: ")))
}

func lineAt(text string, offset int64) int {
	offset = max(0, min(offset, int64(len(text))))
	return 1 + strings.Count(text[:offset], "\n")
}

// protoPlace matches the position in the errors of the decoder of the API's types, which varies
// its spaces on purpose.
var protoPlace = regexp.MustCompile(`^proto:[\s\x{a0}]+(?:syntax error[\s\x{a0}]+)?\(line ([0-9]+):[0-9]+\):[\s\x{a0}]+`)

// jsonModel reads a model in the form of OpenFGA's API.
func jsonModel(name, text string) (*openfgav1.AuthorizationModel, error) {
	at := importer.Place{File: name}
	if len(text) > maxJSONModel {
		return nil, source.Errorf(at, "longer than %d bytes", maxJSONModel)
	}
	members, err := jsonMembers(name, text)
	if err != nil {
		return nil, err
	}
	if members == nil {
		return nil, source.Errorf(at, "a list, not a model")
	}
	body := []byte(text)
	if wrapped := members[memberModel]; wrapped != nil {
		body = wrapped
	}
	model := &openfgav1.AuthorizationModel{}
	if err := protojson.Unmarshal(body, model); err != nil {
		message := err.Error()
		if parts := protoPlace.FindStringSubmatch(message); parts != nil {
			message = message[len(parts[0]):]
			at.Line, _ = strconv.Atoi(parts[1])
			// A wrapped model is decoded separately, from its first line.
			at.Line += lineAt(text, int64(max(0, strings.Index(text, string(body))))) - 1
		}
		return nil, source.Errorf(at, "%s", source.Clip(strings.ReplaceAll(message, "\u00a0", " ")))
	}
	return model, nil
}
