package branding

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/identity/branding"
)

// patch collects the changes of a merge patch (RFC 7396).
type patch struct {
	web.Validation
	all []func(*branding.Branding)
}

// changes returns what the members of a merge patch change.
func changes(members map[string]jsontext.Value) (func(*branding.Branding), error) {
	var p patch
	p.text("display_name", members["display_name"], func(b *branding.Branding) *string { return &b.DisplayName })
	if string(members["default_language"]) == `""` {
		p.Add("default_language", "unknown_value", "must be one of the languages that are offered, or null")
	}
	p.text("default_language", members["default_language"], func(b *branding.Branding) *string { return &b.DefaultLanguage })
	p.languages(members["languages"])
	p.colors(members["colors"])
	p.links(members["links"])
	p.texts(members["texts"])
	return func(b *branding.Branding) {
		for _, change := range p.all {
			change(b)
		}
	}, p.Err()
}

func (p *patch) change(change func(*branding.Branding)) { p.all = append(p.all, change) }

// string reads a string or null, which is empty. ok is false if there is nothing to change.
func (p *patch) string(field string, value jsontext.Value) (text string, ok bool) {
	switch value.Kind() {
	case 0:
		return "", false
	case 'n':
		return "", true
	}
	if json.Unmarshal(value, &text) != nil {
		p.Add(field, "type_invalid", "must be a string or null")
		return "", false
	}
	return text, true
}

// object reads an object or null. ok is false if there is nothing to change.
func (p *patch) object(field string, value jsontext.Value) (members map[string]jsontext.Value, null, ok bool) {
	switch value.Kind() {
	case 0:
		return nil, false, false
	case 'n':
		return nil, true, true
	}
	if json.Unmarshal(value, &members) != nil {
		p.Add(field, "type_invalid", "must be an object or null")
		return nil, false, false
	}
	return members, false, true
}

func (p *patch) text(field string, value jsontext.Value, of func(*branding.Branding) *string) {
	if text, ok := p.string(field, value); ok {
		p.change(func(b *branding.Branding) { *of(b) = text })
	}
}

func (p *patch) languages(value jsontext.Value) {
	if value.Kind() == 0 {
		return
	}
	var tags []string
	if json.Unmarshal(value, &tags) != nil || tags != nil && len(tags) == 0 {
		p.Add("languages", "type_invalid", "must be a list of at least one of "+strings.Join(branding.Languages(), ", ")+", or null")
		return
	}
	p.change(func(b *branding.Branding) { b.Languages = tags })
}

func (p *patch) colors(value jsontext.Value) {
	schemes, null, ok := p.object("colors", value)
	if ok && null {
		p.change(func(b *branding.Branding) { b.Colors = nil })
	}
	for _, scheme := range branding.Schemes {
		field := "colors/" + string(scheme)
		colors, null, ok := p.object(field, schemes[string(scheme)])
		if ok && null {
			p.change(func(b *branding.Branding) { delete(b.Colors, scheme) })
		}
		for name, of := range map[string]func(*branding.Colors) *branding.Color{
			"accent":     func(c *branding.Colors) *branding.Color { return &c.Accent },
			"background": func(c *branding.Colors) *branding.Color { return &c.Background },
		} {
			if text, ok := p.string(field+"/"+name, colors[name]); ok {
				p.change(func(b *branding.Branding) {
					c := b.Colors[scheme]
					*of(&c) = branding.Color(strings.ToLower(text))
					if b.Colors == nil {
						b.Colors = map[branding.Scheme]branding.Colors{}
					}
					b.Colors[scheme] = c
				})
			}
		}
	}
}

func (p *patch) links(value jsontext.Value) {
	members, null, ok := p.object("links", value)
	if ok && null {
		p.change(func(b *branding.Branding) { b.Links = branding.Links{} })
	}
	for name, of := range map[string]func(*branding.Branding) *string{
		"terms_url":     func(b *branding.Branding) *string { return &b.Links.Terms },
		"privacy_url":   func(b *branding.Branding) *string { return &b.Links.Privacy },
		"imprint_url":   func(b *branding.Branding) *string { return &b.Links.Imprint },
		"support_url":   func(b *branding.Branding) *string { return &b.Links.Support },
		"support_email": func(b *branding.Branding) *string { return &b.Links.SupportEmail },
	} {
		p.text("links/"+name, members[name], of)
	}
}

// texts reads texts by language and name. The branding refuses unknown ones.
func (p *patch) texts(value jsontext.Value) {
	languages, null, ok := p.object("texts", value)
	if ok && null {
		p.change(func(b *branding.Branding) { b.Texts = nil })
	}
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		field := "texts/" + language
		if !slices.Contains(branding.Languages(), language) {
			p.Add("texts", "unknown_value", "must have members with the names "+strings.Join(branding.Languages(), ", "))
			continue
		}
		texts, null, ok := p.object(field, languages[language])
		if ok && null {
			p.change(func(b *branding.Branding) { delete(b.Texts, language) })
		}
		for name, value := range texts {
			if text, ok := p.string(field+"/"+name, value); ok {
				p.change(func(b *branding.Branding) {
					if b.Texts == nil {
						b.Texts = map[string]map[branding.TextName]string{}
					}
					if b.Texts[language] == nil {
						b.Texts[language] = map[branding.TextName]string{}
					}
					b.Texts[language][branding.TextName(name)] = text
				})
			}
		}
	}
}
