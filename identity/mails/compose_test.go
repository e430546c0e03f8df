package mails

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"stonetown/identity/branding"
	"stonetown/internal/notify"
	"stonetown/internal/translation"
)

var tenantA = Tenant{ID: "tnt_a", Name: "Example & Sons <b>", BaseURL: "https://example.test"}

// composed composes a built-in mail.
func composed(tag, name string, d Data) (notify.Mail, error) {
	in, _ := languageOf(tag)
	return compose(in, name, d, tenantA, new(branding.Branding), Template{})
}

// Each mail can be composed in each language, and every text has its translations.
func TestMails(t *testing.T) {
	data := Data{
		Email: "ann@example.com", Link: "https://example.test/auth/verify-email?token=abc_-1", Count: 24, Code: "123456",
		Device: "phone", IP: "192.0.2.1", Place: "Berlin, DE", At: "2026-11-21 17:21 UTC", Organization: "Example & Sons <b>", Inviter: "bob@example.com",
		Report: "Example & Sons <b>", Subject: "What happened", Message: "One <b>.\n\n\n Two. ",
	}
	used := append([]string{otherDevice}, links[:]...)
	for _, device := range devices {
		used = append(used, device)
	}
	for name, mail := range all().byName {
		used = slices.Concat(used, mail.Before, mail.After)
		if name != Announcement {
			used = append(used, mail.Subject)
		}
		if name == code {
			continue
		}
		used = append(used, mail.Action)
		for _, in := range translation.Languages() {
			l, err := composed(in.Tag(), name, data)
			if err != nil {
				t.Errorf("%s %s: %v", in.Tag(), name, err)
				continue
			}
			if l.Subject == "" || !strings.Contains(l.Text, data.Link+"\n") || !strings.Contains(l.HTML, `href="`+data.Link+`"`) {
				t.Errorf("%s %s has no link: %+v", in.Tag(), name, l)
			}
			if strings.Contains(l.HTML, "<b>") || strings.ContainsAny(l.Text, "{}") || !strings.Contains(l.HTML, `<html lang="`+in.Tag()+`" dir="`+in.Direction()+`">`) {
				t.Errorf("%s %s: %s", in.Tag(), name, l.HTML)
			}
		}
	}
	slices.Sort(used)
	for _, fault := range all().texts.Faults(slices.Compact(used)) {
		t.Error(fault)
	}
	for _, in := range translation.Languages() { // one text message has 160 letters of GSM, or 70 others
		text, most := composeCode(in, "Example Tenant", Data{Code: "123456"}), 160
		if in.Tag() == "ja" || in.Tag() == "ar" {
			most = 70
		}
		if len(utf16.Encode([]rune(text))) > most || !strings.HasPrefix(text, "123456") {
			t.Errorf("%s: %q", in.Tag(), text)
		}
	}
	if l, err := composed("de", Announcement, data); err != nil || l.Subject != data.Subject || !strings.HasPrefix(l.Text, "One <b>.\n\nTwo.\n\nZu Ihrem Konto:") {
		t.Errorf("%+v, %v", l, err)
	}
	known, unknown := data, data
	unknown.Place = ""
	for _, d := range []Data{known, unknown} {
		l, err := composed("en", "new_sign_in", d)
		if err != nil || strings.Contains(l.Text, "Place: ") != (d.Place != "") {
			t.Errorf("%s, %v", l.Text, err)
		}
	}
}
