package spicedb

import (
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

const (
	// maxNesting is the maximum depth of parentheses, because the parser recurses and the text
	// is not trusted.
	maxNesting = 100
	// maxParts is the maximum number of subjects of a relation or operands of a permission.
	// With partials a short text can repeat them many times.
	maxParts = 1000
	maxName  = 256 // bytes
)

// The grammar of the schema language. SpiceDB ends a statement at a line break, and this parser
// at the keyword of the next statement, which accepts the same files and more.
type (
	file struct {
		Statements []*statement `parser:"( @@ | ';' )*"`
	}
	statement struct {
		Pos        lexer.Position
		Use        string      `parser:"  'use' @Ident"`
		Import     string      `parser:"| 'import' @String"`
		Definition *definition `parser:"| 'definition' @@"`
		Partial    *definition `parser:"| 'partial' @@"`
		Caveat     *caveat     `parser:"| 'caveat' @@"`
	}
	definition struct {
		Pos     lexer.Position
		Name    string    `parser:"@(Ident ('/' Ident)*)"`
		Members []*member `parser:"'{' ( @@ | ';' )* '}'"`
		Doc     string
	}
	member struct {
		Pos        lexer.Position
		Relation   *relation   `parser:"  'relation' @@"`
		Permission *permission `parser:"| 'permission' @@"`
		Partial    string      `parser:"| '...' @(Ident ('/' Ident)*)"`
	}
	relation struct {
		Name     string     `parser:"@Ident"`
		Subjects []*subject `parser:"':' @@ ('|' @@)*"`
	}
	subject struct {
		Pos      lexer.Position
		Type     string `parser:"@(Ident ('/' Ident)*)"`
		Wildcard bool   `parser:"( ':' @'*'"`
		Relation string `parser:"| '#' @(Ident | '...') )?"`
		// With is a caveat, or the word expiration.
		With    string `parser:"( 'with' @(Ident ('/' Ident)*)"`
		Expires bool   `parser:"('and' @'expiration')? )?"`
	}
	permission struct {
		Name       string      `parser:"@Ident"`
		Annotation []string    `parser:"( ':' @Ident ('|' @Ident)* )?"`
		Expression *expression `parser:"'=' @@"`
	}
	// An expression is all members of the first term without those of the others: in this
	// language - binds weakest and + strongest.
	expression struct {
		Terms []*intersection `parser:"@@ ('-' @@)*"`
	}
	intersection struct {
		Terms []*union `parser:"@@ ('&' @@)*"`
	}
	union struct {
		Terms []*operand `parser:"@@ ('+' @@)*"`
	}
	operand struct {
		Pos    lexer.Position
		Group  *expression `parser:"  '(' @@ ')'"`
		Nil    bool        `parser:"| @'nil'"`
		Name   string      `parser:"| @Ident"`
		Arrows []*arrow    `parser:"  @@*"`
	}
	arrow struct {
		Pos      lexer.Position
		Target   string `parser:"  '->' @Ident"`
		Function string `parser:"| '.' @Ident"`
		Of       string `parser:"  '(' @Ident ')'"`
	}
	caveat struct {
		Pos        lexer.Position
		Name       string       `parser:"@(Ident ('/' Ident)*)"`
		Parameters []*parameter `parser:"'(' @@ (',' @@)* ')'"`
		Body       body         `parser:"'{' @@ '}'"`
		Expression string
	}
	parameter struct {
		Name string `parser:"@Ident"`
		// Type is written without spaces: map<list<string>>.
		Type string `parser:"@(Ident ('<' Ident)* '>'*)"`
	}
	// body is the position of the text between the braces of a caveat.
	body struct{ from, to int }
)

// Parse implements [participle.Parseable]. It reads up to the brace that closes the caveat.
// Braces within strings and comments are not tokens.
func (b *body) Parse(lex *lexer.PeekingLexer) error {
	b.from = lex.Peek().Pos.Offset
	for depth := 0; ; {
		t := lex.Peek()
		switch {
		case t.EOF():
			return participle.Errorf(t.Pos, "the caveat is not closed")
		case t.Value == "{":
			depth++
		case t.Value == "}":
			if depth == 0 {
				return nil
			}
			depth--
		}
		b.to = t.Pos.Offset + len(t.Value)
		lex.Next()
	}
}

// tokens match every text, also strings and comments without an end: a pattern that fails only
// at the end of the text would be tried again and again.
var tokens = lexer.MustSimple([]lexer.SimpleRule{
	{Name: "Space", Pattern: `\s+`},
	{Name: "Comment", Pattern: `//[^\n]*|/\*(?s:.*?)(?:\*/|\z)`},
	{Name: "String", Pattern: `[rR]"""(?s:.*?)(?:"""|\z)|[rR]'''(?s:.*?)(?:'''|\z)` +
		`|[rR](?:"[^"\n]*(?:"|\n|\z)|'[^'\n]*(?:'|\n|\z))` +
		`|"""(?s:(?:\\.|[^\\])*?)(?:"""|\\?\z)|'''(?s:(?:\\.|[^\\])*?)(?:'''|\\?\z)` +
		`|"(?:\\.|[^"\\\n])*(?:"|\\?(?:\n|\z))|'(?:\\.|[^'\\\n])*(?:'|\\?(?:\n|\z))`},
	{Name: "Keyword", Pattern: `(?:definition|caveat|relation|permission|nil|with)\b`},
	{Name: "Ident", Pattern: `[A-Za-z0-9_]+`},
	{Name: "Op", Pattern: `->|\.\.\.|(?s:.)`},
})

var parser = participle.MustBuild[file](participle.Lexer(tokens), participle.Elide("Space", "Comment"))

// guarded is a lexer that numbers lines as in the file, of which the schema can be a part, and
// refuses tokens that the parser must not read.
type guarded struct {
	lexer.Lexer
	lines   []int // of the file, by the line of the text; nil if the same
	nesting int
}

func (g *guarded) Next() (lexer.Token, error) {
	t, err := g.Lexer.Next()
	if err != nil {
		return t, err
	}
	if g.lines != nil {
		t.Pos.Line = g.lines[min(t.Pos.Line, len(g.lines))-1]
	}
	switch {
	case t.Type == comment && strings.HasPrefix(t.Value, "/*") && (len(t.Value) < 4 || !strings.HasSuffix(t.Value, "*/")):
		return t, participle.Errorf(t.Pos, "the comment is not closed")
	case t.Type == text && !closed(t.Value):
		return t, participle.Errorf(t.Pos, "the string is not closed")
	case t.Type == keyword:
		g.nesting = 0
	case t.Type == ident && len(t.Value) > maxName:
		return t, participle.Errorf(t.Pos, "a name of more than %d bytes", maxName)
	case t.Value == "(":
		if g.nesting++; g.nesting > maxNesting {
			return t, participle.Errorf(t.Pos, "parentheses are nested more than %d deep", maxNesting)
		}
	case t.Value == ")":
		g.nesting--
	}
	return t, nil
}

var (
	comment = tokens.Symbols()["Comment"]
	space   = tokens.Symbols()["Space"]
	text    = tokens.Symbols()["String"]
	ident   = tokens.Symbols()["Ident"]
	keyword = tokens.Symbols()["Keyword"]
)

// closed reports whether a string token ends with its quote.
func closed(s string) bool {
	body := strings.TrimLeft(s, "rR")
	for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
		if rest, ok := strings.CutPrefix(body, quote); ok {
			inside, ended := strings.CutSuffix(rest, quote)
			escapes := len(inside) - len(strings.TrimRight(inside, `\`))
			return ended && (body != s || escapes%2 == 0)
		}
	}
	return false
}

// parse parses the text of a schema in a file.
func parse(name, code string, lines []int) (*file, error) {
	raw, err := tokens.LexString(name, code)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	lex, err := lexer.Upgrade(&guarded{Lexer: raw, lines: lines}, space, comment)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	f, err := parser.ParseFromLexer(lex)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	for _, s := range f.Statements {
		switch {
		case len(s.name()) > maxName:
			err = source.Errorf(place(s.Pos), "a name of more than %d bytes", maxName)
		case s.Definition != nil:
			s.Definition.Doc = docBefore(code[:s.Pos.Offset])
			err = s.Definition.limit()
		case s.Partial != nil:
			err = s.Partial.limit()
		case s.Caveat != nil:
			if s.Caveat.Body.to == 0 {
				err = source.Errorf(place(s.Pos), "caveat %s has no expression", s.Caveat.Name)
				break
			}
			s.Caveat.Expression = strings.TrimSpace(code[s.Caveat.Body.from:s.Caveat.Body.to])
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// name returns the name that a statement defines.
func (s *statement) name() string {
	switch {
	case s.Definition != nil:
		return s.Definition.Name
	case s.Partial != nil:
		return s.Partial.Name
	case s.Caveat != nil:
		return s.Caveat.Name
	}
	return ""
}

// limit refuses members with too many parts.
func (d *definition) limit() error {
	for _, m := range d.Members {
		parts := 0
		switch {
		case m.Relation != nil:
			parts = len(m.Relation.Subjects)
		case m.Permission != nil:
			operands(m.Permission.Expression, func(*operand) { parts++ })
		}
		if parts > maxParts {
			return source.Errorf(place(m.Pos), "%s#%s has more than %d parts", d.Name, m.name(), maxParts)
		}
	}
	return nil
}

// docBefore returns the text of the doc comment at the end of the code.
func docBefore(code string) string {
	code, found := strings.CutSuffix(strings.TrimSpace(code), "*/")
	from := strings.LastIndex(code, "/*")
	if !found || from < 0 || !strings.HasPrefix(code[from:], "/**") {
		return ""
	}
	lines := strings.Split(code[from+len("/**"):], "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines[i]), "*"))
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return strings.Join(lines, "\n")
}

func syntaxError(name string, err error) error {
	var at participle.Error
	if errors.As(err, &at) {
		return source.Errorf(importer.Place{File: name, Line: at.Position().Line}, "%s", at.Message())
	}
	return source.Errorf(importer.Place{File: name}, "%v", err)
}

// place returns a position for the report.
func place(p lexer.Position) importer.Place { return importer.Place{File: p.Filename, Line: p.Line} }
