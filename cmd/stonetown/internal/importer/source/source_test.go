package source

import (
	"strings"
	"testing"
	"testing/fstest"

	"stonetown/cmd/stonetown/internal/importer"
)

func TestFiles(t *testing.T) {
	files := Files{fstest.MapFS{
		"a/model.fga": {Data: []byte("\ufeffmodel")}, "a/long": {Data: []byte("12345")}, "a/binary": {Data: []byte{0xff}},
	}}
	at := importer.Place{File: "a/store.yaml", Line: 7}
	for _, test := range []struct {
		name, want, problem string
	}{
		{"model.fga", "model", ""},
		{"./model.fga", "model", ""},
		{"../a/model.fga", "model", ""},
		{"long", "", `a/store.yaml:7: cannot read "long": a/long: longer than 4 bytes`},
		{"binary", "", "not UTF-8"},
		{"none", "", `cannot read "none": a/none: file does not exist`},
		{"../../model.fga", "", "is not within the folder"},
		{"/a/model.fga", "", "is not within the folder"},
		{".", "", "cannot read"},
	} {
		limit := 100
		if test.name == "long" {
			limit = 4
		}
		_, got, err := files.Referred(at, test.name, limit)
		if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
	if _, err := files.Text("../x", 1); err == nil {
		t.Error("a path that leads out")
	}
}

func TestErrorf(t *testing.T) {
	if got := Errorf(importer.Place{File: "f"}, "bad %s", Quoted("a\nb")).Error(); got != `f: bad "a\nb"` {
		t.Error(got)
	}
	long := Errorf(importer.Place{File: "f", Line: 1}, "%s", strings.Repeat("ü", 2000)).Error()
	if !strings.HasPrefix(long, "f:1: ü") || !strings.HasSuffix(long, "ü...") || len(long) > maxMessage+20 {
		t.Error(len(long), long[len(long)-10:])
	}
}
