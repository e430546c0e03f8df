package console

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// step is a step of the set-up of a tenant.
type step struct {
	Name, About, Page string
	Done              bool
}

// activity is a count of events of the last 7 and 30 days.
type activity struct {
	Name        string
	Week, Month float64
	Page        string // of the events
}

// counted are the events that the overview counts.
var counted = []struct{ name, typ string }{
	{"Sign-ins", "user.signed_in"},
	{"Failed sign-ins", "user.sign_in_failed"},
	{"Denied token exchanges", "token.exchange_denied"},
	{"Deliveries that failed in all attempts", "webhook.delivery_dead_lettered"},
}

// problem is something that an administrator should look at.
type problem struct{ Name, About, Page string }

// certificateNotice is how long before the end of a certificate the overview names it.
const certificateNotice = 30 * 24 * time.Hour

// overview shows what is left to set up, what happened, what fails, and the areas that the person may
// use. Each part is there for those who may read what it is made of.
func overview(v *visit) error {
	data := object{}
	steps, err := v.setup()
	if err != nil {
		return err
	}
	for _, s := range steps {
		if !s.Done {
			data["Setup"] = steps
		}
	}
	if v.may("audit:read") {
		if data["Activity"], data["Truncated"], err = v.activity(); err != nil {
			return err
		}
	}
	problems, checked, err := v.problems()
	if err != nil {
		return err
	}
	data["Problems"], data["Checked"] = problems, checked
	return v.show("overview.html", "Overview", data)
}

// setup returns the steps of the set-up that the person may see.
func (v *visit) setup() (steps []step, err error) {
	for _, one := range []struct {
		scope, path string
		step        step
		done        func(answer any) bool
	}{
		{"applications:read", "/api/v1/applications?limit=50", step{"Create an application", "Users sign in to applications, which get tokens.", applicationsPage, false}, func(answer any) bool {
			return some(answer, func(o object) bool { return o["type"] != "m2m" })
		}},
		{"users:read", "/api/v1/users?limit=2", step{"Add users", "They sign up, or are created, imported or provisioned.", usersPage, false}, func(answer any) bool {
			list, _ := answer.([]any)
			return len(list) > 1
		}},
		{"resources:read", "/api/v1/resource-types?limit=1", step{"Define resource types", "They say which relations give access to what.", modelPage, false}, func(answer any) bool {
			list, _ := answer.([]any)
			return len(list) > 0
		}},
		{"settings:read", "/api/v1/settings", step{"Decide about second factors", "Require them, or ask users to add one.", policiesPage, false}, func(answer any) bool {
			settings, _ := answer.(object)
			mode := member(settings, "mfa_policy/mode")
			return mode != nil && mode != "optional"
		}},
		{"webhooks:read", "/api/v1/webhooks/subscriptions?limit=1", step{"Subscribe to events", "Webhooks tell your systems what happens here.", webhooksPage, false}, func(answer any) bool {
			list, _ := answer.([]any)
			return len(list) > 0
		}},
	} {
		if !v.may(one.scope) {
			continue
		}
		a, err := v.read(http.MethodGet, one.path, nil)
		if err != nil {
			return nil, err
		}
		one.step.Done = one.done(a.Data)
		steps = append(steps, one.step)
	}
	return steps, nil
}

// some reports whether a condition holds for an object of a list.
func some(list any, is func(object) bool) bool {
	items, _ := list.([]any)
	for _, item := range items {
		if o, _ := item.(object); is(o) {
			return true
		}
	}
	return false
}

// activity counts events of the last 7 and 30 days. truncated reports whether there are more of 30 days
// than are counted.
func (v *visit) activity() (all []activity, truncated bool, err error) {
	counts := map[string]map[string]float64{}
	for _, days := range []string{"7", "30"} {
		summary, err := v.one("/api/v1/audit/summary?days=" + days)
		if err != nil {
			return nil, false, err
		}
		truncated = summary["truncated"] == true
		counts[days] = map[string]float64{}
		list, _ := summary["counts"].([]any)
		for _, item := range list {
			c, _ := item.(object)
			typ, _ := c["event_type"].(string)
			counts[days][typ], _ = c["count"].(float64)
		}
	}
	for _, c := range counted {
		all = append(all, activity{c.name, counts["7"][c.typ], counts["30"][c.typ], query(auditPage, "type", c.typ)})
	}
	return all, truncated, nil
}

// problems returns what fails, ends soon or is open. checked reports whether the person may see any of
// what is looked at.
func (v *visit) problems() (found []problem, checked bool, err error) {
	now := time.Now()
	for _, one := range []struct {
		scope, path string
		about       func(o object) (problem, bool)
	}{
		{"audit:read", "/api/v1/breach-incidents?state=open&limit=10", func(o object) (problem, bool) {
			return problem{fmt.Sprint(o["title"]), fmt.Sprintf("Breach incident, %v", o["severity"]), incidentsPage + "/" + segment(o["id"])}, true
		}},
		{"webhooks:read", "/api/v1/webhooks/subscriptions?state=enabled&limit=250", func(o object) (problem, bool) {
			since, failing := o["failing_since"].(string)
			return problem{titleOf("", o), "Webhook deliveries fail since " + day(since), webhooksPage + "/" + segment(o["id"])}, failing
		}},
		{"federation:read", "/api/v1/federation/connections?state=enabled&limit=250", func(o object) (problem, bool) {
			since, failing := o["metadata_failing_since"].(string)
			return problem{titleOf("", o), "The metadata of the connection cannot be read since " + day(since), connectionsPage + "/" + segment(o["id"])}, failing
		}},
		{"settings:read", "/api/v1/settings/saml-certificates", func(o object) (problem, bool) {
			text, _ := o["not_after"].(string)
			ends, err := time.Parse(time.RFC3339, text)
			return problem{"SAML certificate", fmt.Sprintf("The certificate for %v ends on %s", o["use"], day(text)), certificatesPage}, err == nil && o["state"] == "active" && ends.Sub(now) < certificateNotice
		}},
	} {
		if !v.may(one.scope) {
			continue
		}
		list, err := v.many(one.path)
		if err != nil {
			return nil, false, err
		}
		checked = true
		for _, item := range list {
			o, _ := item.(object)
			if p, is := one.about(o); is {
				found = append(found, p)
			}
		}
	}
	return found, checked, nil
}

// segment returns an id as a part of a path.
func segment(id any) string { return url.PathEscape(fmt.Sprint(id)) }

// day returns the day of a time.
func day(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.UTC().Format("2 January 2006")
}
