package authn

import (
	"strings"
	"testing"
)

// Every language has every mail, and each mail can be composed.
func TestMails(t *testing.T) {
	english := translations()[0].mails
	data := mailData{Tenant: "Example & Sons <b>", Email: "ann@example.com", Name: "Ann", Link: "https://example.test/auth/verify-email?token=abc_-1", Hours: 24, Code: "123456", Device: "phone", IP: "192.0.2.1", Place: "Berlin, DE", At: "2026-11-21 17:21 UTC", Organization: "Example & Sons <b>", Inviter: "bob@example.com", Days: 7}
	for _, translation := range translations() {
		for name := range english {
			w, ok := translation.mails[name]
			if !ok {
				t.Errorf("%s has no mail %s", translation.tag, name)
				continue
			}
			if name == "code" {
				if text, err := fill(w.Subject, data); err != nil || len(text) > 160 || !strings.HasPrefix(text, "123456") {
					t.Errorf("%s: %q, %v", translation.tag, text, err)
				}
				continue
			}
			l, err := compose(translation.tag.String(), name, data)
			if err != nil {
				t.Errorf("%s %s: %v", translation.tag, name, err)
				continue
			}
			if l.Subject == "" || !strings.Contains(l.Text, data.Link+"\n") || !strings.Contains(l.HTML, `href="`+data.Link+`"`) {
				t.Errorf("%s %s has no link: %+v", translation.tag, name, l)
			}
			if strings.Contains(l.HTML, "<b>") || strings.Contains(l.Text, "{{") || strings.Contains(l.HTML, "{{") {
				t.Errorf("%s %s: %s", translation.tag, name, l.HTML)
			}
		}
	}
}
