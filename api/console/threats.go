package console

import (
	"net/http"
	"net/url"
	"strings"

	"stonetown/api/inprocess"
)

const (
	threatsPage = securityPage + "/threat-feeds"
	threatsPath = "/api/v1/threat-feeds"

	// threatUpload is the path that the list of a feed is sent to.
	threatUpload = threatsPage + "/{feed_id}/upload"
)

// evenSo is the field of an administrator who refuses although the own address is in the list. It is no
// member of a feed.
const evenSo = "even_so"

var (
	threatMode    = field{Name: "mode", Label: "On a match", Kind: asChoice, Required: true, Options: []string{"log", "refuse"}, Hint: "Each match is an event. Record and refuse: the sign-in or sign-up is refused, too. Begin with Record an event, and see in the audit log which users would be refused."}
	threatURL     = field{Name: "url", Label: "URL", Kind: asText, Hint: "https, on the public Internet, with an entry on each line. All who can read the feed see it: it must have no secret. Empty: you upload the entries."}
	threatRefresh = field{Name: "refresh_interval_s", Label: "Fetched every (seconds)", Kind: asNumber, Hint: "Of a URL: 900 to 604,800. Empty: 21,600 (6 hours)."}
	threatName    = field{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "At most 100 bytes."}
	threatEvenSo  = field{Name: evenSo, Label: "Refuse, even though I am in this list", Kind: asFlag}
)

// newThreatFields are the fields of a new feed.
var newThreatFields = []section{{"", []field{
	threatName,
	{Name: "kind", Label: "Entries", Kind: asChoice, Required: true, Options: []string{"address", "mail_domain"}, Hint: "IP addresses and networks are those of clients. Mail domains are those of e-mail addresses, with their subdomains."},
	threatURL, threatRefresh, threatMode,
}}}

// threatFields returns the fields of a feed that can be changed.
func threatFields(feed object) []section {
	fields := []field{threatName}
	if feed["source"] == "url" {
		url := threatURL
		url.Required, url.Hint = true, "https, on the public Internet. The present list stays until the one of another URL was fetched."
		fields = append(fields, url, threatRefresh)
	}
	return []section{{"", append(fields, threatMode, field{Name: "enabled", Label: "Compare sign-ins and sign-ups with it", Kind: asFlag})}}
}

func threats(v *visit) error {
	feeds, err := v.many(threatsPath)
	if err != nil {
		return err
	}
	return v.show("threats.html", "Threat feeds", object{"Feeds": feeds, "Write": v.may("settings:write"), "Page": threatsPage})
}

// threatPath returns the path of the operations on the feed of a page.
func (v *visit) threatPath() string {
	return threatsPath + "/" + url.PathEscape(v.variable("feed_id"))
}

// threatPage returns the path of the page of the feed.
func (v *visit) threatPage() string {
	return threatsPage + "/" + url.PathEscape(v.variable("feed_id"))
}

const newThreatTitle = "New threat feed"

func newThreat() *form {
	return &form{Sections: newThreatFields, Action: threatsPage + "/new", Button: "Create", Cancel: threatsPage}
}

func newThreatForm(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	f := newThreat()
	f.show(object{})
	v.calls = append(v.calls, call{http.MethodPost, threatsPath, object{"name": "Own list", "kind": "address", "source": "upload", "mode": "log"}})
	return v.show("form.html", newThreatTitle, object{"Form": f})
}

