package authn

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

	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/translation"
)

// mailData are the values that the texts of mails can use.
type mailData struct {
	Tenant string
	Email  string
	Link   string // a path; in the mail a URL
	Count  int    // the lifetime of the link, in hours or, of invitations, in days
	Code   string

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

// announcement is the mail with a text of an administrator, which is not translated.
const announcement = "announcement"

//go:embed mails
var mailFiles embed.FS

// mailText is a mail in English.
type mailText struct {
	Subject string   `yaml:"subject"`
	Before  []string `yaml:"before"` // paragraphs above the link
	Action  string   `yaml:"action"` // the text of the link
	After   []string `yaml:"after"`  // paragraphs below it
}

// mails are all mails and text messages in English by name, with the translations of their texts.
var mails = sync.OnceValue(func() (all struct {
	byName map[string]mailText
	texts  *translation.Texts
},
) {
	source, err := mailFiles.ReadFile("mails/mails.yaml")
	if err == nil {
		err = yaml.Unmarshal(source, &all.byName)
	}
	if err == nil {
		all.texts, err = translation.Read(mailFiles, "mails/texts")
	}
	if err != nil {
		panic(err) // embedded
	}
	return all
})

var (
	plainLayout = template.Must(template.ParseFS(mailFiles, "mails/layout.txt"))
	htmlLayout  = htmltemplate.Must(htmltemplate.ParseFS(mailFiles, "mails/layout.html"))
)

// devices are the names of kinds of devices in English.
var devices = map[string]string{"phone": "Phone", "tablet": "Tablet", "desktop": "Computer"}

const otherDevice = "Other device"

// values returns the values of the texts in a language.
func (d mailData) values(in translation.Language) []any {
	device, ok := devices[d.Device]
	if !ok {
		device = otherDevice
	}
	return []any{
		"tenant", d.Tenant, "email", d.Email, "count", d.Count, "code", d.Code,
		"device", mails().texts.Text(in, device), "place", d.Place, "at", d.At, "ip", d.IP,
		"organization", d.Organization, "inviter", d.Inviter, "report", d.Report,
	}
}

// compose writes a mail in the language that matches a locale best (BCP 47).
func compose(locale, name string, data mailData) (m notify.Mail, err error) {
	all := mails()
	mail, ok := all.byName[name]
	if !ok {
		return m, fmt.Errorf("there is no mail %q: %w", name, jobs.ErrDrop)
	}
	in := translation.Match(locale)
	values := data.values(in)
	content := struct {
		mailData
		Language, Direction, Subject, Action string
		Before, After                        []string
	}{mailData: data, Language: in.Tag(), Direction: in.Direction()}
	content.Subject, content.Action = data.Subject, all.texts.Text(in, mail.Action, values...)
	if mail.Subject != "" {
		content.Subject = all.texts.Text(in, mail.Subject, values...)
	}
	for _, text := range mail.Before {
		if data.Place == "" && strings.Contains(text, "{place}") {
			continue
		}
		content.Before = append(content.Before, all.texts.Text(in, text, values...))
	}
	for paragraph := range strings.SplitSeq(data.Message, "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			content.Before = append(content.Before, paragraph)
		}
	}
	for _, text := range mail.After {
		content.After = append(content.After, all.texts.Text(in, text, values...))
	}
	var plain, html bytes.Buffer
	if err := errors.Join(plainLayout.Execute(&plain, content), htmlLayout.Execute(&html, content)); err != nil {
		return m, fmt.Errorf("mail %s: %w", name, err)
	}
	return notify.Mail{Subject: content.Subject, Text: plain.String(), HTML: html.String()}, nil
}

// composeCode writes the text message with a code in the language that matches a locale best.
func composeCode(locale string, data mailData) string {
	in := translation.Match(locale)
	return mails().texts.Text(in, mails().byName["code"].Subject, data.values(in)...)
}
