package storetest

import (
	"errors"
	"fmt"

	"stonetown/tuplestore"
)

var schemaCases = []testCase{
	{"each revision has its document", func(f *fixture) {
		type put struct {
			document string
			rev      tuplestore.Revision
		}
		want := []put{{}} // at each revision
		for i := range 12 {
			w := tuplestore.Write{Ops: creations(viewer("1", fmt.Sprint(i)))}
			now := want[len(want)-1]
			if i%3 == 1 {
				now = put{fmt.Sprintf(`{"types": ["%d", "größe", "it's"]}`, i), tuplestore.Revision(i + 1)}
				w.PutSchema = []byte(now.document)
			}
			want = append(want, now)
			f.write(w)

			head, document, err := f.store.Latest(f.ctx, f.tenant)
			if err != nil {
				f.Fatalf("latest: %v", err)
			}
			if head != f.head() || head.SchemaRevision != now.rev || string(document) != now.document {
				f.Errorf("latest is %q at %+v, want %+v", document, head, now)
			}
		}
		for rev, w := range want {
			document, at, err := f.at(tuplestore.Revision(rev)).Schema(f.ctx)
			if err != nil || string(document) != w.document || at != w.rev || (document == nil) != (w.rev == 0) {
				f.Errorf("at revision %d: %q put at %d (error %v), want %+v", rev, document, at, err, w)
			}
		}
		for _, c := range f.changes(0, len(want)) {
			if putHere := want[c.Revision].rev == c.Revision; putHere != (c.Schema != nil) {
				f.Errorf("commit %d has schema %q", c.Revision, c.Schema)
			} else if putHere && string(c.Schema) != want[c.Revision].document {
				f.Errorf("commit %d has schema %q, want %q", c.Revision, c.Schema, want[c.Revision].document)
			}
		}
	}},
	{"putting a document takes a revision, even an equal one", func(f *fixture) {
		for want := range tuplestore.Revision(3) {
			if got := f.write(tuplestore.Write{PutSchema: []byte("schema")}).Revision; got != want+1 {
				f.Errorf("put at revision %d, want %d", got, want+1)
			}
			if head := f.head(); head.SchemaRevision != want+1 {
				f.Errorf("head is %+v", head)
			}
		}
	}},
	{"a write validated by another schema is refused", func(f *fixture) {
		w := func(validatedBy tuplestore.Revision, user string) tuplestore.Write {
			return tuplestore.Write{IfSchema: &validatedBy, Ops: creations(viewer("1", user))}
		}
		refused := func(w tuplestore.Write) {
			f.Helper()
			if err := f.refuse(w); !errors.Is(err, tuplestore.ErrSchemaChanged) {
				f.Errorf("error is %v, want ErrSchemaChanged", err)
			}
		}
		f.write(w(0, "before any"))
		refused(w(1, "not a schema's revision"))
		f.write(tuplestore.Write{PutSchema: []byte("one")}) // revision 2
		refused(w(0, "too old"))
		f.write(w(2, "fits"))
		f.write(w(2, "fits still, after a write without a schema"))
		replace := w(2, "and replaces it")
		replace.PutSchema = []byte("two")
		f.write(replace) // revision 5
		refused(w(2, "too old"))
		refused(replace)
		conflicting := w(2, "too old")
		conflicting.Absent = []tuplestore.Filter{{ObjectType: "doc"}}
		refused(conflicting)
		f.write(w(5, "fits again"))
	}},
}
