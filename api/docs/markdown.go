package docs

import (
	"bytes"
	"errors"
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown parses and renders pages. It drops raw HTML.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithHeadingAttribute()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(wide{}, 100))),
)

// render parses the source of the page. link returns the address of a page by the path of its file,
// relative to that of this page.
func (p *Page) render(link func(file string) (string, bool)) error {
	root := markdown.Parser().Parse(text.NewReader(p.source))
	if err := relink(root, link); err != nil {
		return err
	}
	p.divide(root)
	if p.Title == "" {
		return errors.New("the page has no title")
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.source, root); err != nil {
		return err
	}
	p.body = template.HTML(b.String()) // its source is part of the program
	return nil
}

// relink changes links to files of the repository to links to pages. Of a link to any other file it
// leaves the text.
func relink(root ast.Node, link func(file string) (string, bool)) error {
	var links []*ast.Link
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && entering {
			links = append(links, l)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	for _, l := range links {
		to, err := url.Parse(string(l.Destination))
		if err != nil {
			return err
		}
		if to.IsAbs() || to.Path == "" || strings.HasPrefix(to.Path, "/") {
			continue
		}
		address, ok := link(to.Path)
		if !ok {
			for child := l.FirstChild(); child != nil; child = l.FirstChild() {
				l.Parent().InsertBefore(l.Parent(), l, child)
			}
			l.Parent().RemoveChild(l.Parent(), l)
			continue
		}
		if to.Fragment != "" {
			address += "#" + to.EscapedFragment()
		}
		l.Destination = []byte(address)
	}
	return nil
}

// divide finds the title, the headings and the text below each.
func (p *Page) divide(root ast.Node) {
	var id, heading string
	var below strings.Builder
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			below.WriteString(plain(n, p.source) + " ")
			continue
		}
		title := strings.TrimSpace(plain(h, p.source))
		if h.Level == 1 && p.Title == "" {
			p.Title, heading = title, title
			continue
		}
		p.sections = append(p.sections, newSection(p, id, heading, below.String()))
		below.Reset()
		name, _ := h.AttributeString("id")
		id, heading = string(name.([]byte)), title // every heading has an id
		if h.Level <= 3 {
			p.Headings = append(p.Headings, Heading{ID: id, Text: title, Depth: h.Level})
		}
	}
	p.sections = append(p.sections, newSection(p, id, heading, below.String()))
}

// plain returns the text of a node, without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	// A function that does not fail.
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && (n.Type() == ast.TypeBlock) {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// wide renders what can be wider than a screen, code and tables, in elements that scroll, which
// the keyboard reaches (WCAG 2.1.1).
type wide struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (wide) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(tables.KindTable, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(`<div class="scroll" tabindex="0" role="group" aria-label="Table">` + "\n<table>\n")
		} else {
			_, _ = w.WriteString("</table>\n</div>\n")
		}
		return ast.WalkContinue, nil
	})
	// The library aligns cells with styles, which the policy of the pages refuses. An empty heading
	// is an ordinary cell (WCAG 1.3.1).
	r.Register(tables.KindTableCell, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		tag := "td"
		if n.Parent().Kind() == tables.KindTableHeader && n.HasChildren() {
			tag = "th"
		}
		switch {
		case !entering:
			_, _ = w.WriteString("</" + tag + ">\n")
		case n.(*tables.TableCell).Alignment == tables.AlignRight:
			_, _ = w.WriteString("<" + tag + ` class="right">`)
		default:
			_, _ = w.WriteString("<" + tag + ">")
		}
		return ast.WalkContinue, nil
	})
	code := func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(`<pre tabindex="0"><code>`)
			_, _ = w.WriteString(template.HTMLEscapeString(string(n.Lines().Value(source))))
			_, _ = w.WriteString("</code></pre>\n")
		}
		return ast.WalkSkipChildren, nil
	}
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
}
