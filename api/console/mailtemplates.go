package console

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"stonetown/identity/branding"
)

const (
	mailsPage = brandingPage + "/mails"
	mailsPath = "/api/v1/mail-templates"
)

// mailSections are the fields of the text of a mail.
var mailSections = []section{{"", []field{
	{Name: "subject", Label: "Subject", Kind: asText, Hint: "One line of at most 200 bytes."},
	{Name: "heading", Label: "Heading", Kind: asText, Hint: "One line of at most 200 bytes. Empty: the subject."},
	{Name: "body", Label: "Text", Kind: asArea, Hint: "Paragraphs, separated by blank lines, of at most 5,000 bytes. {{link}} is a paragraph of its own: the button."},
	{Name: "button", Label: "Button", Kind: asText, Hint: "One line of at most 80 bytes."},
}}}

// mailTemplates lists the mails.
func mailTemplates(v *visit) error {
	list, err := v.many(query(mailsPath, "limit", "250"))
	if err != nil {
		return err
	}
	return v.show("mail-templates.html", "Mails", object{"Mails": list, "Languages": branding.Languages(), "Page": mailsPage})
}

// mailPath and mailPage return the path of the operations on the mail of a page, and that of the page.
func (v *visit) mailPath() string {
	return mailsPath + "/" + url.PathEscape(v.variable("mail")) + "/" + url.PathEscape(v.variable("language"))
}

func (v *visit) mailPage() string {
	return mailsPage + "/" + url.PathEscape(v.variable("mail")) + "/" + url.PathEscape(v.variable("language"))
}

func (v *visit) mailForm() *form {
	return &form{Sections: mailSections, Action: v.mailPage(), Button: "Save"}
}

// mailTemplate shows the text of a mail in a form.
func mailTemplate(v *visit) error {
	t, err := v.one(v.mailPath())
	if err != nil {
		return err
	}
	f := v.mailForm()
	f.show(withBuiltIn(t))
	return v.showMail(t, f, nil)
}

// withBuiltIn returns a text with that of the product where it has none, and with a version.
func withBuiltIn(t object) object {
	shown := object{}
	builtIn, _ := t["built_in"].(object)
	fields := mailSections[0].Fields
	for _, f := range fields {
		if shown[f.Name] = t[f.Name]; shown[f.Name] == nil && f.Name != "heading" {
			shown[f.Name] = builtIn[f.Name]
		}
	}
	return versioned(shown, fields)
}

func (v *visit) showMail(t object, f *form, wrong *fault) error {
	name, _ := t["mail"].(string)
	tag, _ := t["language"].(string)
	own := false
	for _, f := range mailSections[0].Fields {
		own = own || t[f.Name] != nil
	}
	if v.may(settingsWrite) {
		v.calls = append(v.calls, call{http.MethodPut, v.mailPath(), object{"subject": "{{tenant}}"}})
	}
	v.calls = append(v.calls, call{http.MethodPost, v.mailPath() + "/preview", object{"subject": "{{tenant}}"}})
	page := view{
		Title: displayName(name) + ", in " + languageNames[tag], Frame: true, Notice: notices[v.form("done")],
		Data: object{"Form": f, "Mail": t, "Own": own, "Write": v.may(settingsWrite), "Page": v.mailPage(), "All": mailsPage, "Variables": t["variables"]},
	}
	if wrong == nil {
		return v.render(http.StatusOK, "mail-template.html", page)
	}
	page.Problem, page.Bad, page.Notice = wrong.text, wrong.field, ""
	return v.render(wrong.status, "mail-template.html", page)
}

// typedMail returns the text of the form, and whether it differs from the present one.
func (v *visit) typedMail(f *form, t object) (text object, changed bool, wrong *fault) {
	text = withBuiltIn(t)
	body, wrong := v.body(f, text)
	maps.Copy(text, body)
	maps.DeleteFunc(text, func(name string, value any) bool { return value == nil || name == "updated_at" })
	return text, len(body) > 0, wrong
}

// saveMailTemplate replaces the text of a mail.
func saveMailTemplate(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	t, err := v.one(v.mailPath())
	if err != nil {
		return err
	}
	f := v.mailForm()
	body, changed, wrong := v.typedMail(f, t)
	if wrong == nil && changed {
		builtIn, _ := t["built_in"].(object)
		maps.DeleteFunc(body, func(name string, value any) bool { return value == builtIn[name] })
		method := http.MethodPut
		if len(body) == 0 { // all of it is the built-in text
			method = http.MethodDelete
		}
		_, err = v.call(method, v.mailPath(), bodyOrNone(body))
		wrong = f.refused(err, nil)
	}
	if wrong != nil {
		return v.showMail(t, f, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(v.mailPage() + "?done=saved")
	return nil
}

func bodyOrNone(body object) any {
	if len(body) == 0 {
		return nil
	}
	return body
}

// previewMail shows a mail, with the text of the form or the stored one, in the frame of the page. Its
// style is a part of it, so the policy names the hash of the style.
func previewMail(v *visit) error {
	var body object
	if v.r.Method == http.MethodPost {
		t, err := v.call(http.MethodGet, v.mailPath(), nil)
		if err != nil {
			return err
		}
		read, _ := t.Data.(object)
		body, _, _ = v.typedMail(v.mailForm(), read) // a preview of what another person has changed harms nobody
	}
	a, err := v.call(http.MethodPost, v.mailPath()+"/preview", bodyOrNone(body))
	h := v.w.Header()
	h.Set("X-Frame-Options", "SAMEORIGIN")
	if e, ok := refused(err); ok && e.Status == http.StatusBadRequest {
		h.Set("Content-Security-Policy", previewPolicy)
		h.Set("Content-Type", "text/plain; charset=utf-8")
		v.w.WriteHeader(e.Status)
		_, _ = v.w.Write([]byte(faultOf(e).text)) // an error means that the client has disconnected
		return nil
	}
	if err != nil {
		return err
	}
	mail, _ := a.Data.(object)
	html, _ := mail["html"].(string)
	_, style, _ := strings.Cut(html, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	h.Set("Content-Security-Policy", previewPolicy+"; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = v.w.Write([]byte(html))
	return nil
}

// previewPolicy is the content security policy of the preview of a mail.
const previewPolicy = "default-src 'none'; img-src 'self'; form-action 'none'; frame-ancestors 'self'; base-uri 'none'; sandbox"

// testMail sends the mail to the person.
func testMail(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	err := v.act(v.mailPath()+"/test", nil, v.mailPage(), "mail-sent")
	e, ok := refused(err)
	if !ok || e.Status != http.StatusConflict && e.Status != http.StatusTooManyRequests {
		return err
	}
	t, err := v.one(v.mailPath())
	if err != nil {
		return err
	}
	f := v.mailForm()
	f.show(withBuiltIn(t))
	return v.showMail(t, f, faultOf(e))
}

func resetMailForm(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodDelete, v.mailPath(), nil})
	return v.confirm("Take the built-in text?", object{
		"Text": "The text of your own is deleted.", "Button": "Take the built-in text", "Action": v.mailPage() + "/reset", "Cancel": v.mailPage(), "Fields": object{},
	}, nil)
}

func resetMail(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	if _, err := v.call(http.MethodDelete, v.mailPath(), nil); err != nil {
		return err
	}
	v.redirect(v.mailPage() + "?done=mail-reset")
	return nil
}
