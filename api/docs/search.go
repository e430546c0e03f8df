package docs

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits of a search.
const (
	maxQuery   = 100 // bytes
	maxResults = 40
	maxExcerpt = 220 // bytes
)

// section is a heading with the text below it, up to the next one.
type section struct {
	Page        *Page
	ID, Heading string
	Text        string

	lowerHeading, lowerText string
}

// result is a section in which all words of a query are.
type result struct {
	*section
	Excerpt []part
	rank    int
}

// part is a part of an excerpt.
type part struct {
	Text   string
	Marked bool // a word of the query
}

// newSection returns a section that search finds.
func newSection(p *Page, id, heading, text string) section {
	text = strings.Join(strings.Fields(text), " ")
	return section{p, id, heading, text, lower(heading), lower(text)}
}

// lower replaces capitals of ASCII, which keeps the positions of the text.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// find returns the sections that contain all words of a query, in the heading or in the text: those
// with more of the words in the heading first, and then in the order of the pages.
func (s *Site) find(query string) (found []result) {
	words := strings.Fields(lower(query))
	if len(words) == 0 {
		return nil
	}
	for _, p := range s.Pages {
		for i := range p.sections {
			at := &p.sections[i]
			r := result{section: at}
			all := true
			for _, word := range words {
				if strings.Contains(at.lowerHeading, word) {
					r.rank++
				} else if !strings.Contains(at.lowerText, word) {
					all = false
					break
				}
			}
			if all {
				found = append(found, r)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b result) int { return cmp.Compare(b.rank, a.rank) })
	found = found[:min(len(found), maxResults+1)] // one more than is shown
	for i := range found {
		found[i].Excerpt = found[i].excerpt(words)
	}
	return found
}

// excerpt returns the text around the first of some words, with all of them marked.
func (s *section) excerpt(words []string) (parts []part) {
	first := len(s.Text)
	for _, word := range words {
		if at := strings.Index(s.lowerText, word); at >= 0 {
			first = min(first, at)
		}
	}
	if first == len(s.Text) {
		first = 0 // all words are in the heading
	}
	// It begins and ends between words.
	begin := max(0, first-maxExcerpt/4)
	begin += strings.IndexByte(s.Text[begin:]+" ", ' ') + 1
	if begin > first || first < maxExcerpt/4 {
		begin = 0
	}
	end := min(len(s.Text), begin+maxExcerpt)
	if end < len(s.Text) {
		if space := strings.LastIndexByte(s.Text[begin:end], ' '); space > first-begin {
			end = begin + space
		}
		for end < len(s.Text) && s.Text[end]&0xC0 == 0x80 { // within a character
			end++
		}
	}
	if begin > 0 {
		parts = append(parts, part{Text: "… "})
	}
	for begin < end {
		next, length := end, 0
		for _, word := range words {
			if at := strings.Index(s.lowerText[begin:end], word); at >= 0 && begin+at < next {
				next, length = begin+at, len(word)
			}
		}
		if next > begin {
			parts = append(parts, part{Text: s.Text[begin:next]})
		}
		if length > 0 {
			parts = append(parts, part{s.Text[next : next+length], true})
		}
		begin = next + length
	}
	if end < len(s.Text) {
		parts = append(parts, part{Text: " …"})
	}
	return parts
}

// writeSearch writes the page with the results of a search.
func (s *Site) writeSearch(w io.Writer, query string) error {
	data := view{Layout: s.layout, Title: "Search", Name: "search", Menu: s.chapters, Query: query}
	switch query = strings.TrimSpace(query); {
	case len(query) > maxQuery:
		data.Notice = fmt.Sprintf("A search has at most %d bytes.", maxQuery)
	case query == "":
		data.Notice = "Enter one or more words. A result contains all of them."
	default:
		data.Results = s.find(query)
		switch n := len(data.Results); {
		case n == 0:
			data.Notice = "No section contains all of these words."
		case n == 1:
			data.Notice = "1 section."
		case n > maxResults:
			data.Results = data.Results[:maxResults]
			data.Notice = fmt.Sprintf("The first %d sections. Further words narrow the search.", maxResults)
		default:
			data.Notice = fmt.Sprintf("%d sections.", n)
		}
	}
	return s.search.Execute(w, data)
}
