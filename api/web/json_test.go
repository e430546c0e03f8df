package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err.Error()
	}
	if fields, ok := e.Details["field_errors"].([]FieldError); ok {
		return fields[0].Field + " " + fields[0].Code
	}
	return e.Code
}

// A change distinguishes null from an absent member.
func TestDecodePatch(t *testing.T) {
	type form struct {
		Name *string        `json:"name"`
		Any  jsontext.Value `json:"any"`
	}
	for body, want := range map[string]string{
		`{}`: "", `{"name":"a"}`: "", `{"any":null}`: "", `{"name":null}`: "name type_invalid",
		`{"name":1}`: "name type_invalid", `null`: " type_invalid", `{`: "invalid_json", `[]`: " type_invalid",
		strings.Repeat("[", MaxDepth+1): "invalid_json",
	} {
		var f form
		err := DecodePatch(httptest.NewRecorder(), httptest.NewRequest("PATCH", "/", strings.NewReader(body)), &f)
		if got := codeOf(err); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	var all map[string]any
	if err := DecodePatch(httptest.NewRecorder(), httptest.NewRequest("PATCH", "/", strings.NewReader(`{"a":null}`)), &all); err != nil {
		t.Errorf("a form that is no struct: %v", err)
	}
}

func TestDecodeOptionalJSON(t *testing.T) {
	for body, want := range map[string]string{"": "", `{"type":"a"}`: "", "x": "invalid_json"} {
		f := wire{Count: 7}
		err := DecodeOptionalJSON(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)), &f)
		if got := codeOf(err); got != want || f.Count != 7 {
			t.Errorf("%s: %q, want %q; %+v", body, got, want, f)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat(" ", MaxBody+1)))
	for name, err := range map[string]error{
		"optional": DecodeOptionalJSON(httptest.NewRecorder(), r, &wire{}),
		"required": DecodeJSON(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat(" ", MaxBody+1))), &wire{}),
		"patch":    DecodePatch(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat(" ", MaxBody+1))), &wire{}),
	} {
		if got := codeOf(err); got != "payload_too_large" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if err := BodyError(errors.New("reset")); codeOf(err) != "read body: reset" {
		t.Errorf("an error of the network became %v", err)
	}
}

func TestValidation(t *testing.T) {
	var v Validation
	if v.Err() != nil {
		t.Error("an empty validation fails")
	}
	v.Text("items/0/", "a", "")
	v.Text("", "b", "x\x00")
	v.Text("", "c", "\xff")
	v.Line("", "d", "two\nlines", 100)
	v.Line("", "e", "long", 3)
	v.Line("", "fine", "fine", 4)
	v.Paragraphs("", "f", "bell\a", 100)
	v.Paragraphs("", "g", "long", 3)
	v.Paragraphs("", "fine", "", 3)
	v.Paragraphs("", "h", "x\x00", 3)
	v.Paragraphs("", "fine", "two\nlines", 100)
	v.Object("i", jsontext.Value(`[]`), 100)
	v.Object("j", jsontext.Value(`{"a":1}`), 3)
	if v.Object("fine", nil, 1) != nil || v.Object("fine", jsontext.Value(`null`), 1) != nil || string(v.Object("fine", jsontext.Value(`{}`), 2)) != "{}" {
		t.Error("an object was not returned as it is")
	}
	if values := v.Values("fine", jsontext.Value(`{"n":12345678901234567890}`), 100); fmt.Sprint(values["n"]) != "12345678901234567890" {
		t.Errorf("values %v", values)
	}
	if v.Values("k", jsontext.Value(`1`), 100) != nil {
		t.Error("a number is an object")
	}
	var got []string
	for _, f := range v.Faults {
		got = append(got, f.Field+" "+f.Code)
	}
	want := []string{
		"items/0/a required", "b nul_refused", "c utf8_invalid", "d control_character", "e too_long", "f control_character", "g too_long", "h nul_refused",
		"i type_invalid", "j too_large", "k type_invalid",
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults\n%q, want\n%q", got, want)
	}
	if codeOf(v.Err()) != "items/0/a required" {
		t.Errorf("error %v", v.Err())
	}
}

