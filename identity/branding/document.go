package branding

import (
	"context"
	"fmt"
	"maps"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Document is the public representation of a branding, in responses and in events.
type Document struct {
	DisplayName     *string                      `json:"display_name"`
	Logo            LogosDocument                `json:"logo"`
	Colors          ColorsDocument               `json:"colors"`
	Links           LinksDocument                `json:"links"`
	Languages       []string                     `json:"languages"`
	DefaultLanguage string                       `json:"default_language"`
	Texts           map[string]map[string]string `json:"texts"`
}

// LogosDocument has the logos.
type LogosDocument struct {
	Light *LogoDocument `json:"light"`
	Dark  *LogoDocument `json:"dark"`
}

// LogoDocument is the public representation of a logo.
type LogoDocument struct {
	Path   string `json:"path"` // on the host of the tenant
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// ColorsDocument has the colours of both schemes.
type ColorsDocument struct {
	Light SchemeDocument `json:"light"`
	Dark  SchemeDocument `json:"dark"`
}

// SchemeDocument has the colours of a scheme, and what pages do with them.
type SchemeDocument struct {
	Accent     *string            `json:"accent"`
	Background *string            `json:"background"`
	Contrasts  []ContrastDocument `json:"contrasts"`
}

// ContrastDocument is the public representation of a contrast.
type ContrastDocument struct {
	Use        string `json:"use"`
	Foreground string `json:"foreground"`
	Background string `json:"background"`
	Ratio      string `json:"ratio"` // as 7.92:1
	Required   string `json:"required"`
}

// LinksDocument has the links.
type LinksDocument struct {
	Terms        *string `json:"terms_url"`
	Privacy      *string `json:"privacy_url"`
	Imprint      *string `json:"imprint_url"`
	Support      *string `json:"support_url"`
	SupportEmail *string `json:"support_email"`
}

// Document is the public representation of the branding.
func (b Branding) Document() Document {
	l := b.Links
	d := Document{
		DisplayName: document.OrNull(b.DisplayName),
		Logo:        LogosDocument{b.logoDocument(LightLogo), b.logoDocument(DarkLogo)},
		Colors:      ColorsDocument{b.schemeDocument(Light), b.schemeDocument(Dark)},
		Links: LinksDocument{
			document.OrNull(l.Terms), document.OrNull(l.Privacy), document.OrNull(l.Imprint), document.OrNull(l.Support), document.OrNull(l.SupportEmail),
		},
		Languages: append([]string{}, b.Offered()...), DefaultLanguage: b.Language().Tag(), Texts: map[string]map[string]string{},
	}
	for language, texts := range b.Texts {
		d.Texts[language] = map[string]string{}
		for name, value := range texts {
			d.Texts[language][string(name)] = value
		}
	}
	return d
}

// Path returns the path of a picture on the host of the tenant; empty if there is none. It changes with
// the picture, so that it can be cached forever.
func (b Branding) Path(v Variant) string {
	logo, ok := b.Logos[v]
	switch {
	case !ok:
		return ""
	case v == Icon:
		return IconPath + "?v=" + logo.Hash
	}
	return LogoPath + "?variant=" + string(v) + "&v=" + logo.Hash
}

// The paths of the pictures and of the style sheet on the host of a tenant.
const (
	LogoPath  = "/branding/logo"
	IconPath  = "/branding/icon"
	StylePath = "/branding.css"
)

func (b Branding) logoDocument(v Variant) *LogoDocument {
	logo, ok := b.Logos[v]
	if !ok {
		return nil
	}
	return &LogoDocument{b.Path(v), logo.Width, logo.Height}
}

func (b Branding) schemeDocument(scheme Scheme) SchemeDocument {
	own := b.Colors[scheme]
	d := SchemeDocument{Accent: document.OrNull(string(own.Accent)), Background: document.OrNull(string(own.Background))}
	for _, c := range b.Contrasts(scheme) {
		d.Contrasts = append(d.Contrasts, ContrastDocument{c.Use, string(c.Foreground), string(c.Background), fmt.Sprintf("%.2f:1", c.Ratio), fmt.Sprintf("%.1f:1", c.Required)})
	}
	return d
}

// clone returns a copy that can be changed.
func (b Branding) clone() Branding {
	b.Logos, b.Colors = maps.Clone(b.Logos), maps.Clone(b.Colors)
	texts := map[string]map[TextName]string{}
	for language, of := range b.Texts {
		texts[language] = maps.Clone(of)
	}
	b.Texts = texts
	return b
}

func updated(ctx context.Context, before, after Branding) eventlog.Event {
	return eventlog.Of(ctx, eventlog.BrandingUpdated, struct {
		Branding Document         `json:"branding"`
		Changes  document.Changes `json:"changes"`
	}{after.Document(), document.Difference(before.Document(), after.Document())})
}
