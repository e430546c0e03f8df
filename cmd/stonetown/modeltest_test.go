package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTestCommand(t *testing.T) {
	const example = "../../examples/documents.test.yaml"
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	r := terminal(t, nil, "test", example, "--require-coverage")
	if r.code != 0 || r.out != "17 of 17 assertions hold\n" {
		t.Errorf("the example: %+v", r)
	}

	// Another model with the same assertions.
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.yaml")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), "computed, relation: editor", "computed, relation: banned", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report.xml")
	r = terminal(t, nil, "test", example, changed, "--junit", report)
	if r.code != 1 || !strings.Contains(r.out, "changed.yaml:49: may user:ed view document:q3? expected allowed, got denied\n") || !strings.Contains(r.errs, "1 answers differ") {
		t.Errorf("a changed model: %+v", r)
	}
	var suites struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	written, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(written, &suites); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, suite := range suites.Suites {
		for _, c := range suite.Cases {
			if c.Failure != nil {
				failed++
				if c.Name != "may user:ed view document:q3?" || c.Failure.Message != "expected allowed, got denied" {
					t.Errorf("failure %+v", c)
				}
			}
		}
	}
	if len(suites.Suites) != 2 || suites.Suites[0].Tests != 17 || suites.Suites[0].Failures != 0 || suites.Suites[1].Failures != 1 || failed != 1 {
		t.Errorf("report: %s", written)
	}

	// A part without an assertion.
	loose := writeFile(t, "types: [{name: doc, relations: [{name: a}, {name: b}]}]\nrelations: [doc:1#a@user:x]\ntests: [{allow: [user:x a doc:1]}]\n")
	const missing = "no assertion depends on doc#b: its own relations\n"
	args := []string{"test", loose, "--from", "stonetown"}
	if r := terminal(t, nil, args...); r.code != 0 || !strings.Contains(r.out, missing) {
		t.Errorf("%+v", r)
	}
	if r := terminal(t, nil, append(args, "--require-coverage")...); r.code != 1 || !strings.Contains(r.out, missing) {
		t.Errorf("%+v", r)
	}
	empty := writeFile(t, "types: [{name: doc}]\n")
	if r := terminal(t, nil, "test", empty, "--from", "stonetown"); r.code != 1 || !strings.Contains(r.errs, "nothing was tested") {
		t.Errorf("%+v", r)
	}
	if r := terminal(t, nil, "test", example, "--from", "other"); r.code != 1 || !strings.Contains(r.errs, "it must be stonetown, openfga or spicedb") {
		t.Errorf("%+v", r)
	}
}
