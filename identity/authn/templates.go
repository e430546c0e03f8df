package authn

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"slices"
	"strings"
	"sync"
	"text/template"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"

	"stonetown/internal/jobs"
	"stonetown/internal/notify"
)

// mailData are the values that the templates of mails can use.
type mailData struct {
	Tenant string
	Email  string
	Name   string
	Link   string // a path; in the mail a URL
	Hours  int    // the lifetime of the link
	Code   string

	// Of a sign-in.
	Device    string // desktop, phone, tablet or other
	IP, Place string // Place is empty if it is unknown
	At        string

	// Of an invitation.
	Organization, Inviter string
	Days                  int // the lifetime of the link
}

//go:embed mails
var mailFiles embed.FS

// mailTemplate is a mail in one language. Every text is a template over mailData.
type mailTemplate struct {
	Subject string   `yaml:"subject"`
	Before  []string `yaml:"before"` // paragraphs above the link
	Action  string   `yaml:"action"` // the text of the link
	After   []string `yaml:"after"`  // paragraphs below it
}

// translation contains the mails in one language.
type translation struct {
	tag   language.Tag
	mails map[string]mailTemplate
}

// translations are the mails in all languages, English first. Each language is a file in the
// folder mails.
var translations = sync.OnceValue(func() []translation {
	entries, err := mailFiles.ReadDir("mails")
	if err != nil {
		panic(err) // embedded
	}
	var all []translation
	for _, entry := range entries {
		name, isLanguage := strings.CutSuffix(entry.Name(), ".yaml")
		if !isLanguage {
			continue
		}
		text, err := mailFiles.ReadFile("mails/" + entry.Name())
		t := translation{tag: language.MustParse(name)}
		if err == nil {
			err = yaml.Unmarshal(text, &t.mails)
		}
		if err != nil {
			panic(fmt.Errorf("mails/%s: %w", entry.Name(), err))
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b translation) int {
		if a.tag == language.English {
			return -1
		}
		return 0
	})
	return all
})

var (
	plainLayout = template.Must(template.ParseFS(mailFiles, "mails/layout.txt"))
	htmlLayout  = htmltemplate.Must(htmltemplate.ParseFS(mailFiles, "mails/layout.html"))
)

// compose writes a mail in the language that matches a locale best (BCP 47).
func compose(locale, name string, data mailData) (m notify.Mail, err error) {
	all := translations()
	tags := make([]language.Tag, len(all))
	for i, t := range all {
		tags[i] = t.tag
	}
	_, index := language.MatchStrings(language.NewMatcher(tags), locale)
	t, ok := all[index].mails[name]
	if !ok {
		return m, fmt.Errorf("there is no mail %q: %w", name, jobs.ErrDrop)
	}
	content := struct {
		mailData
		Language, Subject, Action string
		Before, After             []string
	}{mailData: data, Language: all[index].tag.String()}
	if content.Subject, err = fill(t.Subject, data); err != nil {
		return m, err
	}
	if content.Action, err = fill(t.Action, data); err != nil {
		return m, err
	}
	for from, to := range map[*[]string]*[]string{&t.Before: &content.Before, &t.After: &content.After} {
		for _, paragraph := range *from {
			text, err := fill(paragraph, data)
			if err != nil {
				return m, err
			}
			*to = append(*to, text)
		}
	}
	var plain, html bytes.Buffer
	if err := errors.Join(plainLayout.Execute(&plain, content), htmlLayout.Execute(&html, content)); err != nil {
		return m, fmt.Errorf("mail %s: %w", name, err)
	}
	return notify.Mail{Subject: content.Subject, Text: plain.String(), HTML: html.String()}, nil
}

func fill(text string, data mailData) (string, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return "", fmt.Errorf("mail: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", fmt.Errorf("mail: %w", err)
	}
	return b.String(), nil
}
