package openfga

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema/condition"
)

// The parser of the language recurses for every parenthesis and every blank line, and a stack
// overflow ends the process. For nested parentheses and long conditions it takes far more than
// linear time.
const (
	maxParentheses = 32   // open at once
	maxNested      = 1000 // within 8 others
	maxBlankLines  = 20   // in a row; further ones are removed before the parser
	maxCondition   = 4 * condition.MaxExpression
)

// script is a text in the language of OpenFGA, prepared for its parser.
type script struct {
	file  string
	lines []string
	// numbers are the line numbers in the file, and indents the indentations of the lines.
	numbers, indents []int
}

// prepare returns the script of a text. If the text is a part of a file, d and numbers have the
// positions of its lines.
func prepare(name, text string, d *document, numbers []int) (*script, error) {
	s := &script{file: name}
	blank, open, nested, size := 0, 0, 0, 0
	expression := -1 // bytes since the beginning of a condition
	for i, line := range strings.Split(text, "\n") {
		number, indent := i+1, 0
		if numbers != nil {
			number = numbers[i]
			indent = max(0, strings.Index(d.lines[number-1], line))
		}
		at := importer.Place{File: name, Line: number}
		line = strings.TrimSuffix(line, "\r")
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, source.Errorf(at, "a control character")
		}
		line, _, _ = strings.Cut(line, " #") // comments, in the syntax of the parser
		code := strings.TrimSpace(line)
		if strings.HasPrefix(code, "#") {
			code, line = "", ""
		}
		if code != "" {
			blank = 0
		} else if blank++; blank > maxBlankLines {
			continue
		}
		for _, r := range line {
			switch r {
			case '(':
				if open++; open > 8 {
					nested++
				}
			case ')':
				open = max(0, open-1)
			}
			if open > maxParentheses || nested > maxNested {
				return nil, source.Errorf(at, "parentheses are nested too deep")
			}
		}
		switch {
		case conditionLine.MatchString(line):
			expression = 0
		case typeLine.MatchString(line):
			expression = -1
		}
		if expression >= 0 {
			expression += len(line)
		}
		if expression > maxCondition {
			return nil, source.Errorf(at, "a condition of more than %d bytes", maxCondition)
		}
		if size += len(line); size > maxDSL {
			return nil, source.Errorf(at, "a model of more than %d bytes, besides comments", maxDSL)
		}
		s.lines = append(s.lines, line)
		s.numbers = append(s.numbers, number)
		s.indents = append(s.indents, indent)
	}
	return s, nil
}

func (s *script) text() string { return strings.Join(s.lines, "\n") }

// at returns the place of a line, from 0.
func (s *script) at(line int) importer.Place {
	if line < 0 || line >= len(s.numbers) {
		line = len(s.numbers) - 1
	}
	return importer.Place{File: s.file, Line: s.numbers[line]}
}

// isModule reports whether the text is a module.
func (s *script) isModule() bool {
	for _, line := range s.lines {
		if words := strings.Fields(line); len(words) > 0 {
			return words[0] == "module"
		}
	}
	return false
}

// parse parses the text, which is a whole model or a module.
func (s *script) parse() (*openfgav1.AuthorizationModel, error) {
	var model *openfgav1.AuthorizationModel
	err := guarded(func() (err error) {
		model, err = transformer.TransformDSLToProto(s.text())
		return err
	})
	if err != nil {
		return nil, s.misread(err)
	}
	return model, nil
}

// guarded turns a panic into an error. The tree of the parser can cause one if the text is not
// well-formed.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("not a model in the OpenFGA language")
		}
	}()
	return f()
}

var parserError = regexp.MustCompile(`(?s)line=(-?[0-9]+), column=([0-9]+): (.*)`)

// misread is an error of the parser, at its place. Of several errors the first one is returned,
// because the others mostly follow from it.
func (s *script) misread(err error) error {
	var several *transformer.OpenFgaDslSyntaxMultipleError
	more := ""
	if errors.As(err, &several) && len(several.Errors) > 0 {
		err = several.Errors[0]
		if n := len(several.Errors) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
	}
	parts := parserError.FindStringSubmatch(err.Error())
	if parts == nil {
		return source.Errorf(importer.Place{File: s.file}, "%s", source.Clip(err.Error()))
	}
	line, _ := strconv.Atoi(parts[1])
	column, _ := strconv.Atoi(parts[2])
	if line >= 0 && line < len(s.lines) {
		indent := s.indents[line]
		column = min(column, utf8.RuneCountInString(s.lines[line])) + indent + 1
	}
	return source.Errorf(s.at(line), "column %d: %s%s", column, source.Clip(parts[3]), more)
}

var (
	typeLine      = regexp.MustCompile(`^\s*(extend\s+)?type\s+([^\s#]+)`)
	relationLine  = regexp.MustCompile(`^\s*define\s+([^\s:]+)\s*:`)
	conditionLine = regexp.MustCompile(`^\s*condition\s+([^\s(]+)`)
)

// declarations are the places of the declarations in a model.
type declarations struct {
	file       string
	types      map[string]importer.Place
	relations  map[key]importer.Place
	conditions map[string]importer.Place
}

func newDeclarations(file string) *declarations {
	return &declarations{file, map[string]importer.Place{}, map[key]importer.Place{}, map[string]importer.Place{}}
}

// find finds the places of declarations, which the result of the parser does not have.
func (d *declarations) find(s *script) {
	typ := ""
	for i, line := range s.lines {
		if parts := typeLine.FindStringSubmatch(line); parts != nil {
			if typ = parts[2]; parts[1] == "" {
				source.First(d.types, typ, s.at(i))
			}
		} else if parts := relationLine.FindStringSubmatch(line); parts != nil && typ != "" {
			source.First(d.relations, key{typ, parts[1]}, s.at(i))
		} else if parts := conditionLine.FindStringSubmatch(line); parts != nil {
			typ = ""
			source.First(d.conditions, parts[1], s.at(i))
		}
	}
}

func (d *declarations) ofType(name string) importer.Place      { return found(d, d.types, name) }
func (d *declarations) ofRelation(k key) importer.Place        { return found(d, d.relations, k) }
func (d *declarations) ofCondition(name string) importer.Place { return found(d, d.conditions, name) }

func found[K comparable](d *declarations, places map[K]importer.Place, k K) importer.Place {
	if at, ok := places[k]; ok {
		return at
	}
	return importer.Place{File: d.file}
}
