package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/text"
)

// Validation collects the errors of a request. Its zero value is ready.
type Validation struct{ Faults []FieldError }

// Add adds an error of a field; the message continues after the field's name.
func (v *Validation) Add(field, code, message string) {
	v.Faults = append(v.Faults, FieldError{Field: field, Code: code, Message: field + " " + message})
}

// Err returns validation_failed, or nil if there are no errors.
func (v *Validation) Err() error {
	if len(v.Faults) == 0 {
		return nil
	}
	return ValidationFailed(v.Faults...)
}

// Text requires a value that every database can store: PostgreSQL accepts no NUL, and paths
// can have invalid UTF-8. It reports whether the value is valid.
//
// path is the path of the object that has the field. The two are joined only for errors,
// because a batch calls this thousands of times.
func (v *Validation) Text(path, field, value string) bool {
	switch {
	case value == "":
		v.Add(path+field, "required", "is required")
	case strings.IndexByte(value, 0) >= 0:
		v.Add(path+field, "nul_refused", "must not contain NUL")
	case !utf8.ValidString(value):
		v.Add(path+field, "utf8_invalid", "must be valid UTF-8")
	default:
		return true
	}
	return false
}

// Line requires a value of one line, of at most most bytes.
func (v *Validation) Line(path, field, value string, most int) {
	switch {
	case !v.Text(path, field, value):
	case !text.IsLine(value):
		v.Add(path+field, "control_character", "must be one line without control characters")
	case len(value) > most:
		v.Add(path+field, "too_long", fmt.Sprintf("must have at most %d bytes", most))
	}
}

// Paragraphs requires a text of at most most bytes, possibly empty or with several lines.
func (v *Validation) Paragraphs(path, field, value string, most int) {
	switch {
	case value == "":
	case !v.Text(path, field, value):
	case !text.IsParagraphs(value):
		v.Add(path+field, "control_character", "must have no control characters except line breaks and tabs")
	case len(value) > most:
		v.Add(path+field, "too_long", fmt.Sprintf("must have at most %d bytes", most))
	}
}

// OneOf requires a value to be absent or one of some values.
func OneOf[T ~string](v *Validation, field string, value T, values ...T) {
	if value != "" && !slices.Contains(values, value) {
		v.Add(field, "unknown_value", fmt.Sprintf("must be one of %q", values))
	}
}

// Object requires an object of at most limit bytes. It returns nil for one that
// is absent or null.
func (v *Validation) Object(field string, value jsontext.Value, limit int) []byte {
	switch {
	case value == nil, value.Kind() == 'n':
		return nil
	case value.Kind() != '{':
		v.Add(field, "type_invalid", "must be an object")
		return nil
	case len(value) > limit:
		v.Add(field, "too_large", fmt.Sprintf("must have at most %d bytes", limit))
		return nil
	}
	return value
}

// Values decodes an object, as [Validation.Object] does. Numbers keep their
// digits ([json.Number]).
func (v *Validation) Values(field string, value jsontext.Value, limit int) map[string]any {
	text := v.Object(field, value, limit)
	if text == nil {
		return nil
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		v.Add(field, "invalid", "is not a JSON object")
	}
	return values
}

// Member is a member of a request as it was sent; nil if it is absent.
type Member struct {
	Name  string
	Value jsontext.Value
}

// ReadMember reads a member of a form; nil if it is absent or has a fault. Null is the zero value where
// it is allowed. must describes the type, as in "must be a string".
func ReadMember[T any](v *Validation, form map[string]jsontext.Value, name, must string, null bool) *T {
	value := form[name]
	if value == nil {
		return nil
	}
	read := new(T)
	if value.Kind() == 'n' && !null || strict.Unmarshal(value, read) != nil {
		v.Add(name, "type_invalid", must)
		return nil
	}
	return read
}

// RefuseImmutable refuses members that are present, with any value.
func RefuseImmutable(members ...Member) error {
	var fields []string
	for _, m := range members {
		if m.Value != nil {
			fields = append(fields, m.Name)
		}
	}
	if fields == nil {
		return nil
	}
	return &Error{
		Status: http.StatusBadRequest, Code: "immutable_field", Message: fields[0] + " cannot be changed",
		Details: Details{"fields": fields},
	}
}

// Parameters adapts fail to the errors of generated code for invalid parameters, whose types
// are equal but belong to each package.
func Parameters(fail func(http.ResponseWriter, *http.Request, error)) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if fault := reflect.Indirect(reflect.ValueOf(err)); fault.Kind() == reflect.Struct {
			if name := fault.FieldByName("ParamName"); name.IsValid() {
				field := FieldError{Field: name.String(), Code: "type_invalid", Message: name.String() + " is given more than once or has the wrong type"}
				if strings.HasPrefix(fault.Type().Name(), "Required") {
					field = FieldError{Field: name.String(), Code: "required", Message: name.String() + " is required"}
				}
				err = ValidationFailed(field)
			}
		}
		fail(w, r, err)
	}
}
