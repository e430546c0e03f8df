package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	fgaModel = `model
  schema 1.1

type user

type folder
  relations
    define viewer: [user]

type Document
  relations
    define parent: [folder]
    define viewer: [user, user:*] or viewer from parent
    define can-share: viewer but not blocked
    define blocked: [user]
`
	fgaStore = `name: documents
model_file: ./model.fga
tuples:
  - {user: user:ann, relation: viewer, object: folder:f}
  - {user: folder:f, relation: parent, object: Document:d}
  - {user: user:bob, relation: viewer, object: Document:d}
  - {user: user:bob, relation: blocked, object: Document:d}
tests:
  - name: sharing
    check:
      - user: user:ann
        object: Document:d
        assertions: {viewer: true, can-share: true}
      - user: user:bob
        object: Document:d
        assertions: {viewer: true, can-share: false}
    list_objects:
      - user: user:ann
        type: Document
        assertions: {viewer: [Document:d]}
`
	zedSchema = `definition user {}

definition document {
  relation owner: user
  relation viewer: user | user:*
  permission view = viewer + owner
}
`
	zedValidation = `schemaFile: schema.zed
relationships: |
  document:d#owner@user:ann
  document:open#viewer@user:*
assertions:
  assertTrue:
    - document:d#view@user:ann
    - document:open#view@user:bob
  assertFalse:
    - document:d#view@user:bob
`
)

func TestImportOpenFGA(t *testing.T) {
	dir := development(t)
	files := folder(t, map[string]string{"model.fga": fgaModel, "store.fga.yaml": fgaStore, "more.csv": "user_type,user_id,user_relation,relation,object_type,object_id\nuser,cid,,viewer,folder,g\n"})
	store := filepath.Join(files, "store.fga.yaml")

	out := want(t, dir, "import", "--dry-run", store)
	for _, line := range []string{`type "Document" is called "document"`, `relation "can-share" is called "can_share"`, "2 types, 4 relations, 5 assertions; 2 renamed\n", "5 of 5 assertions hold\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q lacks %q", out, line)
		}
	}
	if got := want(t, dir, "schema", "list", "-o", "json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("after a dry run: %s", got)
	}
	for _, change := range []string{"created", "unchanged"} {
		out = want(t, dir, "import", store)
		for _, line := range []string{change + " document\n", change + " folder\n", "wrote 4 relations\n"} {
			if !strings.Contains(out, line) {
				t.Errorf("%q lacks %q", out, line)
			}
		}
	}
	want(t, dir, "import", filepath.Join(files, "model.fga"), filepath.Join(files, "more.csv"))
	want(t, dir, "check", "user:cid", "viewer", "folder:g")
	want(t, dir, "check", "user:ann", "can-share", "document:d") // an action keeps its name
	if r := on(t, dir, "check", "user:bob", "can-share", "document:d"); r.code != exitDenied {
		t.Errorf("%+v", r)
	}
}

func TestImportSpiceDB(t *testing.T) {
	dir := development(t)
	files := folder(t, map[string]string{
		"schema.zed": zedSchema, "all.yaml": zedValidation, "wrong.yaml": strings.ReplaceAll(zedValidation, "document:d#view@user:bob", "document:d#view@user:ann"),
		"more.txt": "document:e#owner@user:ann\n", "arrow.zed": "definition user {\n  relation friend: user\n  permission near = friend\n  permission view = near->friend\n}\n",
	})
	path := func(name string) string { return filepath.Join(files, name) }
	out := want(t, dir, "import", path("all.yaml"))
	if !strings.Contains(out, "created document\nwrote 2 relations\n") || !strings.Contains(out, "3 of 3 assertions hold") {
		t.Error(out)
	}
	want(t, dir, "import", path("schema.zed"), path("more.txt"))
	want(t, dir, "check", "user:ann", "view", "document:e")

	other := development(t)
	r := on(t, other, "import", path("wrong.yaml"))
	if r.code != 1 || !strings.Contains(r.errs, "nothing was written") || !strings.Contains(r.out, "wrong.yaml:10: may user:ann view document:d? expected denied, got allowed\n") {
		t.Errorf("%+v", r)
	}
	r = on(t, other, "import", path("arrow.zed"))
	if r.code != 1 || !strings.Contains(r.errs, "not everything has an equivalent") || !strings.Contains(r.out, "arrow.zed:4: unsupported") {
		t.Errorf("%+v", r)
	}
	if got := want(t, other, "schema", "list", "-o", "json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("after refusals: %s", got)
	}
	want(t, other, "import", "--force", path("arrow.zed"))
	if got := want(t, other, "schema", "list"); !strings.Contains(got, "user_2") {
		t.Errorf("what has an equivalent is not there: %s", got)
	}
}

