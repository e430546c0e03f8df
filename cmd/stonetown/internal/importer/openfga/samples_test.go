package openfga

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/engine"
	"stonetown/schema"
)

// folder returns a file system with files, given as names and texts.
func folder(namesAndTexts ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(namesAndTexts); i += 2 {
		files[namesAndTexts[i]] = &fstest.MapFile{Data: []byte(namesAndTexts[i+1])}
	}
	return files
}

// lines returns the lines of a text, without surrounding space.
func lines(text string) []string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// typeLines formats types: a line for each, and for each of their relations, actions and
// conditions.
func typeLines(types []schema.Type) []string {
	var all []string
	for _, t := range types {
		all = append(all, t.Name)
		for _, r := range t.Relations {
			line := "." + r.Name
			for _, rw := range r.Rewrites {
				line += " " + rewriteText(rw)
			}
			if r.Subjects != nil {
				line += fmt.Sprint(" ", r.Subjects)
			}
			all = append(all, line)
		}
		for _, action := range slices.Sorted(maps.Keys(t.Actions)) {
			all = append(all, "!"+action+" is "+t.Actions[action])
		}
		for _, c := range t.Conditions {
			all = append(all, fmt.Sprintf("?%s%v %s", c.Name, c.Parameters, strings.Join(strings.Fields(c.Expression), " ")))
		}
	}
	return all
}

func rewriteText(rw schema.Rewrite) string {
	parts := make([]string, len(rw.Children))
	for i, child := range rw.Children {
		parts[i] = rewriteText(child)
	}
	switch rw.Kind {
	case schema.This:
		return "this"
	case schema.Computed:
		return rw.Relation
	case schema.TupleToUserset:
		return rw.Tupleset + "->" + rw.Computed
	case schema.Union:
		return "(" + strings.Join(parts, " + ") + ")"
	case schema.Intersection:
		return "(" + strings.Join(parts, " & ") + ")"
	case schema.Exclusion:
		return "(" + rewriteText(*rw.Base) + " - " + rewriteText(*rw.Subtract) + ")"
	}
	return "?"
}

func opLines(ops []engine.WriteOp) []string {
	var all []string
	for _, op := range ops {
		line := op.Resource.String() + "#" + op.Relation + "@" + op.Subject.String()
		if op.Condition != "" {
			line += " if " + op.Condition + " " + string(op.Context)
		}
		all = append(all, line)
	}
	return all
}

func reportLines(report []importer.Finding) []string {
	var all []string
	for _, f := range report {
		all = append(all, fmt.Sprintf("%s %s: %s", f.Kind, spot(f.At), f.Message))
	}
	return all
}

// assertionLines formats questions with the expected answers.
func assertionLines(assertions []importer.Assertion) []string {
	var all []string
	for _, a := range assertions {
		line := fmt.Sprintf("%d: %s %v", a.At.Line, a.Question(), a.Want())
		if a.Context != nil {
			line += fmt.Sprintf(" given %v", a.Context)
		}
		if a.Contextual != nil {
			line += fmt.Sprintf(" with %v", opLines(a.Contextual))
		}
		all = append(all, line)
	}
	return all
}

type sample struct {
	name  string
	files fstest.MapFS
	read  string // store.fga.yaml if empty
	// The expected lines.
	types, relations, report, assertions string
}

func TestSamples(t *testing.T) {
	for _, s := range slices.Concat(accessSamples, organizationSamples, conditionSamples) {
		t.Run(s.name, func(t *testing.T) {
			name := s.read
			if name == "" {
				name = "store.fga.yaml"
			}
			w, err := Read(s.files, name)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "types", typeLines(w.Types), s.types)
			same(t, "relations", opLines(w.Relations), s.relations)
			same(t, "report", reportLines(w.Report), s.report)
			same(t, "assertions", assertionLines(w.Assertions), s.assertions)
			result, err := importer.Validate(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range result.Differences {
				t.Errorf("%s: %s expected %s, got %s", spot(d.At), d.Question, d.Want, d.Got)
			}
		})
	}
}

func same(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if diff := cmp.Diff(lines(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
