package docs

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"stonetown"
	"stonetown/api/control"
	"stonetown/api/openapi"
)

// links returns the ids and the links of a page.
func links(t *testing.T, page []byte) (ids map[string]bool, all []string) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids = map[string]bool{}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				if ids[a.Val] {
					t.Errorf("two elements have the id %s", a.Val)
				}
				ids[a.Val] = true
			case "href", "src", "action":
				all = append(all, a.Val)
			}
		}
	}
	return ids, all
}

// TestLinks requires that each link leads to a page, to a heading of a page, or to another site,
// and that nothing is loaded from another site.
func TestLinks(t *testing.T) {
	for name, layout := range map[string]Layout{"served": Served, "exported": exported} {
		t.Run(name, func(t *testing.T) {
			site, err := New(layout)
			if err != nil {
				t.Fatal(err)
			}
			ids := map[string]map[string]bool{layout.Style: {}, layout.Icon: {}, layout.Search: {}}
			for _, p := range site.Pages {
				ids[layout.Page(p.Name)], _ = links(t, p.HTML)
			}
			s, err := loadScripts()
			if err != nil {
				t.Fatal(err)
			}
			for name := range s.files {
				ids[layout.Scripts(s.folder)+name] = map[string]bool{}
			}
			within, other := 0, 0
			for _, p := range site.Pages {
				_, all := links(t, p.HTML)
				for _, link := range all {
					if strings.HasPrefix(link, "https://") {
						other++
						continue
					}
					address, fragment, _ := strings.Cut(link, "#")
					if address == "" {
						address = layout.Page(p.Name)
					}
					switch to, ok := ids[address]; {
					case !ok:
						t.Errorf("%s: %s leads nowhere", p.Name, link)
					case fragment != "" && !to[fragment]:
						t.Errorf("%s: %s leads to no heading", p.Name, link)
					}
					within++
				}
			}
			if within < 100 || other == 0 {
				t.Errorf("%d links within the site and %d to others", within, other)
			}
			for _, file := range site.unlinked {
				if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
					t.Errorf("a link names %s: %v", file, err)
				}
			}
			if len(site.unlinked) == 0 {
				t.Error("no link names a file of the repository")
			}
		})
	}
}

