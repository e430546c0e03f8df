package stonetown_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

const walksHeading = "## Five requests and an event, from top to bottom\n"

// TestWalks compares the calls in docs/architecture.md with the code: every function is in the
// named file, and no call goes up in the import order.
func TestWalks(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), walksHeading)
	_, section, _ = strings.Cut(section, "```text\n")
	section, _, _ = strings.Cut(section, "```")
	walks := parseWalks(section)
	if len(walks) != 6 {
		t.Fatalf("%d walks, want 6", len(walks))
	}
	for _, w := range walks {
		if len(w.calls) < 5 {
			t.Errorf("%s has %d calls", w.name, len(w.calls))
		}
		if err := w.check(t); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// TestWalksCanFail makes sure that the check above finds errors.
func TestWalksCanFail(t *testing.T) {
	for _, test := range []struct {
		text string
		ok   bool
	}{
		{"check\n  api/resources/checks.go Handlers.Check\n    engine/check.go Engine.Check\n", true},
		{"up\n  engine/check.go Engine.Check\n    api/resources/checks.go Handlers.Check\n", false},
		{"beside\n  identity/user.go Directory.Create\n    oauth/oauth.go New\n", false},
		{"no such function\n  engine/check.go Engine.Chekc\n", false},
		{"no such file\n  engine/nothing.go Engine.Check\n", false},
	} {
		walks := parseWalks(test.text)
		if len(walks) != 1 || len(walks[0].calls) == 0 {
			t.Fatalf("%q has %d walks", test.text, len(walks))
		}
		if err := walks[0].check(t); (err == nil) != test.ok {
			t.Errorf("%s: %v", walks[0].name, err)
		}
	}
}

// walk is a tree of calls, in the order of the text.
type walk struct {
	name  string
	calls []call
}

// call is the call of a function, Name or Type.Name, in a file. Its caller is the last call
// before it with a smaller depth.
type call struct {
	file, function string
	depth          int
}

// parseWalks reads walks: a line without indentation names one, and the lines below it are its
// calls, each with a file, a function and an explanation, indented below its caller.
func parseWalks(text string) (walks []walk) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		depth := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case len(fields) == 0:
		case depth == 0:
			walks = append(walks, walk{name: strings.TrimSpace(line)})
		case len(fields) > 1 && len(walks) > 0:
			w := &walks[len(walks)-1]
			w.calls = append(w.calls, call{fields[0], fields[1], depth})
		}
	}
	return walks
}

func (w walk) check(t *testing.T) error {
	t.Helper()
	below := parseOrder(t, order)
	var callers []call
	for _, c := range w.calls {
		if err := c.exists(); err != nil {
			return err
		}
		for len(callers) > 0 && callers[len(callers)-1].depth >= c.depth {
			callers = callers[:len(callers)-1]
		}
		if len(callers) > 0 {
			caller := callers[len(callers)-1]
			from, to := nameOf(below, path.Dir(caller.file)), nameOf(below, path.Dir(c.file))
			if from != to && !below[from][to] {
				return fmt.Errorf("%s calls %s, which is not below it", caller.file, c.file)
			}
		}
		callers = append(callers, c)
	}
	return nil
}

// exists fails unless the file declares the function.
func (c call) exists() error {
	source, err := os.ReadFile(c.file)
	if err != nil {
		return err
	}
	declaration := `(?m)^func ` + regexp.QuoteMeta(c.function) + `\(`
	if receiver, method, ok := strings.Cut(c.function, "."); ok {
		declaration = `(?m)^func \(\w+ \*?` + regexp.QuoteMeta(receiver) + `\) ` + regexp.QuoteMeta(method) + `\(`
	}
	if !regexp.MustCompile(declaration).Match(source) {
		return fmt.Errorf("%s has no function %s", c.file, c.function)
	}
	return nil
}
