package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"stonetown/api/inprocess"
)

const (
	incidentsPage = "/console/incidents"
	incidentsPath = "/api/v1/breach-incidents"

	incidentsWrite = "incidents:write" // the scope
)

// incidentFields are the members of an incident that can be changed.
var incidentFields = []section{{"", []field{
	{Name: "title", Label: "Title", Kind: asText, Required: true, Hint: "At most 200 bytes."},
	{Name: "severity", Label: "Severity", Kind: asChoice, Required: true, Options: []string{"low", "medium", "high", "critical"}},
	{Name: "description", Label: "What happened", Kind: asArea, Hint: "At most 10,000 bytes."},
	{Name: "assignee_id", Label: "Assigned to", Kind: asText, Hint: "The id of a user. Empty: nobody."},
	{Name: "affects_all_users", Label: "All users of the tenant are affected, not only those of the list", Kind: asFlag},
}}}

// resolutionFields and mailFields are the members of the forms that close an incident, and notify its
// users.
var (
	resolutionFields = []section{{"", []field{
		{Name: "resolution", Label: "Resolution", Kind: asArea, Required: true, Hint: "How it ended, in at most 10,000 bytes."},
	}}}
	mailFields = []section{{"", []field{
		{Name: "subject", Label: "Subject", Kind: asText, Required: true, Hint: "At most 200 bytes."},
		{Name: "message", Label: "Message", Kind: asArea, Required: true, Hint: "At most 10,000 bytes. Blank lines separate paragraphs. A link to the account follows."},
	}}}
)

func incidents(v *visit) error {
	state := v.form("state")
	data := object{"Write": v.may(incidentsWrite), "State": state, "States": []string{"open"}}
	a, err := v.read(http.MethodGet, query(incidentsPath, "state", state, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, incidentsPage, "state", state)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("incidents.html", "Incidents", data, faultOf(e, "state", "state"))
	}
	if err != nil {
		return err
	}
	data["Incidents"] = a.Data
	return v.show("incidents.html", "Incidents", data)
}

// incidentPath returns the path of the operations on the incident of a page, and incidentPage that of
// its page.
func (v *visit) incidentPath() string {
	return incidentsPath + "/" + url.PathEscape(v.variable("incident_id"))
}

func (v *visit) incidentPage() string {
	return incidentsPage + "/" + url.PathEscape(v.variable("incident_id"))
}

// incident shows an incident with its users and notifications.
func incident(v *visit) error { return v.incidentWith(nil) }

