package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxBody is the largest request body, in bytes.
	MaxBody = 1 << 20
	// MaxDepth is how deep objects and arrays of a body may nest.
	MaxDepth = 32
)

// buffers are reused, because every request of some clients is a large batch of checks. Buffers
// that are larger than keep are not reused.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keep = 1 << 20

func release(b *bytes.Buffer) {
	if b.Cap() <= keep {
		b.Reset()
		buffers.Put(b)
	}
}

// DecodeJSON reads the body of a request into v. Members that v does not have
// are ignored, names are matched exactly. The error is an [*Error]:
// payload_too_large, invalid_json, or validation_failed if a value has the
// wrong type.
func DecodeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		return BodyError(err)
	}
	return Decode(b.Bytes(), v)
}

// DecodeOptionalJSON is DecodeJSON for a body that may be absent, which leaves v unchanged.
func DecodeOptionalJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		return BodyError(err)
	}
	if b.Len() == 0 {
		return nil
	}
	return Decode(b.Bytes(), v)
}

// DecodePatch decodes a change, in which null and absent differ: null is refused except for
// members of type [jsontext.Value].
func DecodePatch(w http.ResponseWriter, r *http.Request, v any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		return BodyError(err)
	}
	if err := Decode(b.Bytes(), v); err != nil {
		return err
	}
	form := reflect.ValueOf(v).Elem()
	if form.Kind() != reflect.Struct {
		return nil
	}
	var given map[string]jsontext.Value
	if err := Decode(b.Bytes(), &given); err != nil {
		return err
	}
	var refused Validation
	for i := range form.NumField() {
		field := form.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type != reflect.TypeFor[jsontext.Value]() && given[name].Kind() == 'n' {
			refused.Add(name, "type_invalid", "must not be null")
		}
	}
	return refused.Err()
}

// BodyError is the reason for which a body could not be read.
func BodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large",
			Message: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit),
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalidJSON("the body is incomplete")
	}
	return fmt.Errorf("read body: %w", err)
}

func invalidJSON(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "invalid_json", Message: message}
}

// Decode reads JSON as DecodeJSON does the body of a request.
func Decode(text []byte, v any) error {
	if depth(text) > MaxDepth {
		return invalidJSON(fmt.Sprintf("the body is nested more than %d levels deep", MaxDepth))
	}
	if string(bytes.TrimSpace(text)) == "null" { // the library would accept it
		return ValidationFailed(FieldError{"", "type_invalid", "the body must not be null"})
	}
	err := json.Unmarshal(text, v)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		field := strings.TrimPrefix(string(semantic.JSONPointer), "/")
		message := "has the wrong type"
		if semantic.JSONKind != 0 {
			message = fmt.Sprintf("must not be a %s", kindNames[semantic.JSONKind.String()])
		}
		if field == "" {
			return ValidationFailed(FieldError{"", "type_invalid", "the body " + message})
		}
		return ValidationFailed(FieldError{field, "type_invalid", field + " " + message})
	}
	return invalidJSON("the body is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "))
}

// kindNames are the names of JSON kinds in error messages.
var kindNames = map[string]string{
	"null": "null", "true": "boolean", "false": "boolean", "string": "string", "number": "number",
	"{": "object", "}": "object", "[": "array", "]": "array",
}

// depth returns the nesting depth of a valid JSON text, and an upper bound for the parser if
// the text is not valid.
func depth(text []byte) int {
	deepest, level := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}
	return deepest
}

// appender is a body with its own, faster encoding.
type appender interface {
	AppendJSON([]byte) []byte
}

// WriteJSON sends a response. An error means that the response was not sent completely.
func WriteJSON(w http.ResponseWriter, status int, body any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer release(b)
	if a, ok := body.(appender); ok {
		b.Write(a.AppendJSON(b.AvailableBuffer()))
	} else if err := json.MarshalWrite(b, body, json.Deterministic(true)); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	w.Header()["Content-Type"] = applicationJSON
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	return err
}

var applicationJSON = []string{"application/json"}