func TestImportRefuses(t *testing.T) {
	dir := development(t)
	files := folder(t, map[string]string{
		"unknown": zedSchema, "broken.zed": "definition {", "short.jsonl": `{"kind":"resource_type","name":"document"}` + "\n",
		"kinds.jsonl": `{"kind":"other"}` + "\n" + `{"kind":"end","resource_types":0,"resources":0,"relations":0}` + "\n",
		"count.jsonl": `{"kind":"end","resource_types":1,"resources":0,"relations":0}` + "\n",
		"bad.jsonl": `{"kind":"resource_type","name":"document"}` + "\n" + `{"kind":"relation","resource":{"type":"document","external_id":"d"},"relation":"none","subject":{"type":"user","id":"a"}}` +
			"\n" + `{"kind":"end","resource_types":1,"resources":0,"relations":1}` + "\n",
	})
	for name, word := range map[string]string{
		"unknown": "set --from", "broken.zed": "broken.zed:1:", "missing.zed": "missing.zed", "short.jsonl": "incomplete",
		"kinds.jsonl": `kind "other"`, "count.jsonl": "the last line says 1", "bad.jsonl": "line 2, document:d#none@user:a",
	} {
		refused(t, dir, 1, word, "import", filepath.Join(files, name))
	}
	refused(t, dir, 1, "must be stonetown", "import", "--from", "keto", filepath.Join(files, "unknown"))
	want(t, dir, "import", "--from", "spicedb", "--dry-run", filepath.Join(folder(t, map[string]string{"x.zed": zedSchema}), "x.zed"))
}

func TestValidateCommand(t *testing.T) {
	files := folder(t, map[string]string{"schema.zed": zedSchema, "all.yaml": zedValidation, "wrong.yaml": strings.ReplaceAll(zedValidation, "document:d#view@user:bob", "document:d#view@user:ann")})
	r := terminal(t, nil, "validate", filepath.Join(files, "all.yaml"))
	if r.code != 0 || !strings.HasSuffix(r.out, "1 types, 2 relations, 3 assertions\n3 of 3 assertions hold\n") {
		t.Errorf("%+v", r)
	}
	r = terminal(t, nil, "validate", filepath.Join(files, "wrong.yaml"))
	if r.code != 1 || !strings.Contains(r.errs, "1 answers differ") || !strings.Contains(r.out, "2 of 3 assertions hold") {
		t.Errorf("%+v", r)
	}
}

