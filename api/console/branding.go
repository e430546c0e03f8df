package console

import (
	"net/http"
	"slices"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/identity/branding"
)

const (
	brandingPage = home + "/branding"
	logoAction   = brandingPage + "/logo"
	brandingPath = "/api/v1/branding"
)

// languageNames are the names of the languages of pages and mails.
var languageNames = map[string]string{"en": "English", "de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese", "ja": "Japanese", "ar": "Arabic"}

// brandingParts are the forms of the branding. The operation checks their fields.
var brandingParts = []policy{
	{"name", "Name", "What users see in the place of the name of the tenant.", "Save name", []field{
		{Name: "display_name", Label: "Name", Kind: asText, Hint: "One line of at most 100 bytes. Empty: the name of the tenant."},
	}},
	{"colours", "Colours", "A colour is # and six hexadecimal digits, such as #2446c7. One with too little contrast is refused, and the error suggests the nearest that has enough. The accent is that of buttons, links and the focus; the background is around the card.", "Save colours", []field{
		{Name: "colors/light/accent", Label: "Accent on light pages", Kind: asText, Hint: "Empty: that of the design."},
		{Name: "colors/light/background", Label: "Background of light pages", Kind: asText, Hint: "Empty: that of the design."},
		{Name: "colors/dark/accent", Label: "Accent on dark pages", Kind: asText, Hint: "Empty: the nearest to the light one that can be read there."},
		{Name: "colors/dark/background", Label: "Background of dark pages", Kind: asText, Hint: "Empty: that of the design."},
	}},
	{"links", "Links", "They are below the hosted pages and in mails. OpenID discovery has the first two. URLs are https.", "Save links", []field{
		{Name: "links/terms_url", Label: "Terms", Kind: asText},
		{Name: "links/privacy_url", Label: "Privacy", Kind: asText},
		{Name: "links/imprint_url", Label: "Legal notice", Kind: asText},
		{Name: "links/support_url", Label: "Help", Kind: asText},
		{Name: "links/support_email", Label: "E-mail address of support", Kind: asText},
	}},
	{"languages", "Languages", "Users get the language of theirs that suits best of those that are offered, and otherwise the default one.", "Save languages", []field{
		{Name: "languages", Label: "Languages that are offered", Kind: asChoices, Options: branding.Languages()},
		{Name: "default_language", Label: "Default language", Kind: asChoice, Options: branding.Languages()},
	}},
	{"texts", "Texts", "Texts of your own, in each language. Titles have at most 100 bytes; the others are lines of at most 300 bytes below them. Empty: the built-in title, and no line.", "Save texts", nil},
}

// sections returns the fields of a part; those of texts by language.
func brandingSections(p policy) (all []section) {
	if p.ID != "texts" {
		return []section{{"", p.Fields}}
	}
	for _, tag := range branding.Languages() {
		all = append(all, section{languageNames[tag], []field{
			{Name: "texts/" + tag + "/sign_in_title", Label: "Title of the sign-in", Kind: asText},
			{Name: "texts/" + tag + "/sign_in_text", Label: "Line below it", Kind: asText},
			{Name: "texts/" + tag + "/sign_up_title", Label: "Title of the sign-up", Kind: asText},
			{Name: "texts/" + tag + "/sign_up_text", Label: "Line below it", Kind: asText},
		}})
	}
	return all
}

// brandingForm returns the form of a part, and the part with all of its fields.
func brandingForm(p policy) (*form, policy) {
	sections := brandingSections(p)
	p.Fields = nil
	for _, s := range sections {
		p.Fields = append(p.Fields, s.Fields...)
	}
	return &form{Sections: sections, Action: brandingPage + "/" + p.ID, Button: p.Button}, p
}

// brandingForms shows the branding.
func brandingForms(v *visit) error {
	b, err := v.one(brandingPath)
	if err != nil {
		return err
	}
	return v.showBranding(b, "", nil, nil)
}

// showBranding shows all parts; that with the id as it was typed, with an error.
func (v *visit) showBranding(b object, id string, typed *form, wrong *fault) error {
	type shown struct {
		policy
		Form *form
	}
	var all []shown
	for _, p := range brandingParts {
		f, whole := brandingForm(p)
		if p.ID == id {
			f = typed
		} else {
			f.show(whole.of(b))
		}
		all = append(all, shown{p, f})
	}
	data := object{"Parts": all, "Branding": b, "Write": v.may(settingsWrite), "LogoAction": logoAction, "Mails": mailsPage, "MaxUpload": branding.MaxUpload >> 10}
	if v.may(settingsWrite) {
		v.calls = append(v.calls, call{http.MethodPatch, brandingPath, object{"display_name": b["display_name"]}}, call{http.MethodPut, brandingPath + "/logo", picture("logo.png")})
	}
	if wrong != nil {
		return v.again("branding.html", "Branding", data, wrong)
	}
	return v.show("branding.html", "Branding", data)
}

// saveBranding changes a part of the branding.
func saveBranding(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	i := slices.IndexFunc(brandingParts, func(p policy) bool { return p.ID == v.variable("part") })
	if i < 0 {
		return &inprocess.Error{Status: http.StatusNotFound, Message: "the branding has no such part"}
	}
	b, err := v.one(brandingPath)
	if err != nil {
		return err
	}
	f, p := brandingForm(brandingParts[i])
	body, wrong := v.body(f, p.of(b))
	if wrong == nil && len(body) > 0 {
		_, err = v.call(http.MethodPatch, brandingPath, body)
		wrong = f.refused(err, nil)
	}
	if wrong != nil {
		return v.showBranding(b, p.ID, f, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(brandingPage + "?done=saved")
	return nil
}

// uploadLogo sets the logo to the file of a form.
func uploadLogo(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	again := func(wrong *fault) error {
		b, err := v.one(brandingPath)
		if err != nil {
			return err
		}
		return v.showBranding(b, "", nil, wrong)
	}
	once, variant := "", ""
	part, wrong := v.filePart(func(name, text string) {
		switch name {
		case "once":
			once = text
		case "variant":
			variant = strings.TrimSpace(text)
		}
	})
	var err error
	if wrong == nil {
		_, wrong, err = v.sendFile(once, http.MethodPut, query(brandingPath+"/logo", "variant", variant), "image/*", part)
	}
	if wrong != nil {
		wrong.field = "file"
		return again(wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(brandingPage + "?done=logo-set")
	return nil
}

// removeLogo removes a variant of the logo.
func removeLogo(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	if _, err := v.call(http.MethodDelete, query(brandingPath+"/logo", "variant", v.form("variant")), nil); err != nil {
		return err
	}
	v.redirect(brandingPage + "?done=logo-removed")
	return nil
}
