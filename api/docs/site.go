package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"

	"stonetown"
	"stonetown/api/web"
)

// Layout are the addresses of a site.
type Layout struct {
	// Page returns the address of a page, by its name.
	Page func(name string) string
	// Scripts returns the address of the folder of the playground's scripts, by a name that changes
	// with them.
	Scripts func(folder string) string
	// Style and Icon are the addresses of the style sheet and of the icon. Default: there is no icon.
	Style, Icon string
	// Search is the address of the search. Default: there is none.
	Search string
}

// Page is a page of the documentation.
type Page struct {
	Name     string // in addresses; empty: the first page
	Title    string
	Chapter  string
	File     string // in the repository, which links name; a generated page has none there
	Headings []Heading
	HTML     []byte

	hasScripts bool

	source   []byte // Markdown
	body     template.HTML
	sections []section
}

// Heading is a heading below the title.
type Heading struct {
	ID, Text string
	Depth    int // 2 or 3
}

// Label is the title in the menu: without the chapter, which stands above it.
func (p *Page) Label() string {
	_, after, found := strings.Cut(p.Title, ": ")
	if found {
		return after
	}
	return p.Title
}

// chapter is a part of the menu.
type chapter struct {
	Name  string
	Pages []*Page
}

// written are the pages of the repository, in the order of the menu.
var written = []Page{
	{Chapter: "Start", Name: "", File: "README.md"},
	{Chapter: "Start", Name: playgroundPage, File: "docs/playground.md"},
	{Chapter: "Guides", Name: "modelling", File: "docs/modelling.md"},
	{Chapter: "Guides", Name: "control-plane", File: "docs/control-plane.md"},
	{Chapter: "Guides", Name: "go-client", File: "docs/go-client.md"},
	{Chapter: "Guides", Name: "moving", File: "docs/moving.md"},
	{Chapter: "Guides", Name: "typescript-client", File: "docs/typescript-client.md"},
	{Chapter: "Guides", Name: "oauth-recipes", File: "docs/oauth-recipes.md"},
	{Chapter: "Guides", Name: "tokens", File: "docs/tokens.md"},
	{Chapter: "Guides", Name: "workload-identity", File: "docs/workload-identity.md"},
	{Chapter: "Guides", Name: "agents", File: "docs/agents.md"},
	{Chapter: "Guides", Name: "certification", File: "docs/certification.md"},
	{Chapter: "Guides", Name: "webhooks", File: "docs/webhooks.md"},
	{Chapter: "Guides", Name: "sign-in-flows", File: "docs/sign-in-flows.md"},
	{Chapter: "Guides", Name: "federation", File: "docs/federation.md"},
	{Chapter: "Guides", Name: "scim", File: "docs/scim.md"},
	{Chapter: "Guides", Name: "saml", File: "docs/saml.md"},
	{Chapter: "Guides", Name: "branding", File: "docs/branding.md"},
	{Chapter: "Operating", Name: "operations", File: "docs/operations.md"},
	{Chapter: "Operating", Name: "configuration", File: "docs/configuration.md"},
	{Chapter: "Operating", Name: "security-model", File: "docs/security-model.md"},
	{Chapter: "Operating", Name: "performance", File: "docs/performance.md"},
	{Chapter: "Operating", Name: "reliability", File: "docs/reliability.md"},
	{Chapter: "Operating", Name: "scale", File: "docs/scale.md"},
	{Chapter: "Operating", Name: "leases", File: "docs/leases.md"},
	{Chapter: "Project", Name: "architecture", File: "docs/architecture.md"},
	{Chapter: "Project", Name: "style", File: "docs/style.md"},
	{Chapter: "Project", Name: "contributing", File: "CONTRIBUTING.md"},
	{Chapter: "Project", Name: "changelog", File: "CHANGELOG.md"},
}

// Site is the rendered documentation. It is not changed after [New].
type Site struct {
	Pages []*Page

	// unlinked are links to files of the repository that are no pages. The site has their text.
	unlinked []string
	layout   Layout
	byName   map[string]*Page
	search   *template.Template
	chapters []chapter
}

// New renders all pages.
func New(layout Layout) (*Site, error) {
	s := &Site{layout: layout, byName: map[string]*Page{}}
	generated, err := reference()
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	for _, p := range written {
		if p.Name == "architecture" { // the reference is for more readers
			for _, p := range generated {
				s.Pages = append(s.Pages, &p)
			}
		}
		text, err := stonetown.Documentation.ReadFile(p.File)
		if err != nil {
			return nil, err
		}
		p.source = text
		s.Pages = append(s.Pages, &p)
	}
	templates, err := web.ParseTemplates(files, nil)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	s.search = templates["search.html"]
	engine, err := loadScripts()
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	built := engine.files != nil
	byFile := map[string]*Page{}
	for _, p := range s.Pages {
		s.byName[p.Name] = p
		byFile[p.File] = p
	}
	for _, p := range s.Pages {
		link := func(file string) (string, bool) {
			at := path.Join(path.Dir(p.File), file)
			to, ok := byFile[at]
			if !ok {
				s.unlinked = append(s.unlinked, at)
				return "", false
			}
			return layout.Page(to.Name), true
		}
		if err := p.render(link); err != nil {
			return nil, fmt.Errorf("docs: page %q: %w", p.Name, err)
		}
		if p.Name == playgroundPage && !built {
			continue // it states how to build the playground
		}
		if last := len(s.chapters) - 1; last < 0 || s.chapters[last].Name != p.Chapter {
			s.chapters = append(s.chapters, chapter{Name: p.Chapter})
		}
		last := &s.chapters[len(s.chapters)-1]
		last.Pages = append(last.Pages, p)
	}
	for _, p := range s.Pages { // when the menu is complete
		var b bytes.Buffer
		data := view{Layout: layout, Title: p.Title, Name: p.Name, Menu: s.chapters, Marks: p.Headings, Body: p.body}
		name := "page.html"
		if p.Name == playgroundPage {
			name, p.hasScripts, data.Marks = "playground.html", built, nil
			if data.Playground, err = playgroundOf(p.body, layout); err != nil {
				return nil, fmt.Errorf("docs: page %q: %w", p.Name, err)
			}
		}
		if err := templates[name].Execute(&b, data); err != nil {
			return nil, fmt.Errorf("docs: page %q: %w", p.Name, err)
		}
		p.HTML, p.source, p.body = b.Bytes(), nil, "" // they are not needed any more
	}
	return s, nil
}

// Page returns a page by its name, or nil.
func (s *Site) Page(name string) *Page { return s.byName[name] }