func TestRefuseImmutable(t *testing.T) {
	if err := RefuseImmutable(Member{"type", nil}); err != nil {
		t.Error(err)
	}
	err := RefuseImmutable(Member{"type", nil}, Member{"id", jsontext.Value("null")})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != "immutable_field" || !slices.Equal(e.Details["fields"].([]string), []string{"id"}) {
		t.Errorf("%v", err)
	}
}

// The errors of generated code become validation errors.
func TestParameters(t *testing.T) {
	var got error
	fail := Parameters(func(_ http.ResponseWriter, _ *http.Request, err error) { got = err })
	for _, c := range []struct {
		err  error
		want string
	}{
		{&invalidParam{"limit"}, "limit type_invalid"},
		{&RequiredParam{"limit"}, "limit required"},
		{errors.New("other"), "other"},
	} {
		fail(nil, nil, c.err)
		if codeOf(got) != c.want {
			t.Errorf("%T: %q, want %q", c.err, codeOf(got), c.want)
		}
	}
}

// invalidParam and RequiredParam are errors as generated code has them.
type (
	invalidParam  struct{ ParamName string }
	RequiredParam struct{ ParamName string }
)

func (*invalidParam) Error() string  { return "invalid" }
func (*RequiredParam) Error() string { return "missing" }

// Pages of a list that is held as a whole go on after the last item, also if it was removed.
func TestPages(t *testing.T) {
	c := newCursors(t, 1)
	all := []string{"a", "b", "c", "d", "e"}
	self := func(s string) string { return s }
	two, zero := 2, 0
	page, limit, next, err := Page(c, "tnt_a", []string{"list"}, &two, "", all, self)
	if err != nil || limit != 2 || next == nil || !slices.Equal(page, []string{"a", "b"}) {
		t.Fatal(page, limit, next, err)
	}
	page, _, more, err := Page(c, "tnt_a", []string{"list"}, &two, *next, all, self)
	if err != nil || !slices.Equal(page, []string{"c", "d"}) || more == nil {
		t.Error(page, more, err)
	}
	page, _, last, err := Page(c, "tnt_a", []string{"list"}, &two, *next, []string{"a", "c"}, self) // without b
	if err != nil || !slices.Equal(page, []string{"c"}) || last != nil {
		t.Error(page, last, err)
	}
	if _, _, _, err := Page(c, "tnt_a", []string{"list"}, &zero, "", all, self); codeOf(err) != "limit out_of_range" {
		t.Error(err)
	}
	if _, _, _, err := Page(c, "tnt_b", []string{"list"}, &two, *next, all, self); codeOf(err) != "cursor_invalid" {
		t.Error(err)
	}
	if page, limit, next, err := Page(c, "tnt_a", []string{"list"}, nil, "", all, self); err != nil || limit != DefaultLimit || next != nil || len(page) != 5 {
		t.Error(page, limit, next, err)
	}
}

func TestWriteJSON(t *testing.T) {
	w := httptest.NewRecorder()
	if err := WriteJSON(w, 201, map[string]int{"b": 1, "a": 2}); err != nil || w.Code != 201 || w.Body.String() != `{"a":2,"b":1}` || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s %v", w.Code, w.Body, err)
	}
	if err := WriteJSON(httptest.NewRecorder(), 200, make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
	w = httptest.NewRecorder()
	if err := WriteJSON(w, 200, ownJSON{}); err != nil || w.Body.String() != `"own"` {
		t.Errorf("%s %v", w.Body, err)
	}
}

type ownJSON struct{}

func (ownJSON) AppendJSON(b []byte) []byte { return append(b, `"own"`...) }