// TestPagesAreComplete requires that every page of the repository is part of the site.
func TestPagesAreComplete(t *testing.T) {
	have := map[string]bool{}
	for _, p := range written {
		have[p.File] = true
	}
	err := fs.WalkDir(stonetown.Documentation, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !have[file] {
			t.Errorf("%s is not in the menu", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// What is not Markdown would be lost.
	site, err := New(Served)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range site.Pages {
		if bytes.Contains(p.HTML, []byte("raw HTML omitted")) || bytes.Contains(p.HTML, []byte("<script")) != p.hasScripts || p.hasScripts && p.Name != playgroundPage {
			t.Errorf("%s contains HTML", p.Name)
		}
	}
}

// TestReferenceIsComplete requires that each operation, schema, error and event of the OpenAPI
// documents has its place.
func TestReferenceIsComplete(t *testing.T) {
	site, err := New(Served)
	if err != nil {
		t.Fatal(err)
	}
	for prefix, document := range map[string]openapi.Document{"api": openapi.DataPlane, "control-api": control.Document} {
		ids := map[string]string{} // the name of the page
		for _, p := range site.Pages {
			if strings.HasPrefix(p.Name, prefix) {
				of, _ := links(t, p.HTML)
				for id := range of {
					ids[id] = p.Name
				}
			}
		}
		for _, op := range document.Operations {
			// The generated names begin with a capital letter.
			if page := ids[strings.ToLower(op.ID[:1])+op.ID[1:]]; page != prefix+"-"+op.Tag {
				t.Errorf("the operation %s is on the page %q", op.ID, page)
			}
		}
		d, err := read(document.YAML)
		if err != nil || len(d.Components.Schemas) == 0 {
			t.Fatal(err)
		}
		for _, s := range d.Components.Schemas {
			if ids[s.Name] != prefix+"-schemas" {
				t.Errorf("the schema %s is on the page %q", s.Name, ids[s.Name])
			}
		}
		codes := 0
		for _, list := range regexp.MustCompile(`(?:x-error-codes|"[45]\d\d"): \[([A-Za-z_, ]+)\]`).FindAllSubmatch(document.YAML, -1) {
			for code := range strings.SplitSeq(string(list[1]), ", ") {
				codes++
				if !bytes.Contains(site.Page(prefix+"-errors").HTML, []byte("<code>"+code+"</code>")) {
					t.Errorf("the error %s is missing", code)
				}
			}
		}
		if codes < 20 {
			t.Errorf("%d codes in the document", codes)
		}
	}
	for _, e := range openapi.EventTypes() {
		if !bytes.Contains(site.Page("api-events").HTML, []byte(">"+e.Name+"</h2>")) {
			t.Errorf("the event %s is missing", e.Name)
		}
	}
}

// TestReferenceCommands requires that the commands of the reference can be pasted into a shell, and
// that their bodies are JSON. They are not run, because they name objects that do not exist.
func TestReferenceCommands(t *testing.T) {
	pages, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	commands, bodies := 0, 0
	for _, p := range pages {
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(p.source), -1) {
			commands++
			script.WriteString(block[1])
			if _, body, found := strings.Cut(strings.TrimSpace(block[1]), "-d '"); found {
				bodies++
				if body = strings.ReplaceAll(strings.TrimSuffix(body, "'"), `'\''`, "'"); !json.Valid([]byte(body)) {
					t.Errorf("%s: the body is %s", p.Name, body)
				}
			}
		}
	}
	if want := len(openapi.DataPlane.Operations) + len(control.Document.Operations); commands != want || bodies < 50 {
		t.Errorf("%d commands for %d operations, %d with a body", commands, want, bodies)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-n")
	shell.Stdin = strings.NewReader(script.String())
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSearch(t *testing.T) {
	site, err := New(Served)
	if err != nil {
		t.Fatal(err)
	}
	found := site.find("Dead LETTERS")
	if len(found) == 0 || found[0].Page.Name != "webhooks" || found[0].ID != "dead-letters" {
		t.Fatalf("found %+v", found)
	}
	for _, r := range found {
		var text strings.Builder
		for _, part := range r.Excerpt {
			if part.Marked != (lower(part.Text) == "dead" || lower(part.Text) == "letters") {
				t.Errorf("marked %t: %q", part.Marked, part.Text)
			}
			text.WriteString(part.Text)
		}
		if size := text.Len(); size > maxExcerpt+20 {
			t.Errorf("an excerpt has %d bytes", size)
		}
	}
	for query, want := range map[string]string{
		"":                       "Enter one or more words",
		"zebra":                  "No section contains",
		strings.Repeat("x", 101): "at most 100 bytes",
		"the":                    "The first 40 sections",
		`<script>"`:              "No section contains",
		"é\xff":                  "No section contains",
	} {
		var b bytes.Buffer
		if err := site.writeSearch(&b, query); err != nil || !strings.Contains(b.String(), want) || strings.Contains(b.String(), "<script") {
			t.Errorf("%q: %v\n%s", query, err, b.String())
		}
	}
}

// An excerpt is cut between characters, wherever the word is.
func FuzzExcerpt(f *testing.F) {
	f.Add("a café in the Straße of Ünïcode", "f")
	f.Add(strings.Repeat("é", 300)+"x"+strings.Repeat("é", 300), "x")
	f.Fuzz(func(t *testing.T, text, word string) {
		if word = lower(word); word == "" || len(strings.Fields(word)) != 1 {
			return
		}
		text = strings.ToValidUTF8(text, "?")
		s := newSection(nil, "", "", text)
		var b strings.Builder
		for _, part := range s.excerpt([]string{strings.Fields(word)[0]}) {
			b.WriteString(part.Text)
		}
		got := strings.TrimSuffix(strings.TrimPrefix(b.String(), "… "), " …")
		if !strings.Contains(s.Text, got) || strings.ToValidUTF8(got, "?") != got && strings.ToValidUTF8(word, "?") == word {
			t.Errorf("excerpt %q of %q", got, s.Text)
		}
	})
}
