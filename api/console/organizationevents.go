package console

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
)

// organizationFilter are the parameters by which events of an organisation are found.
var organizationFilter = []string{"type", "tenant_id", "actor", "since", "until"}

// organizationEvent is an event of an organisation.
type organizationEvent struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	TenantID  string `json:"tenant_id"`
	Actor     *actor `json:"actor"`
	IP        string `json:"ip"`
	RequestID string `json:"request_id"`
	At        string `json:"occurred_at"`
	Data      object `json:"data"`
}

// actor is the user or the application that made a change.
type actor struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Email string `json:"email"`
}

// Name returns the address of a user, or the id of the actor.
func (a actor) Name() string {
	if a.Email != "" {
		return a.Email
	}
	return a.ID
}

// About returns the name of what the event is about, as people know it.
func (e organizationEvent) About() string {
	for _, name := range []string{"slug", "email", "name"} {
		if text, ok := e.Data[name].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// organizationFilter returns the parameters of the list of events, and adds them to the data of a
// page.
func (v *visit) organizationFilter(data object) (pairs []string) {
	for _, name := range organizationFilter {
		text := strings.TrimSpace(v.form(name))
		data[name] = text
		pairs = append(pairs, name, text)
	}
	return pairs
}

func organizationEvents(v *visit) error {
	const title = "Events"
	data, page := object{}, v.organizationPage()+"/events"
	pairs := v.organizationFilter(data)
	data["CSV"], data["Lines"] = query(page+"/events.csv", pairs...), query(page+"/events.jsonl", pairs...)
	a, err := v.read(http.MethodGet, query(v.organizationPath()+"/events", append(pairs, "cursor", v.form("cursor"))...), nil)
	v.paged(data, a.Meta, page, pairs...)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("organization-events.html", title, data, faultOf(e, "type", "type", "tenant_id", "tenant_id", "actor", "actor", "since", "since", "until", "until"))
	}
	if err != nil {
		return err
	}
	var list []organizationEvent
	if err := decode(a.Data, &list); err != nil {
		return err
	}
	data["Events"] = list
	return v.show("organization-events.html", title, data)
}

// exportOrganizationCSV writes the events that a filter selects as a file of comma-separated values.
func exportOrganizationCSV(v *visit) error {
	w := csv.NewWriter(v.w)
	return export(v, v.organizationPath()+"/events", v.organizationFilter(object{}), "text/csv; charset=utf-8", "events.csv", func() error {
		return w.Write([]string{"occurred_at", "type", "id", "tenant_id", "actor_type", "actor_id", "actor_email", "ip", "request_id", "data"})
	}, func(e organizationEvent) error {
		by := actor{}
		if e.Actor != nil {
			by = *e.Actor
		}
		text, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}
		return w.Write(web.CSVCells(e.At, e.Type, e.ID, e.TenantID, by.Type, by.ID, by.Email, e.IP, e.RequestID, string(text)))
	}, func() error {
		w.Flush()
		return w.Error()
	})
}

// exportOrganizationLines writes the events that a filter selects as lines of JSON.
func exportOrganizationLines(v *visit) error {
	w := json.NewEncoder(v.w)
	w.SetEscapeHTML(false)
	return export(v, v.organizationPath()+"/events", v.organizationFilter(object{}), "application/jsonl", "events.jsonl", func() error { return nil }, func(e object) error { return w.Encode(e) }, func() error { return nil })
}
