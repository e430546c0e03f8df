package branding

import "fmt"

// Style returns the style sheet of the branding, which overrides custom properties of the design. It
// contains nothing of the tenant but validated colours.
func (b Branding) Style() string {
	rules := func(scheme Scheme) string {
		p, own := b.palette(scheme), b.Colors[scheme]
		text := ""
		if own.Accent != "" || scheme == Dark && b.Colors[Light].Accent != "" {
			text += fmt.Sprintf(" --accent: %s; --accent-ink: %s;", p.accent, p.accentInk)
		}
		if own.Background != "" {
			text += fmt.Sprintf(" --ground: %s;", p.ground)
		}
		return text
	}
	style := ""
	if text := rules(Light); text != "" {
		style += ":root {" + text + " }\n"
		// The rule above would also apply to dark pages.
		if b.Colors[Light].Background != "" && b.Colors[Dark].Background == "" {
			style += "@media (prefers-color-scheme: dark) { :root { --ground: " + string(design[Dark].ground) + "; } }\n"
		}
	}
	if text := rules(Dark); text != "" {
		style += "@media (prefers-color-scheme: dark) { :root {" + text + " } }\n"
	}
	return style
}

// Accent returns the colours of buttons in mails: of the background and of the text.
func (b Branding) Accent() (background, ink Color) {
	p := b.palette(Light)
	return p.accent, p.accentInk
}
