package branding

import (
	"fmt"
	"math"
	"strings"
)

// The contrast ratios that WCAG 2.2 requires at level AA.
const (
	textRatio  = 4.5 // success criterion 1.4.3: text
	focusRatio = 3   // success criterion 1.4.11: the ring around the element with the focus
)

// Scheme is the colour scheme that a user prefers.
type Scheme string

// The schemes.
const (
	Light Scheme = "light"
	Dark  Scheme = "dark"
)

// Schemes are all schemes.
var Schemes = []Scheme{Light, Dark}

// design has the colours of the style sheet tokens.css of the pages that matter for contrasts. A test
// compares the two.
var design = map[Scheme]struct{ ground, card, ink, soft, accent Color }{
	Light: {"#f3f4f6", "#ffffff", "#16181d", "#596070", "#2446c7"},
	Dark:  {"#0e1015", "#181b22", "#eef0f4", "#a2a9b8", "#8fa8ff"},
}

// Contrast is the contrast of two colours that a page shows together.
type Contrast struct {
	Scheme     Scheme
	Use        string // as text_on_accent
	Foreground Color
	Background Color
	Ratio      float64 // rounded down to hundredths
	Required   float64

	field string // that of the pair which the tenant has chosen
}

// Sufficient reports whether the contrast is as required.
func (c Contrast) Sufficient() bool { return c.Ratio >= c.Required }

// palette has the colours of a scheme, with those of the design in the place of those that are not set.
type palette struct{ accent, accentInk, ground Color }

// palette returns the colours of a scheme. A dark accent that is not set is the nearest to the light
// one that can be read on dark pages.
func (b Branding) palette(scheme Scheme) palette {
	d, own := design[scheme], b.Colors[scheme]
	p := palette{accent: own.Accent, ground: own.Background}
	if p.ground == "" {
		p.ground = d.ground
	}
	if light := b.Colors[Light].Accent; p.accent == "" && scheme == Dark && light != "" {
		p.accent, _ = light.nearest(func(c Color) bool { return readable(c, d.card, p.ground) })
	}
	if p.accent == "" {
		p.accent = d.accent
	}
	p.accentInk = p.accent.ink()
	return p
}

func readable(c Color, on ...Color) bool {
	for _, background := range on {
		if rounded(Ratio(c, background)) < textRatio {
			return false
		}
	}
	return true
}

func rounded(ratio float64) float64 { return math.Floor(ratio*100) / 100 }

// Contrasts returns the contrasts of the colours of a scheme.
func (b Branding) Contrasts(scheme Scheme) []Contrast {
	d, p := design[scheme], b.palette(scheme)
	accent, background := "colors/"+string(scheme)+"/accent", "colors/"+string(scheme)+"/background"
	if b.Colors[scheme].Accent == "" { // the background was chosen for it
		accent = background
	}
	list := []Contrast{
		{Use: "text_on_accent", Foreground: p.accentInk, Background: p.accent, Required: textRatio, field: accent},
		{Use: "accent_on_card", Foreground: p.accent, Background: d.card, Required: textRatio, field: accent},
		{Use: "accent_on_background", Foreground: p.accent, Background: p.ground, Required: textRatio, field: accent},
		{Use: "focus_ring_on_card", Foreground: p.accent, Background: d.card, Required: focusRatio, field: accent},
		{Use: "focus_ring_on_background", Foreground: p.accent, Background: p.ground, Required: focusRatio, field: accent},
		{Use: "text_on_background", Foreground: d.ink, Background: p.ground, Required: textRatio, field: background},
		{Use: "soft_text_on_background", Foreground: d.soft, Background: p.ground, Required: textRatio, field: background},
	}
	for i, c := range list {
		list[i].Scheme, list[i].Ratio = scheme, rounded(Ratio(c.Foreground, c.Background))
	}
	return list
}

// contrastFaults returns an error for each colour that has too little contrast, with the nearest colour
// that has enough.
func (b Branding) contrastFaults() (faults []Fault) {
	for _, scheme := range Schemes {
		own, seen := b.Colors[scheme], map[string]bool{}
		if own == (Colors{}) {
			continue
		}
		for _, c := range b.Contrasts(scheme) {
			if c.Sufficient() || seen[c.field] {
				continue
			}
			seen[c.field] = true
			f := Fault{Field: c.field, Code: "contrast_too_low"}
			f.Message = fmt.Sprintf("has too little contrast: %s on %s has %.2f:1 (%s), and %.1f:1 is required", c.Foreground, c.Background, c.Ratio, strings.ReplaceAll(c.Use, "_", " "), c.Required)
			if suggested, ok := b.suggest(scheme, c.field); ok {
				f.Message += fmt.Sprintf("; the nearest colour with enough contrast is %s", suggested)
			}
			faults = append(faults, f)
		}
	}
	return faults
}

// suggest returns the nearest colour of a field with which the contrasts of the scheme are sufficient.
func (b Branding) suggest(scheme Scheme, field string) (Color, bool) {
	own, isAccent := b.Colors[scheme], field == "colors/"+string(scheme)+"/accent"
	from := own.Background
	if isAccent {
		from = own.Accent
	}
	return from.nearest(func(c Color) bool {
		changed, tried := own, b
		if isAccent {
			changed.Accent = c
		} else {
			changed.Background = c
		}
		tried.Colors = map[Scheme]Colors{Light: b.Colors[Light], Dark: b.Colors[Dark]}
		tried.Colors[scheme] = changed
		for _, c := range tried.Contrasts(scheme) {
			if c.field == field && !c.Sufficient() {
				return false
			}
		}
		return true
	})
}
