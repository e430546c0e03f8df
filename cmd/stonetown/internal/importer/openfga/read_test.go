package openfga

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const head = "model\n  schema 1.1\ntype user\ntype document\n  relations\n    define parent: [document]\n    define viewer: [user]\n"

// TestErrors has a file for each error.
func TestErrors(t *testing.T) {
	jsonHead := `{"schema_version": "1.1", "type_definitions": [{"type": "user"}, `
	store := "model: |\n" + indented(head)
	for _, test := range []struct {
		name  string
		files fstest.MapFS
		want  string // "" if the first file is read without an error
	}{
		// The files themselves.
		{"model.txt", folder("model.txt", head), "model.txt: unknown file name: a model is .fga, .json or fga.mod, a store file .fga.yaml, tuples are .json, .jsonl, .csv or .yaml"},
		{"none.fga", nil, "none.fga: file does not exist"},
		{"../model.fga", folder("model.fga", head), "../model.fga: not a path within the folder that is read"},
		{"a.fga", folder("a.fga", "model\xff"), "a.fga: not UTF-8 text"},
		{"long.csv", folder("long.csv", strings.Repeat("x", maxFile+1)), "long.csv: longer than 33554432 bytes"},

		// The language.
		{"a.fga", folder("a.fga", head+"    define editor: [user] or\n"), `a.fga:8: column 29: mismatched input '<EOF>' expecting WHITESPACE`},
		{"a.fga", folder("a.fga", "# about\n\n"+head+"    define editor = [user]\n    define x = y\n"), `a.fga:10: column 19: token recognition error at: '= ' (and 3 more)`},
		{"a.fga", folder("a.fga", ""), "a.fga:1: column 1: mismatched input '<EOF>' expecting {WHITESPACE, '#', 'module', 'model', NEWLINE}"},
		{"a.fga", folder("a.fga", "model\n  schema 1.0\ntype user\n"), "a.fga: schema version 1.0 does not say which subjects a relation has, and OpenFGA has retired it: migrate the model to 1.1 first"},
		{"a.fga", folder("a.fga", "model\n  schema 7.1\ntype user\n"), `a.fga: schema version "7.1" is not supported; use 1.1 or 1.2`},
		{"a.fga", folder("a.fga", "model\n  schema 1.1\n"), "a.fga: no types are defined"},
		{"a.fga", folder("a.fga", "module core\ntype user\n"), "a.fga:1: a module is only a part of a model; give the fga.mod file that lists it"},
		{"a.fga", folder("a.fga", head+"type user\n"), "a.fga:3: type user is defined twice"},
		{"a.fga", folder("a.fga", head+"    define viewer: [user]\n"), "a.fga:8: column 12: 'viewer' is already defined in 'document'"},
		{"a.fga", folder("a.fga", head+"    define a\x01: [user]\n"), "a.fga:8: a control character"},
		{"a.fga", folder("a.fga", head+"    define a: "+strings.Repeat("(", 33)+"\n"), "a.fga:8: parentheses are nested too deep"},
		{"a.fga", folder("a.fga", head+strings.Repeat("type x\n", maxDSL/6)), "a.fga:43681: a model of more than 262144 bytes, besides comments"},
		{"a.fga", folder("a.fga", head+"condition c(n: int) {\n"+strings.Repeat("n ", maxCondition)+"\n}\n"), "a.fga:9: a condition of more than 16384 bytes"},
		{"a.fga", folder("a.fga", head+strings.Repeat("\n", 200_000)+strings.Repeat("\t# note (\n", 100_000)), ""},

		// What OpenFGA refuses.
		{"a.fga", folder("a.fga", head+"    define a: b\n"), `a.fga:8: type document has no relation "b"`},
		{"a.fga", folder("a.fga", head+"    define a: [robot]\n"), `a.fga:8: document#a names type "robot", which does not exist`},
		{"a.fga", folder("a.fga", head+"    define a: [user#friend]\n"), `a.fga:8: type user has no relation "friend"`},
		{"a.fga", folder("a.fga", head+"    define a: [user with c]\n"), `a.fga:8: document#a names condition "c", which does not exist`},
		{"a.fga", folder("a.fga", head+"    define a: viewer from folder\n"), `a.fga:8: type document has no relation "folder"`},
		{"a.fga", folder("a.fga", head+"    define a: owner from parent\n"), `a.fga:8: document#a goes on from document#parent, which leads to no type with a relation "owner"`},
		{"a.fga", folder("a.fga", head+"    define a: viewer or parent\n    define b: viewer from a\n"), "a.fga:9: document#b goes on from document#a, which is more than its tuples"},
		{"a.fga", folder("a.fga", head+"    define a: [document#viewer]\n    define b: viewer from a\n"), "a.fga:9: document#b goes on from document#a, which may name more than single objects"},
		// What this product refuses.
		{"a.fga", folder("a.fga", head+"    define a: b\n    define b: a\n"), `a.fga:8: document#a: relation "a" is defined only by itself, so it is always empty`},
		{"a.fga", folder("a.fga", head+"    define a: [user] but not b\n    define b: a\n"), "a.fga:8: document#a: document#a depends on its own negation: the subtracted document#b leads back to it"},

		{"a.fga", folder("a.fga", head+"    define a: [user] but not b\n    define b: [document#a]\n"), ""},
		{"a.fga", folder("a.fga", head+"    define up: [document]\n    define a: [user] but not a from up\n"), ""},

		// JSON models.
		{"m.json", folder("m.json", ""), "m.json:1: not the JSON that is expected: unexpected end of JSON input"},
		{"m.json", folder("m.json", "null"), "m.json: not a JSON object"},
		{"m.json", folder("m.json", "{\n\n!}"), "m.json:3: not the JSON that is expected: invalid character '!' looking for beginning of object key string"},
		{"m.json", folder("m.json", "{}"), "m.json: neither a model, which has type_definitions, nor a list of tuples"},
		{"m.json", folder("m.json", strings.Repeat("[", 100_000)), "m.json:1: not the JSON that is expected: invalid character '[' exceeded max depth"},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": `+strings.Repeat(`{"union": {"child": [`, 9_000)+strings.Repeat(`]}}`, 9_000)+`}}]}`), "m.json:1: not the JSON that is expected: invalid character '{' exceeded max depth"},
		{"m.json", folder("m.json", jsonHead+"\n"+`{"type": "d", "colour": 1}]}`), `m.json:2: unknown field "colour"`},
		{"m.json", folder("m.json", "{\"authorization_model\":\n"+jsonHead+"\n"+`{"type": "d", "colour": 1}]}}`), `m.json:3: unknown field "colour"`},
		{"m.json", folder("m.json", `{"authorization_model":`+jsonHead+`{"type": "d"}]}}`), ""},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": {}}}]}`), "m.json: d#a has an empty definition"},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": {"union": {}}}}]}`), "m.json: d#a has an empty definition"},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": {"difference": {}}}}]}`), "m.json: d#a has an empty definition"},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": {"this": {}}}}]}`), "m.json: d#a takes tuples, but of no type"},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": {"computedUserset": {"relation": "a"}}}, "metadata": {"relations": {"a": {"directly_related_user_types": [{"type": "user"}]}}}}]}`), "m.json: d#a takes no tuples, but has types for them"},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"a": {"computedUserset": {"object": "x", "relation": "a"}}}}]}`), `m.json: d#a refers to the object "x", which has no meaning`},
		{"m.json", folder("m.json", jsonHead+`{"type": "d:e"}]}`), `m.json: "d:e" cannot be the name of a type`},
		{"m.json", folder("m.json", jsonHead+`{"type": "d", "relations": {"": {"this": {}}}}]}`), `m.json: "" cannot be the name of a relation`},
		{"m.json", folder("m.json", jsonHead+`{"type": "d"}], "conditions": {"a": {"name": "b"}}}`), `m.json: condition "a" is called "b" in its definition`},

		// Modules.
		{"fga.mod", folder("fga.mod", "schema: '1.1'\ncontents: []\n"), "fga.mod:1: unsupported schema version, fga.mod only supported in version `1.2`"},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\n"), "fga.mod: missing contents field"},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents: []\n"), "fga.mod: it lists 0 modules, 1 to 1000 can be read"},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents: [\n"), "fga.mod:2: did not find expected node content"},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents:\n  - a.fga\n"), `fga.mod:3: cannot read "a.fga": a.fga: file does not exist`},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents:\n  - ../a.fga\n"), `fga.mod:3: invalid contents item ../a.fga`},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents: [a.fga, a.fga]\n", "a.fga", "module a\ntype user\n"), `fga.mod:2: "a.fga" is listed twice`},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents: [a.fga]\n", "a.fga", head), "a.fga:1: not a module: it does not begin with the word module"},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents: [a.fga]\n", "a.fga", "module a\n\ntype user x\n"), "a.fga:3: column 10: no viable alternative at input ' '"},
		{"fga.mod", folder("fga.mod", "schema: '1.2'\ncontents: [a.fga, b.fga]\n", "a.fga", "module a\ntype user\n", "b.fga", "module b\n\ntype user\nextend type group\n  relations\n    define member: [user]\n"), "b.fga:3: duplicate type definition user"},

		// Store files.
		{"s.yaml", folder("s.yaml", ""), "s.yaml: empty"},
		{"s.yaml", folder("s.yaml", "# nothing\n"), "s.yaml: empty"},
		{"s.yaml", folder("s.yaml", "a: [\n"), "s.yaml:1: did not find expected node content"},
		{"s.yaml", folder("s.yaml", "text"), "s.yaml:1: must be a mapping"},
		{"s.yaml", folder("s.yaml", store+"---\nmodel: x\n"), "s.yaml:9: a second document begins here, only one can be read"},
		{"s.yaml", folder("s.yaml", "model: x\nmodel: y\n"), `s.yaml:2: "model" stands twice`},
		{"s.yaml", folder("s.yaml", "model: x\nmodel_file: y\n"), "s.yaml:2: model and model_file cannot both be given"},
		{"s.yaml", folder("s.yaml", "model_file: ../y\n"), `s.yaml:1: "../y" is not within the folder that is read`},
		{"a/s.yaml", folder("a/s.yaml", "model_file: ../y.fga\n", "y.fga", head), ""},
		{"s.yaml", folder("s.yaml", "model_file: /y\n"), `s.yaml:1: "/y" is not within the folder that is read`},
		{"s.yaml", folder("s.yaml", "name: x\nmodel_file: y.fga\n"), `s.yaml:2: cannot read "y.fga": y.fga: file does not exist`},
		{"s.yaml", folder("s.yaml", store+"    define a: [user] or\n"), "s.yaml:9: column 24: mismatched input '<EOF>' expecting WHITESPACE"},
		{"s.yaml", folder("s.yaml", "name: x\n"+store+"      define editor: writer\n"), `s.yaml:10: type document has no relation "writer"`},
		{"s.yaml", folder("s.yaml", store+"tuple_file: t.txt\n", "t.txt", ""), "t.txt: unknown file name: tuples are .json, .jsonl, .csv or .yaml"},
		{"s.yaml", folder("s.yaml", store+"tuple_files: [t.json]\n"), `s.yaml:9: cannot read "t.json": t.json: file does not exist`},
		{"s.yaml", folder("s.yaml", "tests:\n  - check: []\n"), "s.yaml:2: tests need a model, and the file has none"},
		{"s.yaml", folder("s.yaml", store+"tests: yes\n"), "s.yaml:9: must be a list"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - check:\n    - object: document:1\n"), "s.yaml:11: user or users is missing"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - check:\n    - user: user:a\n      users: [user:a]\n"), "s.yaml:12: user and users cannot both be given"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - check:\n    - {user: user:a, object: document:1, assertions: {viewer: maybe}}\n"), "s.yaml:11: must be true or false"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - check:\n    - {user: user:a, object: document:1, context: [1]}\n"), "s.yaml:11: must be a mapping"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - check:\n    - {user: user:a, object: document:1, context: {n: .nan}}\n"), `s.yaml:11: ".nan" is not a number that JSON has`},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - check:\n    - {user: user:a, object: document:1, context: &c {n: *c}}\n"), "s.yaml:11: nested more than 32 deep"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - list_objects:\n    - {user: user:a}\n"), "s.yaml:11: type is missing"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - list_users:\n    - {object: document:1}\n"), "s.yaml:11: user_filter is missing"},
		{"s.yaml", folder("s.yaml", store+"tests:\n  - list_users:\n    - {object: document:1, user_filter: []}\n"), "s.yaml:11: user_filter has 0 kinds of users, 1 to 100 can be read"},
		{"s.yaml", folder("s.yaml", "tuples:\n  - <<: {user: x}\n"), "s.yaml:2: merge keys (<<) are not supported, write the members out"},
		{"s.yaml", folder("s.yaml", store+bomb()), "s.yaml:12: aliases make the file too large"},

		// Tuples.
		{"t.yaml", folder("t.yaml", "- user: user:a\n  relation: viewer\n"), "t.yaml:1: a tuple without object"},
		{"t.yaml", folder("t.yaml", "- user: user:a\n  expires: 1\n"), `t.yaml:2: "expires" is not known here`},
		{"t.yaml", folder("t.yaml", "- {user: user:a, relation: viewer, object: 'd:1', condition: {context: {}}}\n"), "t.yaml:1: a condition without a name"},
		{"t.json", folder("t.json", "[\n{\"user\": 1}]"), "t.json:2: user must be a text"},
		{"t.json", folder("t.json", "[\n{\"user\": \"user:a\"}]"), "t.json:2: a tuple without relation"},
		{"t.json", folder("t.json", "[\n{\"users\": []}]"), "t.json:2: a tuple has members that are not known, besides user, relation, object, condition"},
		{"t.json", folder("t.json", "[\n3]"), "t.json:2: a tuple must be a JSON object"},
		{"t.json", folder("t.json", "[\n{}\n{}]"), "t.json:2: a tuple without user"},
		{"t.json", folder("t.json", "[] []"), "t.json:1: unexpected data after the tuples"},
		{"t.json", folder("t.json", `{"tuples": {}}`), "t.json:1: tuples must be a list"},
		{"t.json", folder("t.json", `{"tuples": [], "continuation_token": "abc"}`), "t.json: the list is incomplete: it has a continuation token"},
		{"t.jsonl", folder("t.jsonl", "\n{\n"), "t.jsonl:2: a tuple must be a JSON object"},
		{"t.jsonl", folder("t.jsonl", `{"user": "user:a", "relation": "viewer", "object": "d:1", "condition": {"name": "c", "context": []}}`), "t.jsonl:1: the context is not a JSON object"},
		{"t.csv", folder("t.csv", ""), "t.csv: empty"},
		{"t.csv", folder("t.csv", "user_type,user_id,relation,object_type\n"), "t.csv:1: column object_id is missing"},
		{"t.csv", folder("t.csv", "user_type,user_type\n"), `t.csv:1: column "user_type" is given twice`},
		{"t.csv", folder("t.csv", "user\n"), `t.csv:1: column "user" is unknown; known columns: user_type, user_id, user_relation, relation, object_type, object_id, condition_name, condition_context`},
		{"t.csv", folder("t.csv", "user_type,user_id,relation,object_type,object_id\n\na,b\n"), "t.csv:3: wrong number of fields"},
		{"t.csv", folder("t.csv", "user_type,user_id,relation,object_type,object_id,condition_context\nuser,a,viewer,d,1,{}\n"), "t.csv:2: a condition_context without a condition_name"},
		{"t.csv", folder("t.csv", "user_type,user_id,relation,object_type,object_id,condition_context,condition_name\nuser,a,viewer,d,1,{} {},c\n"), "t.csv:2: the context is not a JSON object"},
	} {
		got := ""
		if _, err := Read(test.files, test.name); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// bomb returns a test with a context that grows by ten with every line.
func bomb() string {
	text := "tests:\n  - check:\n    - context:\n        v0: &v0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
	for i := range 9 {
		text += fmt.Sprintf("        v%d: &v%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*v%d, ", i), 10), ", "))
	}
	return text
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// TestOutside requires that neither names nor links lead out of the folder.
func TestOutside(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret.fga"), []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret.fga", filepath.Join(inside, "link.fga")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, "store.yaml"), []byte("model_file: link.fga\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var files fs.FS = root.FS()
	if _, err := Read(files, "store.yaml"); err == nil || !strings.Contains(err.Error(), `store.yaml:1: cannot read "link.fga"`) {
		t.Errorf("got %v", err)
	}
}
