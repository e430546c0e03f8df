package mails

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"strings"
	"sync"
	"text/template"

	"go.yaml.in/yaml/v3"

	"stonetown/identity/branding"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/translation"
)

// Data are the values that the texts of mails can use.
type Data struct {
	Email string
	Name  string // of the user; empty: the address stands for it
	Link  string
	Count int // the lifetime of the link, in hours or, of invitations, in days
	Code  string

	// Of a sign-in.
	Device    string // desktop, phone, tablet or other
	IP, Place string // Place is empty if it is unknown
	At        string

	// Of an invitation.
	Organization, Inviter string

	// Of an announcement, and Message of a report, too. It consists of paragraphs, separated by blank lines.
	Subject, Message string

	Report string // the name
}

// Announcement is the mail with a text of an administrator, which is not translated.
const Announcement = "announcement"

// code is the text message with a code, which is no mail.
const code = "code"

//go:embed mails.yaml layout.html layout.txt texts
var files embed.FS

// builtIn is a mail in English.
type builtIn struct {
	Subject string   `yaml:"subject"`
	Before  []string `yaml:"before"` // paragraphs above the link
	Action  string   `yaml:"action"` // the text of the link
	After   []string `yaml:"after"`  // paragraphs below it
}

// all are all mails and text messages in English by name, with the translations of their texts.
var all = sync.OnceValue(func() (all struct {
	byName map[string]builtIn
	texts  *translation.Texts
},
) {
	source, err := files.ReadFile("mails.yaml")
	if err == nil {
		err = yaml.Unmarshal(source, &all.byName)
	}
	if err == nil {
		all.texts, err = translation.Read(files, "texts")
	}
	if err != nil {
		panic(err) // embedded
	}
	return all
})

var (
	plainLayout = template.Must(template.ParseFS(files, "layout.txt"))
	htmlLayout  = htmltemplate.Must(htmltemplate.ParseFS(files, "layout.html"))
)

// devices are the names of kinds of devices in English.
var devices = map[string]string{"phone": "Phone", "tablet": "Tablet", "desktop": "Computer"}

const otherDevice = "Other device"

// links are the names of the legal links in English.
var links = [...]string{"Terms", "Privacy", "Legal notice", "Help"}

// values returns the values of the texts in a language, as pairs of a name and a value.
func (d Data) values(in translation.Language, tenant string) []any {
	device, ok := devices[d.Device]
	if !ok {
		device = otherDevice
	}
	name := d.Name
	if name == "" {
		name = d.Email
	}
	return []any{
		"tenant", tenant, "email", d.Email, "name", name, "count", d.Count, "code", d.Code,
		"device", all().texts.Text(in, device), "place", d.Place, "at", d.At, "ip", d.IP,
		"organization", d.Organization, "inviter", d.Inviter, "subject", d.Subject, "report", d.Report,
	}
}

// content is what the layouts show.
type content struct {
	Language, Direction string
	Subject, Heading    string
	Before, After       []string // paragraphs above and below the button
	Action, Link        string
	Tenant              string
	Logo                string // a URL; empty: none
	Links               []link
	Accent, AccentInk   htmltemplate.CSS
}

type link struct{ Name, URL string }

// compose writes a mail in a language. own is the template of the tenant, whose empty fields are those of
// the built-in text.
func compose(in translation.Language, name string, d Data, t Tenant, look *branding.Branding, own Template) (m notify.Mail, err error) {
	mail, ok := all().byName[name]
	if !ok || name == code {
		return m, fmt.Errorf("there is no mail %q: %w", name, jobs.ErrDrop)
	}
	c := content{Language: in.Tag(), Direction: in.Direction(), Tenant: look.Name(t.Name), Link: d.Link}
	values := d.values(in, c.Tenant)
	text := func(english string) string { return all().texts.Text(in, english, values...) }
	c.Subject, c.Action = d.Subject, text(mail.Action)
	if mail.Subject != "" {
		c.Subject = text(mail.Subject)
	}
	if own.Subject != "" {
		c.Subject = fill(own.Subject, values)
	}
	c.Heading = c.Subject
	if own.Heading != "" {
		c.Heading = fill(own.Heading, values)
	}
	if own.Button != "" {
		c.Action = fill(own.Button, values)
	}
	if own.Body != "" {
		c.Before, c.After = own.paragraphs(values, d)
	} else {
		for _, paragraph := range mail.Before {
			if d.Place == "" && strings.Contains(paragraph, "{place}") {
				continue
			}
			c.Before = append(c.Before, text(paragraph))
		}
		c.Before = append(c.Before, paragraphs(d.Message)...)
		for _, paragraph := range mail.After {
			c.After = append(c.After, text(paragraph))
		}
	}
	c.Subject, c.Heading = oneLine(c.Subject), oneLine(c.Heading)
	c.look(look, t, text)
	var plain, html bytes.Buffer
	if err := errors.Join(plainLayout.Execute(&plain, c), htmlLayout.Execute(&html, c)); err != nil {
		return m, fmt.Errorf("mail %s: %w", name, err)
	}
	return notify.Mail{FromName: c.Tenant, To: d.Email, Subject: c.Subject, Text: plain.String(), HTML: html.String()}, nil
}

// look sets what a mail has of the branding. The logo is loaded from the host of the tenant.
func (c *content) look(own *branding.Branding, t Tenant, text func(string) string) {
	background, ink := own.Accent()
	c.Accent, c.AccentInk = htmltemplate.CSS(background), htmltemplate.CSS(ink) // validated colours
	if path := own.Path(branding.LightLogo); path != "" {
		c.Logo = t.BaseURL + path
	}
	for i, url := range [...]string{own.Links.Terms, own.Links.Privacy, own.Links.Imprint, own.Links.Support} {
		if url != "" {
			c.Links = append(c.Links, link{text(links[i]), url})
		}
	}
	if own.Links.SupportEmail != "" {
		c.Links = append(c.Links, link{own.Links.SupportEmail, "mailto:" + own.Links.SupportEmail})
	}
}

// paragraphs splits a text at blank lines.
func paragraphs(text string) (list []string) {
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			list = append(list, paragraph)
		}
	}
	return list
}

// oneLine replaces line breaks, which would begin another header field.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// composeCode writes the text message with a code in a language.
func composeCode(in translation.Language, tenant string, d Data) string {
	return all().texts.Text(in, all().byName[code].Subject, d.values(in, tenant)...)
}
