package sqlstore

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"stonetown/tuplestore"
)

func TestChangesSurviveEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.SliceOf(rapid.Custom(func(t *rapid.T) tuplestore.Change {
			c := tuplestore.Change{Tuple: tupleOf([6]string(rapid.SliceOfN(rapid.String(), 6, 6).Draw(t, "parts")))}
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				c.Deleted = true
			case 1:
				c.Qualifier = tuplestore.Qualifier{
					ExpiresAt: rapid.Int64().Draw(t, "expires at"),
					Condition: rapid.String().Draw(t, "condition"),
					Context:   rapid.String().Draw(t, "context"),
				}
			}
			return c
		})).Draw(t, "changes")
		text, err := encodeChanges(changes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeChanges(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(changes, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
}

// The encoding is stored: it must not change.
func TestChangesEncoding(t *testing.T) {
	got, err := encodeChanges([]tuplestore.Change{
		{Tuple: tupleOf([6]string{"doc", `a"b`, "viewer", "group", "g", "member"})},
		{Tuple: tupleOf([6]string{"doc", "ü", "", "", "", ""}), Deleted: true},
		{Tuple: tupleOf([6]string{"doc", "1", "viewer", "user", "u", ""}), Qualifier: tuplestore.Qualifier{ExpiresAt: 9007199254740993}},
		{Tuple: tupleOf([6]string{"doc", "1", "viewer", "user", "v", ""}), Qualifier: tuplestore.Qualifier{Condition: "on_call", Context: `{"team":7}`}},
	})
	want := `[["doc","a\"b","viewer","group","g","member"],["doc","ü","","","","","-"],` +
		`["doc","1","viewer","user","u","",9007199254740993,"",""],["doc","1","viewer","user","v","",0,"on_call","{\"team\":7}"]]`
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, c := range []tuplestore.Change{
		{Tuple: tupleOf([6]string{"\xff"})}, {Qualifier: tuplestore.Qualifier{Condition: "\xff"}}, {Qualifier: tuplestore.Qualifier{Context: "\xff"}},
	} {
		if _, err := encodeChanges([]tuplestore.Change{c}); err == nil {
			t.Errorf("a change that is not UTF-8 was encoded: %#v", c)
		}
	}
	for _, text := range []string{
		`[["doc","1","viewer","user","u"]]`, `[["doc","1","viewer","user","u","","+"]]`, `[["doc","1","viewer","user","u","",1]]`,
		`[["doc","1","viewer","user","u","",1,"c"]]`, `[["doc","1","viewer","user","u","",1,"c","",""]]`, `[["doc","1","viewer","user","u","",1.5,"c",""]]`,
		`[["doc","1","viewer","user","u","",9223372036854775808,"c",""]]`, `[["doc","1","viewer","user","u","",1,2,""]]`, `[["doc","1","viewer","user","u","","-",""]]`,
		`[["doc","1","viewer","user","u","",null]]`, `[["doc","1","viewer","user",5,""]]`,
	} {
		if changes, err := decodeChanges(text); !errors.Is(err, errNotChanges) {
			t.Errorf("%s was decoded to %+v, error %v", text, changes, err)
		}
	}
}

func FuzzDecodeChanges(f *testing.F) {
	for _, text := range []string{
		``, `[]`, `[[]]`, `[["doc","1","viewer","user","u",""]]`, `[["doc","1","viewer","user","u","","-"],["doc"`,
		`[["doc","1","viewer","user","u","","+"]]`, `[["doc","1","viewer","user","u","","-","x"]]`, `[["doc",1]]`, `{}`,
		`[["doc","1","viewer","user","u","",1767225600000000,"c","{}"]]`, `[["doc","1","viewer","user","u","",0,"",""]]`, `[["doc","1","viewer","user","u","",1e3,"",""]]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := decodeChanges(text)
		if err != nil {
			return
		}
		again, err := encodeChanges(changes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeChanges(again)
		if diff := cmp.Diff(changes, got); err != nil || diff != "" {
			t.Errorf("%q, written again as %q (error %v): %s", text, again, err, diff)
		}
	})
}

func TestResultsSurviveEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want tuplestore.Result
		for range rapid.IntRange(0, 20).Draw(t, "ops") {
			want.Statuses = append(want.Statuses, tuplestore.Status(rapid.IntRange(0, 3).Draw(t, "status")))
			want.Counts = append(want.Counts, rapid.IntRange(0, 1000).Draw(t, "count"))
		}
		var got tuplestore.Result
		var err error
		if got.Statuses, got.Counts, err = decodeResult(encodeResult(want)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", encodeResult(want), diff)
		}
	})
	got := encodeResult(tuplestore.Result{
		Statuses: []tuplestore.Status{tuplestore.Created, tuplestore.Existed, tuplestore.Deleted, tuplestore.Deleted, tuplestore.Updated, tuplestore.Replaced, tuplestore.Replaced},
		Counts:   []int{1, 0, 1, 12, 1, 2, 1},
	})
	if want := "cedd12urr1"; got != want { // stored: it must not change
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{"x", "1", "c1.5", "cc99999999999999999999"} {
		if _, _, err := decodeResult(text); err == nil {
			t.Errorf("%q was decoded", text)
		}
	}
}

// The text of an object could be split at another colon.
func TestTypesWithColonsNameNothing(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		stored := tupleOf([6]string{"doc", "a:b", "viewer", "user", "a:b", ""})
		r, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{{Tuple: stored}, {Tuple: tuplestore.Presence(stored.Object)}}})
		if err != nil {
			t.Fatal(err)
		}
		sn := s.Snapshot("t", r.Revision)
		object, subject := tuplestore.Object{Type: "doc:a", ID: "b"}, tuplestore.Object{Type: "user:a", ID: "b"}
		other, third := stored, stored
		other.Object, third.Subject = object, tuplestore.Subject{Type: subject.Type, ID: subject.ID}
		found, err := sn.Find(t.Context(), tuplestore.Lookup{
			Tuples: []tuplestore.Tuple{other, third, tuplestore.Presence(object)}, All: []tuplestore.Node{other.Node()}, Naming: []tuplestore.Object{subject},
		})
		if err != nil || len(found) > 0 {
			t.Errorf("found %v, %v", found, err)
		}
		for _, f := range []tuplestore.Filter{
			{ObjectType: "doc:a"},
			{ObjectType: "doc:a", ObjectID: "b"},
			{SubjectType: "user:a"},
			{SubjectType: "user:a", SubjectID: "b"},
			{ObjectType: "doc:a", Presence: tuplestore.OnlyPresence, Newest: true},
		} {
			list, err := sn.List(t.Context(), f, nil, 10)
			if err != nil || len(list) > 0 {
				t.Errorf("%+v lists %v, %v", f, list, err)
			}
			if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: f}}}); err != nil {
				t.Error(err)
			}
		}
		if list, err := sn.List(t.Context(), tuplestore.Filter{Presence: tuplestore.WithPresence}, nil, 10); err != nil || len(list) != 2 {
			t.Errorf("%v, %v, want both tuples", list, err)
		}
		if head, err := s.Head(t.Context(), "t"); err != nil || head.Revision != r.Revision {
			t.Errorf("something was deleted: %+v, %v", head, err)
		}
	})
}

func TestWritesThatAreNotTextAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		good := tupleOf([6]string{"doc", "1", "viewer", "user", "ann", ""})
		for _, i := range []int{0, 3} { // the types
			parts := fields(good)
			parts[i] += ":"
			if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{{Tuple: tupleOf(parts)}}}); err == nil {
				t.Errorf("%q was written", parts)
			}
		}
		for _, bad := range []string{"\x00", "a\xffb", "\xed\xa0\x80"} {
			for i := range 6 {
				parts := fields(good)
				parts[i] = bad
				if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{{Tuple: tupleOf(parts)}}}); err == nil {
					t.Errorf("%q as part %d was written", bad, i)
				}
			}
			for _, op := range []tuplestore.Op{
				{Tuple: good, Qualifier: tuplestore.Qualifier{Condition: bad}},
				{Tuple: good, Qualifier: tuplestore.Qualifier{Context: bad}},
				{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: "doc", Condition: bad}},
			} {
				if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{op}}); err == nil {
					t.Errorf("%#v was written", op)
				}
			}
			if _, err := s.Write(t.Context(), "t", tuplestore.Write{Actor: bad, Ops: []tuplestore.Op{{Tuple: good}}}); err == nil {
				t.Errorf("%q as actor was written", bad)
			}
		}
		// A read of invalid text finds nothing or is refused, and never finds another
		// tuple.
		if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{{Tuple: tupleOf([6]string{"doc", "a\uFFFDb", "viewer", "user", "ann", ""})}}}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Snapshot("t", 1).Find(t.Context(), tuplestore.Lookup{Tuples: []tuplestore.Tuple{tupleOf([6]string{"doc", "a\xffb", "viewer", "user", "ann", ""})}})
		if len(found) > 0 || err == nil {
			t.Errorf("found %v, error %v", found, err)
		}
	})
}
