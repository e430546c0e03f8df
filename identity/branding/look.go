package branding

// Look is what the frame of a page has of a branding. Paths are empty where there is nothing.
type Look struct {
	Name     string
	Style    string // the path of the style sheet
	Icon     string
	Logo     string // the light one
	DarkLogo string
	Links    Links
}

// Look returns the look of a tenant with a name and a mark.
func (b Branding) Look(tenant, mark string) Look {
	l := Look{Name: b.Name(tenant), Icon: b.Path(Icon), Logo: b.Path(LightLogo), DarkLogo: b.Path(DarkLogo), Links: b.Links}
	if b.Style() != "" {
		l.Style = StylePath + "?v=" + mark
	}
	if l.Logo == "" { // a dark logo alone is shown on all pages
		l.Logo, l.DarkLogo = l.DarkLogo, ""
	}
	return l
}

// HasLinks reports whether there are links.
func (l Look) HasLinks() bool { return l.Links != (Links{}) }
