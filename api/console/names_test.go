package console

import (
	"regexp"
	"slices"
	"testing"

	"stonetown/identity/mails"
)

// Every option of a form has a name, except those that standards name.
func TestDisplayName(t *testing.T) {
	machine := regexp.MustCompile(`^[a-z0-9]+([_.][a-z0-9]+)*$`)
	sections := slices.Concat(
		newApplicationFields, applicationFields, newConnectionFields, connectionFields, issuerFields, newIssuerFields, subscriptionFields, incidentFields, newThreatFields,
		stepFields("sign_in", nil), stepFields("sign_up", nil), actionFields, sampleFields, mailSections,
		[]section{{"", []field{{Name: "role", Options: roles}}}},
	)
	for _, p := range slices.Concat(brandingParts, policies) {
		sections = append(sections, section{p.Title, p.Fields})
	}
	for _, k := range reportKinds {
		sections = append(sections, reportForm(k, "", "", "").Sections...)
	}
	checked := 0
	for _, s := range sections {
		for _, f := range s.Fields {
			for _, option := range f.Options {
				checked++
				if name := f.OptionName(option); machine.MatchString(name) && f.Name != "token_endpoint_auth_method" {
					t.Errorf("the option %s of %s has the name %q", option, f.Name, name)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d options were checked", checked)
	}
	for _, mail := range mails.Names() {
		if displayName(mail) == mail {
			t.Errorf("the mail %s has no name", mail)
		}
	}
	for value, want := range map[string]string{"en": "English", "spa": "Single-page application", "social.google": "Google", "access_review": "Access review", "RS256": "RS256"} {
		if got := displayName(value); got != want {
			t.Errorf("%s has the name %q, want %q", value, got, want)
		}
	}
	if got := (field{Own: true}).OptionName("deny"); got != "deny" {
		t.Errorf("an option that the tenant named deny is shown as %q", got)
	}
}
