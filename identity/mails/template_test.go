package mails

import (
	"errors"
	"strings"
	"testing"

	"stonetown/identity/branding"
	"stonetown/internal/translation"
)

// The built-in texts, written as templates, are valid and compose the same mails.
func TestBuiltIn(t *testing.T) {
	for _, name := range Names() {
		for _, in := range translation.Languages() {
			own, d := BuiltIn(name, in.Tag()), sample(name)
			d.Link = "https://example.test/account"
			if err := own.Validate(name); err != nil {
				t.Errorf("%s %s: %v", name, in.Tag(), err)
			}
			want, err := compose(in, name, d, tenantA, new(branding.Branding), Template{})
			got, err2 := compose(in, name, d, tenantA, new(branding.Branding), own)
			if err := errors.Join(err, err2); err != nil || got.Subject != want.Subject || got.Text != want.Text || got.HTML != want.HTML {
				t.Errorf("%s %s: %v\n%s\nwant\n%s", name, in.Tag(), err, got.Text, want.Text)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for _, refused := range []struct {
		own         Template
		field, code string
	}{
		{Template{}, "subject", "required"},
		{Template{Subject: "two\r\nBcc: eve@example.com"}, "subject", "control_character"},
		{Template{Heading: "a\u2028b"}, "heading", "control_character"},
		{Template{Button: "a\x00b"}, "button", "control_character"},
		{Template{Body: "a\x1b[2J\n\n{{link}}"}, "body", "control_character"},
		{Template{Subject: strings.Repeat("x", 201)}, "subject", "too_long"},
		{Template{Body: strings.Repeat("x", 5000) + "\n\n{{link}}"}, "body", "too_long"},
		{Template{Button: strings.Repeat("x", 81)}, "button", "too_long"},
		{Template{Subject: "{{password}}"}, "subject", "unknown_variable"},
		{Template{Subject: "{{inviter}}"}, "subject", "unknown_variable"}, // of another mail
		{Template{Subject: "{{tenant"}, "subject", "variable_invalid"},
		{Template{Subject: "{{ tenant }}"}, "subject", "variable_invalid"},
		{Template{Subject: "{{{{tenant}}}}"}, "subject", "variable_invalid"},
		{Template{Subject: "{{.Tenant}}"}, "subject", "variable_invalid"},
		{Template{Subject: `{{printf "%s" tenant}}`}, "subject", "variable_invalid"},
		{Template{Subject: "{{}}"}, "subject", "variable_invalid"},
		{Template{Subject: "{{link}}"}, "subject", "variable_misplaced"},
		{Template{Button: "{{link}}"}, "button", "variable_misplaced"},
		{Template{Body: "No link."}, "body", "variable_misplaced"},
		{Template{Body: "Here: {{link}}"}, "body", "variable_misplaced"},
		{Template{Body: "{{link}}\n\n{{link}}"}, "body", "variable_misplaced"},
		{Template{Body: "{{link}}\n\nor {{link}}"}, "body", "variable_misplaced"},
	} {
		var invalid *InvalidError
		if err := refused.own.Validate("verify_email"); !errors.As(err, &invalid) || len(invalid.Faults) != 1 || invalid.Faults[0].Field != refused.field || invalid.Faults[0].Code != refused.code {
			t.Errorf("%+v: %v, want %s of %s", refused.own, err, refused.code, refused.field)
		}
	}
	if err := (Template{Body: "Hello.\n\n{{link}}"}).Validate(Announcement); err == nil {
		t.Error("an announcement without its message is accepted")
	}
	if err := (Template{Body: "Hello }}.\r\n\r\n{{link}}\r\n"}).Validate("verify_email"); err != nil {
		t.Error(err)
	}
}

// A paragraph with a place that is unknown is left out, of the built-in text and of a template.
func TestUnknownPlace(t *testing.T) {
	for _, own := range []Template{{}, {Body: "Hello.\n\nPlace: {{place}}\n\n{{link}}"}} {
		for place, want := range map[string]bool{"": false, "Berlin, DE": true} {
			m, err := compose(translation.Language{}, "new_sign_in", Data{Place: place}, tenantA, new(branding.Branding), own)
			if err != nil || strings.Contains(m.Text, "Place:") != want {
				t.Errorf("at %q: %v\n%s", place, err, m.Text)
			}
		}
	}
}

// Values are text: they are not read for variables, add no element to the mail and no line to its head.
func TestHostileValues(t *testing.T) {
	const hostile = "<script>alert(1)</script>{{link}}{{tenant}}\r\nBcc: eve@example.com"
	own := Template{Subject: "{{inviter}} for {{organization}}", Heading: "<b>{{name}}</b>", Body: "A & {{inviter}}\n\n{{link}}\n\n<i>{{organization}}</i>", Button: "{{organization}} <u>"}
	if err := own.Validate("invitation"); err != nil {
		t.Fatal(err)
	}
	d := Data{Email: "ann@example.com", Name: hostile, Link: "https://example.test/?token=a&b=c", Inviter: hostile, Organization: hostile, Count: 7}
	look := &branding.Branding{
		DisplayName: `"><img src=x onerror=alert(1)>`, Logos: map[branding.Variant]branding.Logo{branding.LightLogo: {Hash: "00"}},
		Colors: map[branding.Scheme]branding.Colors{branding.Light: {Accent: "#0b5d3b"}}, Links: branding.Links{Privacy: "https://example.com/?a=1&b=%22", SupportEmail: "help@example.com"},
	}
	m, err := compose(translation.Language{}, "invitation", d, tenantA, look, own)
	if err != nil {
		t.Fatal(err)
	}
	const line = "<script>alert(1)</script>{{link}}{{tenant}} Bcc: eve@example.com"
	if m.Subject != line+" for "+line || m.FromName != look.DisplayName {
		t.Errorf("%q from %q", m.Subject, m.FromName)
	}
	for _, element := range []string{"<script", "<img src=x", "<b>", "<i>", "<u>"} {
		if strings.Contains(m.HTML, element) {
			t.Errorf("%s in\n%s", element, m.HTML)
		}
	}
	for _, want := range []string{
		`href="https://example.test/?token=a&amp;b=c"`, "background: #0b5d3b; color: #ffffff;", `<img class="logo" src="https://example.test/branding/logo?variant=light&amp;v=00" alt="&#34;&gt;&lt;img src=x onerror=alert(1)&gt;">`,
		`<a href="https://example.com/?a=1&amp;b=%22">Privacy</a>`, `<a href="mailto:help@example.com">help@example.com</a>`,
	} {
		if !strings.Contains(m.HTML, want) {
			t.Errorf("no %s in\n%s", want, m.HTML)
		}
	}
	if strings.Count(m.HTML, d.Link) != 0 || strings.Count(m.Text, d.Link) != 1 || !strings.Contains(m.Text, "Privacy: https://example.com/?a=1&b=%22\n") {
		t.Error(m.Text)
	}
}