func (v *visit) incidentWith(wrong *fault) error {
	i, err := v.one(v.incidentPath())
	if err != nil {
		return err
	}
	notifications, err := v.many(v.incidentPath() + "/notifications")
	if err != nil {
		return err
	}
	a, err := v.read(http.MethodGet, query(v.incidentPath()+"/affected-users", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{
		"Incident": i, "Notifications": notifications, "Affected": a.Data, "Typed": v.form("users"),
		"Write": v.may(incidentsWrite) && i["state"] == "open", "Users": v.may("users:read"),
	}
	v.paged(data, a.Meta, v.incidentPage())
	if data["Assignee"], err = v.address(i["assignee_id"]); err != nil {
		return err
	}
	title, _ := i["title"].(string)
	if wrong != nil {
		return v.again("incident.html", title, data, wrong)
	}
	return v.show("incident.html", title, data)
}

// address returns the address of a user; empty: the person may not see it, or it does not exist.
func (v *visit) address(userID any) (string, error) {
	id, _ := userID.(string)
	if id == "" || !v.may("users:read") {
		return "", nil
	}
	a, err := v.call(http.MethodGet, "/api/v1/users/"+url.PathEscape(id), nil)
	if _, none := refused(err); none {
		return "", nil
	}
	u, _ := a.Data.(object)
	email, _ := u["email"].(string)
	return email, err
}

// showForm shows a form that needs the scope for incidents, with the call that it makes.
func (v *visit) showForm(f *form, resource object, title, text string, c call) error {
	if err := v.require(incidentsWrite); err != nil {
		return err
	}
	f.show(resource)
	v.calls = append(v.calls, c)
	return v.show("form.html", title, object{"Form": f, "Text": text})
}

// sendForm sends a form to an operation. If it succeeds, the page that to returns is next.
func (v *visit) sendForm(f *form, title, text, path string, to func(answer object) string) error {
	if err := v.require(incidentsWrite); err != nil {
		return err
	}
	answer, done, err := v.submit(f, title, text, path, nil)
	if !done {
		return err
	}
	v.redirect(to(answer))
	return nil
}

const newIncidentTitle = "New incident"

func newIncident() *form {
	return &form{Sections: incidentFields, Action: incidentsPage + "/new", Button: "Open", Cancel: incidentsPage}
}

func newIncidentForm(v *visit) error {
	return v.showForm(newIncident(), object{}, newIncidentTitle, "", call{http.MethodPost, incidentsPath, object{"title": "Title", "severity": "high"}})
}

func openIncident(v *visit) error {
	return v.sendForm(newIncident(), newIncidentTitle, "", incidentsPath, func(answer object) string {
		id, _ := answer["id"].(string)
		return incidentsPage + "/" + id + "?done=incident-opened"
	})
}

// incidentForm returns the form for the incident of the page.
func (v *visit) incidentForm() (f *form, i object, title string, err error) {
	i, err = v.one(v.incidentPath())
	name, _ := i["title"].(string)
	return &form{Sections: incidentFields, Action: v.incidentPage() + "/edit", Button: "Save", Cancel: v.incidentPage()}, i, "Edit " + name, err
}

func editIncidentForm(v *visit) error {
	f, i, title, err := v.incidentForm()
	if err != nil {
		return err
	}
	return v.showForm(f, i, title, "", call{http.MethodPatch, v.incidentPath(), object{"severity": i["severity"]}})
}

func editIncident(v *visit) error {
	if err := v.require(incidentsWrite); err != nil {
		return err
	}
	f, i, title, err := v.incidentForm()
	if err != nil {
		return err
	}
	return v.change(f, title, v.incidentPath(), i, nil, v.incidentPage())
}

const (
	closeIncidentTitle = "Close this incident?"
	closeIncidentText  = "A closed incident is kept as it is. It cannot be changed or opened again."
)

func (v *visit) closeForm() *form {
	return &form{Sections: resolutionFields, Action: v.incidentPage() + "/close", Button: "Close", Cancel: v.incidentPage()}
}

func closeIncidentForm(v *visit) error {
	return v.showForm(v.closeForm(), object{}, closeIncidentTitle, closeIncidentText, call{http.MethodPost, v.incidentPath() + "/close", object{"resolution": "Resolution"}})
}

func closeIncident(v *visit) error {
	return v.sendForm(v.closeForm(), closeIncidentTitle, closeIncidentText, v.incidentPath()+"/close", func(object) string {
		return v.incidentPage() + "?done=incident-closed"
	})
}

const notifyTitle = "Notify the affected users?"

// notifyForm returns the form, and the sentence about its effect.
func (v *visit) notifyForm() (*form, string, error) {
	a, err := v.call(http.MethodGet, v.incidentPath(), nil)
	i, _ := a.Data.(object)
	to := fmt.Sprintf("the users of the list (%v)", i["affected_users"])
	if i["affects_all_users"] == true {
		to = "all users of the tenant"
	}
	f := &form{Sections: mailFields, Action: v.incidentPage() + "/notify", Button: "Send", Cancel: v.incidentPage()}
	return f, "A mail goes to " + to + ". It cannot be recalled.", err
}

func notifyIncidentForm(v *visit) error {
	f, text, err := v.notifyForm()
	if err != nil {
		return err
	}
	return v.showForm(f, object{}, notifyTitle, text, call{http.MethodPost, v.incidentPath() + "/notifications", object{"subject": "Subject", "message": "Message"}})
}

func notifyIncident(v *visit) error {
	f, text, err := v.notifyForm()
	if err != nil {
		return err
	}
	return v.sendForm(f, notifyTitle, text, v.incidentPath()+"/notifications", func(object) string {
		return v.incidentPage() + "?done=incident-notified"
	})
}

// maxAddresses bounds the addresses of one form, each of which is looked up.
const maxAddresses = 50

// addAffected adds the users of the form, by their ids or addresses.
func addAffected(v *visit) error {
	lines := strings.Fields(v.form("users"))
	if len(lines) == 0 {
		return v.incidentWith(invalid("users", "Enter ids or addresses of users."))
	}
	addresses := 0
	ids := make([]string, len(lines))
	for n, line := range lines {
		if ids[n] = line; !strings.Contains(line, "@") {
			continue
		}
		if addresses++; addresses > maxAddresses {
			return v.incidentWith(invalid("users", fmt.Sprintf("Enter at most %d addresses at once, or ids.", maxAddresses)))
		}
		id, wrong, err := v.userID(line)
		if err != nil {
			return err
		}
		if wrong != nil {
			return v.incidentWith(invalid("users", "No user has the address "+line+". Nobody was added."))
		}
		ids[n] = id
	}
	a, err := v.call(http.MethodPost, v.incidentPath()+"/affected-users", object{"user_ids": ids})
	if e, ok := refused(err); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusConflict) {
		return v.incidentWith(faultOf(e, "user_ids", "users"))
	}
	if err != nil {
		return err
	}
	answer, _ := a.Data.(object)
	if unknown, _ := answer["unknown_user_ids"].([]any); len(unknown) > 0 {
		v.r.Form.Set("users", strings.Join(texts(unknown), "\n"))
		return v.incidentWith(invalid("users", "These are not ids of users; the others were added."))
	}
	v.redirect(v.incidentPage() + "?done=added")
	return nil
}

func removeAffected(v *visit) error {
	if _, err := v.call(http.MethodDelete, v.incidentPath()+"/affected-users/"+url.PathEscape(v.form("user")), nil); err != nil {
		return err
	}
	v.redirect(v.incidentPage() + "?done=removed")
	return nil
}