// TestValidateNothing refuses files without assertions.
func TestValidateNothing(t *testing.T) {
	files := folder(t, map[string]string{
		"schema.zed": zedSchema, "empty.yaml": "schema: ''\nrelationships: ''\n", "none.yaml": "schemaFile: schema.zed\n",
		"left.yaml": "schemaFile: schema.zed\nassertions:\n  assertTrue: ['document:d#lost@user:ann']\n",
	})
	for _, name := range []string{"schema.zed", "empty.yaml", "none.yaml", "left.yaml"} {
		r := terminal(t, nil, "validate", filepath.Join(files, name))
		if r.code != 1 || !strings.Contains(r.errs, "nothing was tested") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestValidateCaveats tests caveats of SpiceDB that parse numbers, use addresses and compare
// maps.
func TestValidateCaveats(t *testing.T) {
	files := folder(t, map[string]string{"all.yaml": `schema: |
  definition user {}
  caveat few(count uint, most int) { count < most }
  caveat inside(ip ipaddress) { ip == ipaddress("10.0.0.1") || ip.in_cidr("192.168.0.0/16") }
  caveat within(want map<any>, have map<any>) { want.isSubtreeOf(have) }
  definition document {
    relation reader: user with few
    relation insider: user with inside
    relation matcher: user with within
    permission read = reader + insider + matcher
  }
relationships: |
  document:d#reader@user:ann[few:{"most":"5"}]
  document:d#insider@user:bob[inside]
  document:d#matcher@user:cid[within:{"have":{"a":{"b":1,"c":2}}}]
assertions:
  assertTrue:
    - 'document:d#read@user:ann with {"count":"4"}'
    - 'document:d#read@user:bob with {"ip":"10.0.0.1"}'
    - 'document:d#read@user:cid with {"want":{"a":{"b":1}}}'
  assertFalse:
    - 'document:d#read@user:ann with {"count":"5"}'
    - 'document:d#read@user:bob with {"ip":"10.0.0.2"}'
    - 'document:d#read@user:cid with {"want":{"a":{"b":2}}}'
`})
	r := terminal(t, nil, "validate", filepath.Join(files, "all.yaml"))
	if r.code != 0 || !strings.Contains(r.out, "6 of 6 assertions hold") {
		t.Errorf("%+v", r)
	}
}

// TestValidatePaths gives the same file by all its names, with the same result.
func TestValidatePaths(t *testing.T) {
	root := folder(t, map[string]string{
		"shared/schema.zed": zedSchema, "cases/all.yaml": strings.Replace(zedValidation, "schema.zed", "../shared/schema.zed", 1),
		"cases/local.yaml": strings.Replace(zedValidation, "schema.zed", "./schema.zed", 1), "cases/schema.zed": zedSchema,
		"store.fga.yaml": fgaStore, "model.fga": fgaModel,
	})
	for link, to := range map[string]string{"link.yaml": "cases/all.yaml", "there": "cases", "cases/same.yaml": "all.yaml"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	for _, name := range []string{
		"cases/all.yaml", "./cases/all.yaml", "cases/../cases/all.yaml", "../" + filepath.Base(root) + "/cases/all.yaml",
		filepath.Join(root, "cases/all.yaml"), "link.yaml", filepath.Join(root, "link.yaml"), "there/all.yaml", "cases/same.yaml",
		"cases/local.yaml", filepath.Join(root, "there/local.yaml"), "./store.fga.yaml", filepath.Join(root, "store.fga.yaml"),
	} {
		r := terminal(t, nil, "validate", name)
		if r.code != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// Elsewhere, a file can refer to files of its own folder.
	t.Chdir(t.TempDir())
	if r := terminal(t, nil, "validate", filepath.Join(root, "cases/local.yaml")); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := terminal(t, nil, "validate", filepath.Join(root, "cases/all.yaml")); r.code != 1 || !strings.Contains(r.errs, "not within the folder") {
		t.Errorf("%+v", r)
	}
}

// TestValidateFunctions tests SpiceDB's functions and wildcards.
func TestValidateFunctions(t *testing.T) {
	files := folder(t, map[string]string{"all.yaml": `schema: |
  use self
  definition person {
    relation manager: person
    permission see = manager + self
  }
  definition document {
    relation owner: person
    relation reader: person | person:*
    permission every = owner.all(see)
    permission read = reader
  }
relationships: |
  document:d#owner@person:ann
  document:d#owner@person:bob
  document:none#reader@person:ann
  document:open#reader@person:*
  person:bob#manager@person:ann
assertions:
  assertTrue:
    - person:bob#see@person:bob
    - document:d#every@person:ann
    - document:open#read@person:*
  assertFalse:
    - document:d#every@person:bob
    - document:none#every@person:ann
    - document:none#read@person:*
`})
	r := terminal(t, nil, "validate", filepath.Join(files, "all.yaml"))
	if r.code != 0 || !strings.Contains(r.out, "6 of 6 assertions hold") {
		t.Errorf("%+v", r)
	}
}

func TestImportBulk(t *testing.T) {
	dir := development(t)
	line := func(document, user string) string {
		return `{"resource":{"type":"document","external_id":"` + document + `"},"relation":"viewer","subject":{"type":"user","id":"` + user + `"}}` + "\n"
	}
	files := folder(t, map[string]string{
		"schema.zed": zedSchema, "good.ndjson": line("d", "ann") + line("d", "ann") + line("e", "bob"), "bad.ndjson": line("f", "ann") + "{}\n" + line("g", "bob"),
	})
	path := func(name string) string { return filepath.Join(files, name) }
	want(t, dir, "import", path("schema.zed"))
	if out := want(t, dir, "import", "--bulk", path("good.ndjson")); out != "loaded 3 lines: 2 relations created, 0 updated, 0 replaced, 1 existed\n" {
		t.Error(out)
	}
	want(t, dir, "check", "user:bob", "view", "document:e")
	if r := on(t, dir, "import", "--bulk", path("bad.ndjson")); r.code != 1 || !strings.Contains(r.errs, "line 2: ") || !strings.Contains(r.errs, "; no line is stored") {
		t.Errorf("%+v", r)
	}
	if out := want(t, dir, "import", "--bulk", "--from-line", "3", "-o", "json", path("bad.ndjson")); !strings.Contains(out, `"line": 3`) || !strings.Contains(out, `"created": 1`) {
		t.Error(out)
	}
	for _, args := range [][]string{
		{"--bulk", path("good.ndjson"), path("bad.ndjson")},
		{"--bulk", "--dry-run", path("good.ndjson")},
		{"--from-line", "2", path("good.ndjson")},
		{"--bulk", "--from-line", "0", path("good.ndjson")},
		{"--bulk", "--from-line", "9", path("good.ndjson")},
		{"--bulk", path("nothing")},
	} {
		if r := on(t, dir, append([]string{"import"}, args...)...); r.code != 1 || r.errs == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
