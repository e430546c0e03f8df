package openfga

import (
	"fmt"
	"strings"
	"testing"
)

// TestLeftOut requires that a construct without an equivalent is left out with everything that
// depends on it, and nothing else.
func TestLeftOut(t *testing.T) {
	w, err := Read(folder("store.yaml", `model: |
  model
    schema 1.1
  type user
  type team
    relations
      define member: [user with bad]
      define lead: [user]
  type folder
    relations
      define parent: [folder]
      define blocked: [team#member]
      define reader: [user]
      define viewer: reader but not blocked
      define all: viewer from parent
      define own: [user with $expression] or reader
      define fine: [user] or reader from parent
  type strange
    relations
      define deep: `+strings.Repeat("((", 9)+"a"+strings.Repeat(" or a) but not b)", 9)+`
      define a: [user]
      define b: [user]
  condition bad(n: int) {
    n + 1
  }
  condition unused(n: int) {
    n > 1
  }
tuples:
  - {user: user:ann, relation: member, object: team:x, condition: {name: bad}}
  - {user: "team:x#member", relation: blocked, object: folder:1}
  - {user: user:ann, relation: reader, object: folder:1}
tests:
  - check:
      - {user: user:ann, object: folder:1, assertions: {viewer: false, reader: true}}
      - {user: "team:x#member", object: folder:1, assertions: {reader: false}}
    list_objects:
      - {user: user:ann, type: folder, assertions: {all: [], fine: ["folder:1"]}}
    list_users:
      - object: folder:1
        user_filter: [{type: user}, {type: team, relation: member}]
        assertions: {reader: {users: [user:ann]}}
`), "store.yaml")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "types", typeLines(w.Types), `
team
.lead [user]
folder
.parent [folder]
.reader [user]
.fine this parent->reader [user]
strange
.a [user]
.b [user]
`)
	same(t, "relations", opLines(w.Relations), `folder:1#reader@user:ann`)
	same(t, "report", reportLines(w.Report), `
unsupported store.yaml:23: condition bad is left out: expression is of type int, must be bool
unsupported store.yaml:26: condition unused is left out: conditions belong to types, and no relation names it
unsupported store.yaml:7: team#member is left out: it uses condition bad, which is left out
unsupported store.yaml:12: folder#blocked is left out: it uses team#member, which is left out
unsupported store.yaml:14: folder#viewer is left out: it uses folder#blocked, which is left out
unsupported store.yaml:15: folder#all is left out: it uses folder#viewer, which is left out
unsupported store.yaml:16: folder#own is left out: its tuples may bring conditions of their own ($expression)
unsupported store.yaml:20: strange#deep is left out: its definition is nested more than 16 deep
unsupported store.yaml:30: team:x#member@user:ann is left out: team#member is left out
unsupported store.yaml:31: folder:1#blocked@team:x#member is left out: folder#blocked is left out
unsupported store.yaml:35: an assertion about folder:1#viewer and user:ann is left out: folder#viewer is left out
unsupported store.yaml:36: an assertion about folder:1#reader and team:x#member is left out: team#member is left out
unsupported store.yaml:38: an assertion about the objects folder with all for user:ann is left out: folder#all is left out
unsupported store.yaml:42: an assertion about the users team#member of folder:1#reader is left out: team#member is left out
`)
	same(t, "assertions", assertionLines(w.Assertions), `
35: may user:ann reader folder:1? [allowed]
38: which folder may user:ann fine? [1]
42: which user may reader folder:1? [ann]
`)
}

// TestAssertionsLeftOut has a question for each reason.
func TestAssertionsLeftOut(t *testing.T) {
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "      - {user: user:u%d, relation: viewer, object: document:1}\n", i)
	}
	w, err := Read(folder("store.yaml", `model: |
  model
    schema 1.1
  type user
  type group
    relations
      define member: [user]
  type document
    relations
      define viewer: [user, group#member]
tests:
  - check:
      - {user: "user:*", object: document:1, assertions: {viewer: false}}
      - {user: group:x, object: document:1, assertions: {viewer: false}}
      - {user: robot:x, object: document:1, assertions: {viewer: false}}
      - {user: user:x, object: document:1, assertions: {editor: false}}
      - {user: x, object: document:1, assertions: {viewer: false}}
      - {user: user:x, object: document, assertions: {viewer: false}}
    list_objects:
      - {user: user:x, type: document, assertions: {viewer: ["folder:1"]}}
      - {user: user:x, type: folder, assertions: {viewer: []}}
    list_users:
      - {object: document:1, user_filter: [{type: user}], assertions: {viewer: {users: ["group:x#member"]}}}
      - {object: document:1, user_filter: [{type: group}], assertions: {viewer: {users: []}}}
      - {object: document:1, user_filter: [{type: user}], assertions: {viewer: {users: [], excluded_users: []}}}
    speed: high
  - tuples:
`+many.String()+`    check:
      - {user: user:x, object: document:1, assertions: {viewer: false}}
owner: me
`), "store.yaml")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "report", reportLines(w.Report), `
unsupported store.yaml:131: "owner" of a store file is not known and is left out
widened store.yaml:7: members of a group may be users, applications and members of groups
unsupported store.yaml:26: "speed" of a test is not known and is left out
unsupported store.yaml:14: an assertion about document:1#viewer and group:x is left out: a group as a subject stands for its members here
unsupported store.yaml:15: an assertion about document:1#viewer and robot:x is left out: type robot does not exist
unsupported store.yaml:16: an assertion about document:1#editor and user:x is left out: type document has no relation editor
unsupported store.yaml:17: an assertion about document:1#viewer and x is left out: "x" is not of the form type:id, type:id#relation or type:*
unsupported store.yaml:18: an assertion about document#viewer and user:x is left out: "document" is not of the form type:id
unsupported store.yaml:20: an assertion about the objects document with viewer for user:x is left out: "folder:1" is not of type document
unsupported store.yaml:21: an assertion about the objects folder with viewer for user:x is left out: type folder does not exist
unsupported store.yaml:23: an assertion about the users user of document:1#viewer is left out: "group:x#member" is not of a kind that user_filter names
unsupported store.yaml:24: an assertion about the users group of document:1#viewer is left out: a group as a subject stands for its members here
unsupported store.yaml:25: "excluded_users" of a list of users is not known and is left out
unsupported store.yaml:27: a test is left out: its 101 tuples would be contextual tuples of each question, of which there may be 100
`)
	same(t, "assertions", assertionLines(w.Assertions), `13: may user:* viewer document:1? [denied]
25: which user may viewer document:1? []`)
}