func createThreat(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	f := newThreat()
	body, wrong := v.body(f, object{})
	var a inprocess.Answer
	var err error
	if wrong == nil {
		if body["source"] = "url"; body["url"] == nil {
			body["source"] = "upload"
		}
		a, err = v.once(http.MethodPost, threatsPath, body)
		wrong = f.refused(err, nil)
	}
	if wrong != nil {
		return v.again("form.html", newThreatTitle, object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	created, _ := a.Data.(object)
	id, _ := created["id"].(string)
	v.redirect(threatsPage + "/" + url.PathEscape(id) + "?done=threat-created")
	return nil
}

// threat shows a feed, its state, and whether it has a value.
func threat(v *visit) error { return v.threatWith(nil) }

func (v *visit) threatWith(wrong *fault) error {
	feed, err := v.one(v.threatPath())
	if err != nil {
		return err
	}
	own, err := v.ownEntry(feed)
	if err != nil {
		return err
	}
	confirm, err := v.confirmation()
	if err != nil {
		return err
	}
	data := object{
		"Confirm": confirm, "Feed": feed, "Own": own, "Write": v.may("settings:write"), "Page": v.threatPage(), "Upload": strings.Replace(threatUpload, "{feed_id}", url.PathEscape(v.variable("feed_id")), 1),
		"Value": v.form("value"),
	}
	if value := strings.TrimSpace(v.form("value")); value != "" && wrong == nil {
		a, err := v.read(http.MethodGet, query(v.threatPath()+"/lookup", "value", value), nil)
		if e, ok := refused(err); ok && e.Status == http.StatusBadRequest {
			wrong = faultOf(e, "value", "value")
		} else if err != nil {
			return err
		}
		data["Found"] = a.Data
	}
	if feed["source"] == "upload" && v.may("settings:write") {
		v.calls = append(v.calls, call{http.MethodPut, v.threatPath() + "/entries", file{"list.txt", "text/plain"}})
	}
	title, _ := feed["name"].(string)
	if wrong != nil {
		return v.again("threat.html", title, data, wrong)
	}
	return v.show("threat.html", title, data)
}

// ownEntry returns the entry of a feed that matches the person of the page: the address of the browser,
// or the domain of the person's e-mail address. Nil: there is none.
func (v *visit) ownEntry(feed object) (any, error) {
	own := v.info.ClientIP.String()
	if feed["kind"] == "mail_domain" {
		own = v.person
	}
	a, err := v.call(http.MethodGet, query(v.threatPath()+"/lookup", "value", own), nil)
	if e, ok := refused(err); ok && e.Status == http.StatusBadRequest {
		return nil, nil // an address that no list can have
	}
	found, _ := a.Data.(object)
	return found["entry"], err
}

// threatForm returns the form for the feed of the page.
func (v *visit) threatForm() (f *form, feed object, title string, err error) {
	feed, err = v.one(v.threatPath())
	name, _ := feed["name"].(string)
	return &form{Sections: threatFields(feed), Action: v.threatPage() + "/edit", Button: "Save", Cancel: v.threatPage()}, feed, "Edit " + name, err
}

func editThreatForm(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	f, feed, title, err := v.threatForm()
	if err != nil {
		return err
	}
	f.show(feed)
	v.calls = append(v.calls, call{http.MethodPatch, v.threatPath(), object{"mode": feed["mode"]}})
	return v.show("form.html", title, object{"Form": f})
}

// editThreat changes a feed. A person who is in the list has to say so before it refuses.
func editThreat(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	f, feed, title, err := v.threatForm()
	if err != nil {
		return err
	}
	refuses := func(mode, enabled any) bool { return mode == "refuse" && enabled == true }
	if refuses(v.form("mode"), v.form("enabled") != "") && !refuses(feed["mode"], feed["enabled"]) && v.form(evenSo) == "" {
		own, err := v.ownEntry(feed)
		if err != nil {
			return err
		}
		if entry, ok := own.(string); ok {
			if _, wrong := v.body(f, feed); wrong != nil {
				return v.again("form.html", title, object{"Form": f}, wrong)
			}
			f.Sections[0].Fields = append(f.Sections[0].Fields, threatEvenSo)
			return v.again("form.html", title, object{"Form": f}, &fault{http.StatusConflict, "You are in this list yourself, by the entry " + entry + ": you could not sign in any more.", evenSo})
		}
	}
	return v.change(f, title, v.threatPath(), feed, nil, v.threatPage())
}

// uploadThreat replaces the list of a feed by a file.
func uploadThreat(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	once := ""
	part, wrong := v.filePart(func(name, text string) {
		if name == "once" {
			once = text
		}
	})
	if wrong != nil {
		return v.threatWith(wrong)
	}
	_, wrong, err := v.sendFile(once, http.MethodPut, v.threatPath()+"/entries", "text/plain", part)
	if wrong != nil {
		return v.threatWith(wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(v.threatPage() + "?done=threat-uploaded")
	return nil
}

// refreshThreat begins to fetch the list of a feed.
func refreshThreat(v *visit) error {
	_, err := v.once(http.MethodPost, v.threatPath()+"/refresh", nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.threatWith(faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(v.threatPage() + "?done=threat-refreshed")
	return nil
}

func deleteThreatForm(v *visit) error {
	if err := v.require("settings:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.threatPath(), nil)
	if err != nil {
		return err
	}
	feed, _ := a.Data.(object)
	name, _ := feed["name"].(string)
	v.calls = append(v.calls, call{http.MethodDelete, v.threatPath(), nil})
	return v.confirm("Delete "+name+"?", object{
		"Text": "Sign-ins and sign-ups are no longer compared with its list, which is deleted.", "Button": "Delete", "Action": v.threatPage() + "/delete", "Cancel": v.threatPage(), "Fields": object{},
	}, nil)
}

func deleteThreat(v *visit) error {
	if _, err := v.once(http.MethodDelete, v.threatPath(), nil); err != nil {
		return err
	}
	v.redirect(threatsPage + "?done=threat-deleted")
	return nil
}
