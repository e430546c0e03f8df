package console

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
)

const auditPage = "/console/audit"

// auditFilter are the parameters by which events are found.
var auditFilter = []string{"type", "actor", "about", "since", "until"}

// event is an event of the audit log.
type event struct {
	ID        string `json:"event_id"`
	Type      string `json:"event_type"`
	Sequence  int64  `json:"sequence"`
	At        string `json:"occurred_at"`
	Actor     *party `json:"actor"`
	ClientID  string `json:"client_id"`
	RequestID string `json:"request_id"`
	ClientIP  string `json:"client_ip"`
	Data      object `json:"data"`
}

// party is a user or an application.
type party struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Page returns the path of the page of the event.
func (e event) Page() string { return auditPage + "/" + strconv.FormatInt(e.Sequence, 10) }

// By returns the path of the page with all events of the actor.
func (e event) By() string { return query(auditPage, "actor", e.Actor.ID) }

// Same returns the path of the page with all events of the type.
func (e event) Same() string { return query(auditPage, "type", e.Type) }

// auditFilter returns the parameters of the list of events, and adds them to the data of a page.
func (v *visit) auditFilter(data object) (pairs []string) {
	for _, name := range auditFilter {
		text := strings.TrimSpace(v.form(name))
		data[name] = text
		pairs = append(pairs, name, text)
	}
	return pairs
}

// events lists events of the audit log.
func events(v *visit) error {
	const title = "Audit"
	data := object{}
	pairs := v.auditFilter(data)
	data["CSV"], data["Lines"] = query(auditPage+"/events.csv", pairs...), query(auditPage+"/events.jsonl", pairs...)
	a, err := v.read(http.MethodGet, query("/api/v1/audit/events", append(pairs, "cursor", v.form("cursor"))...), nil)
	v.paged(data, a.Meta, auditPage, pairs...)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("audit.html", title, data, faultOf(e, "type", "type", "actor", "actor", "about", "about", "since", "since", "until", "until"))
	}
	if err != nil {
		return err
	}
	var list []event
	if err := decode(a.Data, &list); err != nil {
		return err
	}
	data["Events"] = list
	return v.show("audit.html", title, data)
}

// oneEvent shows an event and, if it is about a token exchange, the lineage of its tokens.
func oneEvent(v *visit) error {
	a, err := v.read(http.MethodGet, "/api/v1/audit/events/"+url.PathEscape(v.variable("sequence")), nil)
	if err != nil {
		return err
	}
	var e event
	if err := decode(a.Data, &e); err != nil {
		return err
	}
	data := object{"Event": e, "Ids": mentioned(e.Data), "Users": v.may("users:read"), "Name": nil}
	if e.Actor != nil && e.Actor.Type == "user" && v.may("users:read") {
		a, err := v.call(http.MethodGet, "/api/v1/users/"+url.PathEscape(e.Actor.ID), nil)
		if failed, ok := refused(err); err != nil && !(ok && failed.Status == http.StatusNotFound) { // deleted since
			return err
		}
		user, _ := a.Data.(object)
		data["Name"] = user["name"]
	}
	if e.Type == "token.exchanged" || e.Type == "token.exchange_denied" {
		if data["Lineage"], data["Cut"], err = v.lineage(e); err != nil {
			return err
		}
	}
	return v.show("audit-event.html", e.Type, data)
}

// id is something that an event is about.
type id struct{ Text, Page string }

// mentioned returns the ids in the data of an event, which have the form of the product's own, with
// the pages of their other events.
func mentioned(data any) (ids []id) {
	seen := map[string]bool{}
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case object:
			for _, name := range sorted(value) {
				visit(value[name])
			}
		case []any:
			for _, item := range value {
				visit(item)
			}
		case string:
			prefix, rest, ok := strings.Cut(value, "_")
			if ok && len(rest) == 26 && len(prefix) < 8 && !strings.ContainsAny(value, " /:") && !seen[value] && len(ids) < 20 {
				seen[value] = true
				ids = append(ids, id{value, query(auditPage, "about", value)})
			}
		}
	}
	visit(data)
	return ids
}

// maxExport is how many events a file has at most. The page says so.
const maxExport = 10_000

// exportCSV writes the events that a filter selects as a file of comma-separated values.
func exportCSV(v *visit) error {
	w := csv.NewWriter(v.w)
	return export(v, "/api/v1/audit/events", v.auditFilter(object{}), "text/csv; charset=utf-8", "events.csv", func() error {
		return w.Write([]string{"occurred_at", "event_type", "sequence", "event_id", "actor_type", "actor_id", "client_id", "client_ip", "request_id", "data"})
	}, func(e event) error {
		actor := party{}
		if e.Actor != nil {
			actor = *e.Actor
		}
		text, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}
		return w.Write(web.CSVCells(e.At, e.Type, strconv.FormatInt(e.Sequence, 10), e.ID, actor.Type, actor.ID, e.ClientID, e.ClientIP, e.RequestID, string(text)))
	}, func() error {
		w.Flush()
		return w.Error()
	})
}

// exportLines writes the events that a filter selects as lines of JSON.
func exportLines(v *visit) error {
	w := json.NewEncoder(v.w)
	w.SetEscapeHTML(false)
	return export(v, "/api/v1/audit/events", v.auditFilter(object{}), "application/jsonl", "events.jsonl", func() error { return nil }, func(e event) error { return w.Encode(e) }, func() error { return nil })
}

// export writes a file with the events of a list, the newest first. filter has the parameters of the
// list.
func export[E any](v *visit, list string, filter []string, mediaType, name string, begin func() error, write func(E) error, end func() error) error {
	cursor := ""
	for written, started := 0, false; ; {
		a, err := v.call(http.MethodGet, query(list, slices.Concat(filter, []string{"limit", "250", "cursor", cursor})...), nil)
		if err != nil && started {
			panic(http.ErrAbortHandler) // the browser must not take the part for the whole
		}
		if err != nil {
			return err
		}
		var events []E
		if err := decode(a.Data, &events); err != nil {
			return err
		}
		if !started {
			started = true
			v.w.Header().Set("Content-Type", mediaType)
			v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
			if begin() != nil {
				return nil // the client has disconnected
			}
		}
		for _, e := range events {
			if write(e) != nil {
				return nil
			}
			written++
		}
		if cursor = a.Meta.NextCursor; cursor == "" || written >= maxExport {
			_ = end() // an error means that the client has disconnected
			return nil
		}
	}
}
