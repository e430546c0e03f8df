package definitions

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// JSON becomes YAML with the same meaning.
func TestWriteYAML(t *testing.T) {
	var out strings.Builder
	text := `{"z":[],"a":{"yes":"no","n":"1","e":"\ud83d\ude00\u2028","q":": #"},"big":12345678901234567890,"half":0.5,"nil":null,"t":true}`
	if err := WriteYAML(&out, json.RawMessage(text)); err != nil {
		t.Fatal(err)
	}
	if want := "z: []\na:\n  \"yes\": \"no\"\n  \"n\": \"1\"\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%s", out.String())
	}
	if !strings.Contains(out.String(), "big: 12345678901234567890\nhalf: 0.5\nnil: null\nt: true\n") {
		t.Errorf("%s", out.String())
	}
}

// What is printed is read as the same types, and printed the same.
func TestText(t *testing.T) {
	const text = `- name: folder
  description: 'Folders: all of them'
  relations:
    - {name: parent, subjects: [folder]}
    - {name: nobody, subjects: []}
    - name: viewer
      rewrites:
        - {kind: this}
        - kind: exclusion
          base: {kind: tuple_to_userset, tupleset: parent, computed: viewer, mode: all}
          subtract: {kind: computed, relation: nobody}
  actions: {read: viewer}
  conditions:
    - {name: office, expression: 'network == "a, b"', parameters: {network: string}}
- name: document
`
	parsed, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var types []Type
	for _, d := range parsed {
		var one Type
		if err := json.Unmarshal(d.JSON, &one); err != nil {
			t.Fatal(err)
		}
		types = append(types, one)
	}
	if subjects := types[0].Relations[1].Subjects; subjects == nil || !reflect.DeepEqual(types[1], Type{Name: "document"}) {
		t.Errorf("parsed: %+v", types)
	}
	printed, err := Text(types)
	if err != nil || printed != text {
		t.Errorf("printed, %v:\n%s", err, printed)
	}
	if none, err := Text(nil); err != nil || none != "" {
		t.Errorf("no types: %q, %v", none, err)
	}
}

// A short text with aliases can mean a long one.
func TestAliases(t *testing.T) {
	text := "x: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 8 {
		text += strings.Replace("b: &c ["+strings.Repeat("*a,", 10)+"]\n", "*a", "*"+string(rune('a'+i)), 10)
		text = strings.Replace(text, "b: &c", string(rune('A'+i))+": &"+string(rune('b'+i)), 1)
	}
	for _, text := range []string{text, "&a [*a]"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "alias of itself, or more than 500000 values") {
			t.Errorf("%.60s: %v", text, err)
		}
	}
	if list, err := Parse([]byte("- &a {name: one, relations: &r [{name: x}]}\n- {name: two, relations: *r}\n")); err != nil || !strings.Contains(string(list[1].JSON), `"x"`) {
		t.Errorf("%s, %v", list, err)
	}
}
