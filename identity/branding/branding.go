package branding

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"

	"stonetown/internal/text"
	"stonetown/internal/translation"
)

// Branding is the look of a tenant. Its zero value is the design of the deployment. One that was read
// must not be changed.
type Branding struct {
	DisplayName     string            `json:"display_name"` // empty: the name of the tenant
	Logos           map[Variant]Logo  `json:"logos"`
	Colors          map[Scheme]Colors `json:"colors"`
	Links           Links             `json:"links"`
	Languages       []string          `json:"languages"`        // those that are offered, sorted; empty: all
	DefaultLanguage string            `json:"default_language"` // empty: the first that is offered
	// Texts are texts of the tenant by language and name.
	Texts map[string]map[TextName]string `json:"texts"`
}

// Colors are the colours of a scheme.
type Colors struct {
	Accent     Color `json:"accent"`     // of buttons, links and the focus
	Background Color `json:"background"` // of pages, around the card
}

// Links lead to the tenant's own pages, with https.
type Links struct {
	Terms        string `json:"terms_url"`
	Privacy      string `json:"privacy_url"`
	Imprint      string `json:"imprint_url"`
	Support      string `json:"support_url"`
	SupportEmail string `json:"support_email"`
}

// Logo describes a picture that is stored beside the branding.
type Logo struct {
	Hash   string `json:"hash"` // of the picture
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// Variant is the use of a picture.
type Variant string

// The variants. A dark logo is shown on dark pages, and the light one everywhere else. The icon is made
// of the light logo.
const (
	LightLogo Variant = "light"
	DarkLogo  Variant = "dark"
	Icon      Variant = "icon"
)

// TextName is the name of a text that a tenant can replace.
type TextName string

// The texts. Titles are headings; the others are paragraphs below them, which are absent by default.
const (
	SignInTitle TextName = "sign_in_title"
	SignInText  TextName = "sign_in_text"
	SignUpTitle TextName = "sign_up_title"
	SignUpText  TextName = "sign_up_text"
)

// TextNames are all names.
var TextNames = []TextName{SignInTitle, SignInText, SignUpTitle, SignUpText}

// The maximum lengths of texts, in bytes.
const (
	MaxName  = 100
	MaxTitle = 100
	MaxText  = 300
)

// Fault is an error of a field. The message continues after the field's name.
type Fault struct{ Field, Code, Message string }

// InvalidError is returned for a branding that is not valid.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string { return e.Faults[0].Field + " " + e.Faults[0].Message }

// ErrNoLogo is returned for a logo that a tenant does not have.
var ErrNoLogo = errors.New("the tenant has no such logo")

// Languages returns the tags of the languages that a tenant can offer, English first.
func Languages() []string {
	var tags []string
	for _, l := range translation.Languages() {
		tags = append(tags, l.Tag())
	}
	return tags
}

// Validate returns an [*InvalidError] for a branding that is not valid.
func (b Branding) Validate() error {
	var v faults
	v.line("display_name", b.DisplayName, MaxName)
	colors := true
	for _, scheme := range slices.Sorted(maps.Keys(b.Colors)) {
		for name, c := range map[string]Color{"accent": b.Colors[scheme].Accent, "background": b.Colors[scheme].Background} {
			if c != "" && !colorPattern.MatchString(string(c)) {
				v.add(fmt.Sprintf("colors/%s/%s", scheme, name), "color_invalid", "must be # and six hexadecimal digits, such as #2446c7")
				colors = false
			}
		}
	}
	if colors {
		v = append(v, b.contrastFaults()...)
	}
	for name, link := range map[string]string{
		"links/terms_url": b.Links.Terms, "links/privacy_url": b.Links.Privacy, "links/imprint_url": b.Links.Imprint, "links/support_url": b.Links.Support,
	} {
		if link != "" && !text.IsSecureURL(link) {
			v.add(name, "url_invalid", fmt.Sprintf("must be an https URL of at most %d visible ASCII characters, without user information and fragment", text.MaxURL))
		}
	}
	if address := b.Links.SupportEmail; address != "" && !isAddress(address) {
		v.add("links/support_email", "email_invalid", "must be an e-mail address of at most 254 visible ASCII characters")
	}
	v.languages(b)
	v.texts(b)
	if len(v) == 0 {
		return nil
	}
	slices.SortStableFunc(v, func(a, b Fault) int { return strings.Compare(a.Field, b.Field) })
	return &InvalidError{v}
}

// isAddress reports whether a text is an e-mail address that a link can have as it is.
func isAddress(address string) bool {
	if len(address) > 254 || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"<>?&#%`, r) }) {
		return false
	}
	parsed, err := mail.ParseAddress(address)
	return err == nil && parsed.Address == address
}

type faults []Fault

func (v *faults) add(field, code, message string) { *v = append(*v, Fault{field, code, message}) }

// line requires one line of at most some bytes, possibly empty.
func (v *faults) line(field, value string, most int) {
	switch {
	case !text.IsLine(value):
		v.add(field, "control_character", "must be one line without control characters")
	case len(value) > most:
		v.add(field, "too_long", fmt.Sprintf("must have at most %d bytes", most))
	}
}

func (v *faults) languages(b Branding) {
	known := strings.Join(Languages(), ", ")
	for _, tag := range b.Languages {
		if !slices.Contains(Languages(), tag) {
			v.add("languages", "unknown_value", "must be a list of some of "+known)
			return
		}
	}
	if b.DefaultLanguage != "" && !slices.Contains(b.Offered(), b.DefaultLanguage) {
		v.add("default_language", "unknown_value", "must be one of the languages that are offered: "+strings.Join(b.Offered(), ", "))
	}
}

func (v *faults) texts(b Branding) {
	for tag, texts := range b.Texts {
		if !slices.Contains(Languages(), tag) {
			v.add("texts", "unknown_value", "must have members with the names "+strings.Join(Languages(), ", "))
			continue
		}
		for name, value := range texts {
			field, most := "texts/"+tag+"/"+string(name), MaxText
			if strings.HasSuffix(string(name), "_title") {
				most = MaxTitle
			}
			if !slices.Contains(TextNames, name) {
				v.add("texts/"+tag, "unknown_value", fmt.Sprintf("must have members with the names %q", TextNames))
				continue
			}
			v.line(field, value, most)
		}
	}
}

// Offered returns the tags of the languages that are offered.
func (b Branding) Offered() []string {
	if len(b.Languages) == 0 {
		return Languages()
	}
	return b.Languages
}

// Language returns the language that suits a user best of those that are offered; see
// [translation.Match]. Without a match it is the default one.
func (b Branding) Language(preferences ...string) translation.Language {
	return translation.Choose(b.Languages, b.DefaultLanguage, preferences...)
}

// Text returns a text of the tenant in a language, or otherwise.
func (b Branding) Text(in translation.Language, name TextName, otherwise string) string {
	if own := b.Texts[in.Tag()][name]; own != "" {
		return own
	}
	return otherwise
}

// Name returns the name that users see.
func (b Branding) Name(tenant string) string {
	if b.DisplayName != "" {
		return b.DisplayName
	}
	return tenant
}
