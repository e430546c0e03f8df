package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
)

const (
	flowPage = "/console/sign-in-flow"
	flowPath = "/api/v1/sign-in-flow"

	settingsWrite = "settings:write"
)

// points are the lists of steps, in the order of the page.
var points = []choice{
	{"sign_in", "Sign-in", "Before a session begins, after everything that the settings demand."},
	{"sign_up", "Sign-up", "Before a user creates an account, or gets one by the first sign-in at a connection."},
}

// stepKinds are the kinds of steps of the lists.
var stepKinds = map[string][]string{
	"sign_in": {"deny", "require_factor", "require_verified_email", "action"},
	"sign_up": {"deny", "action"},
}

// flowState is the flow that the pages edit: the draft, or the active version if there is no draft.
type flowState struct {
	active   object
	document object // that is edited
	revision string // of the draft; empty: there is none
}

// flow reads the flow.
func (v *visit) flow() (s flowState, err error) {
	if s.active, err = v.one(flowPath); err != nil {
		return s, err
	}
	draft, err := v.one(flowPath + "/draft")
	if e, ok := refused(err); ok && e.Status == http.StatusNotFound {
		s.document = s.active
		return s, nil
	}
	s.document = draft
	s.revision, _ = draft["revision"].(string)
	return s, err
}

// mark names what the pages show, for the forms on them: the draft, or the active version.
func (s flowState) mark() string {
	if s.revision != "" {
		return s.revision
	}
	return fmt.Sprint("version ", s.active["version"])
}

// list returns the members of a list of the document: the steps of a point, or the actions.
func (s flowState) list(name string) (all []object) {
	items, _ := s.document[name].([]any)
	for _, item := range items {
		o, _ := item.(object)
		all = append(all, o)
	}
	return all
}

// actions returns the names of the actions.
func (s flowState) actions() (names []string) {
	for _, a := range s.list("actions") {
		names = append(names, fmt.Sprint(a["name"]))
	}
	return names
}

// with returns the body of the request that replaces a list of the document.
func (s flowState) with(name string, list []object) object {
	body := object{"expected_revision": s.revision}
	for _, other := range []string{"sign_in", "sign_up", "actions"} {
		body[other] = s.document[other]
	}
	body[name] = list
	return body
}

// shownStep is a step on the page.
type shownStep struct {
	Step            object
	Edit, Path      string
	Change          string // compared with the active version; empty: none
	First, Last     bool
	Position, Total int
}

// shownList is a list of steps on the page.
type shownList struct {
	choice
	Steps   []shownStep
	Removed []string // the steps that only the active version has
	Active  []any
}

// compared returns the lists with what differs from the active version.
func (s flowState) compared() (all []shownList) {
	for _, p := range points {
		list := shownList{choice: p}
		list.Active, _ = s.active[p.Value].([]any)
		steps := s.list(p.Value)
		var names []any
		for i, step := range steps {
			at := fmt.Sprintf("%s/steps/%s/%d", flowPage, p.Value, i+1)
			one := shownStep{Step: step, Edit: at, Path: at, First: i == 0, Last: i == len(steps)-1, Position: i + 1, Total: len(steps)}
			if s.revision != "" {
				one.Change = changeOf(step, i, list.Active)
			}
			names = append(names, step["name"])
			list.Steps = append(list.Steps, one)
		}
		for _, active := range list.Active {
			if name := active.(object)["name"]; !slices.Contains(names, name) {
				list.Removed = append(list.Removed, fmt.Sprint(name))
			}
		}
		all = append(all, list)
	}
	return all
}

// changeOf describes how a step differs from the active version.
func changeOf(step object, position int, active []any) string {
	at := slices.IndexFunc(active, func(a any) bool { return a.(object)["name"] == step["name"] })
	switch {
	case at < 0:
		return "new"
	case !reflect.DeepEqual(active[at], any(step)):
		return "changed"
	case at != position:
		return "moved"
	}
	return ""
}

const flowTitle = "Sign-in flow"

func signInFlow(v *visit) error { return v.flowWith(nil) }

func (v *visit) flowWith(wrong *fault) error {
	s, err := v.flow()
	if err != nil {
		return err
	}
	data := object{
		"Write": v.may(settingsWrite), "Draft": s.revision != "", "Mark": s.mark(), "Active": s.active, "Lists": s.compared(), "Actions": s.document["actions"],
		"ActionsChanged": s.revision != "" && !reflect.DeepEqual(s.document["actions"], s.active["actions"]),
	}
	if wrong != nil {
		return v.again("flow.html", flowTitle, data, wrong)
	}
	return v.show("flow.html", flowTitle, data)
}

// stepFields are the fields of a step of a point.
func stepFields(point string, actions []string) []section {
	return []section{{"", []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "For administrators. At most 80 bytes."},
		{Name: "kind", Label: "Kind", Kind: asChoice, Required: true, Options: stepKinds[point]},
		{Name: "when", Label: "Condition", Kind: asArea, Hint: "In CEL, over email, email_verified, attributes, created_at, connection, amr, second_factor, ip, country, user_agent, new_device, time and user_id. Empty: always."},
		{Name: "message", Label: "Message to the user", Kind: asText, Hint: "Only of the kind Deny. At most 300 bytes."},
		{Name: "action", Label: "Action", Kind: asChoice, Options: actions, Own: true, Hint: "Only of the kind Action."},
	}}}
}

// actionFields are the fields of an action.
var actionFields = []section{{"", []field{
	{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "1 to 63 lower-case letters, digits, hyphens and underscores."},
	{Name: "url", Label: "URL", Kind: asText, Required: true, Hint: "The https URL of your service, which has 2 seconds to answer."},
	{Name: "effects", Label: "Effects that answers may have", Kind: asChoices, Options: []string{"deny", "require_factor", "add_claims"}},
	{Name: "on_error", Label: "If the service fails", Kind: asChoice, Required: true, Options: []string{"deny", "continue"}},
}}}

// item is a member of a list of the flow, in a form.
type item struct {
	state    flowState
	list     string // sign_in, sign_up or actions
	position int    // from 0; the length of the list: a new one
	form     *form
	title    string
}

func (i item) present() object {
	if list := i.state.list(i.list); i.position < len(list) {
		return list[i.position]
	}
	return object{}
}

// item returns the member of the path of a page.
func (v *visit) item() (i item, err error) {
	if err := v.require(settingsWrite); err != nil {
		return i, err
	}
	if i.state, err = v.flow(); err != nil {
		return i, err
	}
	i.list, i.title = cmp.Or(v.variable("list"), "actions"), "action"
	fields := actionFields
	if i.list != "actions" {
		i.title, fields = "step", stepFields(i.list, i.state.actions())
	}
	all := i.state.list(i.list)
	switch at, name := v.variable("position"), v.variable("action_name"); {
	case i.list != "actions" && stepKinds[i.list] == nil:
		return i, notFound()
	case at == "" && name == "":
		i.position, i.title = len(all), "New "+i.title
	default:
		if i.position = slices.IndexFunc(all, func(o object) bool { return o["name"] == name }); at != "" {
			number, err := strconv.Atoi(at)
			if i.position = number - 1; err != nil {
				i.position = -1
			}
		}
		if i.position < 0 || i.position >= len(all) {
			return i, notFound()
		}
		i.title = fmt.Sprint("Edit ", all[i.position]["name"])
	}
	i.form = &form{Sections: fields, Action: v.r.URL.EscapedPath(), Button: "Save", Cancel: flowPage}
	return i, nil
}

func notFound() error {
	return &inprocess.Error{Status: http.StatusNotFound, Code: "not_found", Message: "the flow was changed meanwhile, and has no such entry"}
}

func itemForm(v *visit) error {
	i, err := v.item()
	if err != nil {
		return err
	}
	shown := maps.Clone(i.present())
	shown["updated_at"] = i.state.mark()
	i.form.show(shown)
	v.calls = append(v.calls, call{http.MethodPut, flowPath + "/draft", i.state.with(i.list, i.state.list(i.list))})
	return v.show("form.html", i.title, object{"Form": i.form})
}

func saveItem(v *visit) error {
	i, err := v.item()
	if err != nil {
		return err
	}
	now := maps.Clone(i.present())
	now["updated_at"] = i.state.mark()
	changed, wrong := v.body(i.form, now)
	if wrong == nil {
		next := maps.Clone(i.present())
		for name, value := range changed {
			if next[name] = value; value == nil {
				next[name] = ""
			}
		}
		list := slices.Clone(i.state.list(i.list))
		if i.position < len(list) {
			list[i.position] = next
		} else {
			list = append(list, next)
		}
		if wrong, err = v.saveFlow(i.state.with(i.list, list), fmt.Sprintf("%s/%d/", i.list, i.position)); err != nil {
			return err
		}
	}
	if wrong != nil {
		return v.again("form.html", i.title, object{"Form": i.form}, wrong)
	}
	v.redirect(flowPage + "?done=flow-saved")
	return nil
}

// saveFlow replaces the draft. A fault is about the field of the form whose path begins with prefix.
func (v *visit) saveFlow(body object, prefix string) (*fault, error) {
	_, err := v.call(http.MethodPut, flowPath+"/draft", body)
	e, ok := refused(err)
	if !ok {
		return nil, err
	}
	wrong := faultOf(e)
	faults, _ := e.Details["field_errors"].([]any)
	var parts []string
	for _, one := range faults {
		message, _ := one.(object)["message"].(string)
		parts = append(parts, message)
		path, _ := one.(object)["field"].(string)
		if name, ok := strings.CutPrefix(path, prefix); ok && prefix != "" && wrong.field == "" {
			wrong.field = name
		}
	}
	if parts != nil {
		wrong.text = "Please check: " + strings.Join(parts, "; ") + "."
	}
	return wrong, nil
}

// changeItem changes the list of the item of the path, and shows the flow.
func (v *visit) changeItem(change func(list []object, at int) []object) error {
	i, err := v.item()
	if err != nil {
		return err
	}
	if v.form("mark") != i.state.mark() {
		return v.flowWith(&fault{http.StatusConflict, "The flow was changed meanwhile, and nothing was done. Check it, and try again.", ""})
	}
	wrong, err := v.saveFlow(i.state.with(i.list, change(slices.Clone(i.state.list(i.list)), i.position)), "")
	if err != nil {
		return err
	}
	if wrong != nil {
		return v.flowWith(wrong)
	}
	v.redirect(flowPage + "?done=flow-saved")
	return nil
}

func moveStep(v *visit) error {
	return v.changeItem(func(list []object, at int) []object {
		to := at + 1
		if v.form("to") == "up" {
			to = at - 1
		}
		if to >= 0 && to < len(list) {
			list[at], list[to] = list[to], list[at]
		}
		return list
	})
}

func removeItem(v *visit) error {
	return v.changeItem(func(list []object, at int) []object { return slices.Delete(list, at, at+1) })
}

// newSecretForm and newSecret give an action a signing secret.
func newSecretForm(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.secretPath(), nil})
	return v.show("rotate.html", "New secret for "+v.variable("action_name"), object{
		"Text": "The action gets a new signing secret, which is shown once. Requests are signed with both until the old one expires. A secret from before the old one expires at once.",
		"Old":  oldSecret, "Action": v.r.URL.EscapedPath(), "Cancel": flowPage,
	})
}

func (v *visit) secretPath() string {
	return flowPath + "/actions/" + url.PathEscape(v.variable("action_name")) + "/secret"
}

func newSecret(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	body := object{}
	if seconds, err := strconv.Atoi(v.form("previous")); err == nil {
		body["previous_ttl_s"] = seconds
	}
	a, err := v.once(http.MethodPost, v.secretPath(), body)
	if err != nil {
		return err
	}
	made, _ := a.Data.(object)
	return v.showSecret("New secret", made["signing_secret"], object{"Text": "This is the secret that signs requests.", "Previous": made["previous_expires_at"], "Continue": flowPage})
}

// sampleFields are the fields of a preview.
var sampleFields = []section{{"", []field{
	{Name: "flow", Label: "Flow", Kind: asChoice, Required: true, Options: []string{"draft", "active"}},
	{Name: "point", Label: "Steps", Kind: asChoice, Required: true, Options: []string{"sign_in", "sign_up"}},
	{Name: "user_id", Label: "User", Kind: asText, Hint: "An id. Its values precede those below."},
	{Name: "context/email", Label: "E-mail address", Kind: asText},
	{Name: "context/email_verified", Label: "The address is verified", Kind: asFlag},
	{Name: "context/amr", Label: "Methods", Kind: asLines, Hint: "Such as pwd, otp or fed, one on each line."},
	{Name: "context/second_factor", Label: "Two factors were proved", Kind: asFlag},
	{Name: "context/has_factors", Label: "The user has a second factor", Kind: asFlag},
	{Name: "context/connection", Label: "Connection", Kind: asText, Hint: "The slug. Empty: the user signs in here."},
	{Name: "context/ip", Label: "IP address", Kind: asText},
	{Name: "context/country", Label: "Country", Kind: asText, Hint: "Two letters."},
	{Name: "context/new_device", Label: "The device is new", Kind: asFlag},
	{Name: "context/attributes", Label: "Attributes", Kind: asJSON},
	{Name: "call_actions", Label: "Call the services of actions, with data.test true", Kind: asFlag},
}}}

const previewTitle = "Preview the sign-in flow"

func previewForm() *form {
	return &form{Sections: sampleFields, Action: flowPage + "/preview", Button: "Preview", Cancel: flowPage}
}

func previewFlowForm(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	s, err := v.flow()
	if err != nil {
		return err
	}
	f, which := previewForm(), "active"
	if s.revision != "" {
		which = "draft"
	}
	f.show(object{"flow": which, "point": "sign_in", "context": object{"amr": []any{"pwd"}, "email_verified": true}})
	return v.show("flow-preview.html", previewTitle, object{"Form": f})
}

func previewFlow(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	f := previewForm()
	body, wrong := v.body(f, object{})
	var err error
	data := object{"Form": f}
	if wrong == nil {
		var a inprocess.Answer
		if a, err = v.read(http.MethodPost, flowPath+"/preview", body); err == nil {
			data["Result"] = a.Data
			return v.show("flow-preview.html", previewTitle, data)
		}
		if wrong = f.refused(err, nil); wrong == nil {
			if e, ok := refused(err); ok && e.Status == http.StatusNotFound {
				wrong = invalid("flow", web.Sentence(e.Message))
				if e.Code == "user_not_found" {
					wrong.field = "user_id"
				}
			}
		}
	}
	if wrong != nil {
		return v.again("flow-preview.html", previewTitle, data, wrong)
	}
	return err
}

const publishTitle = "Publish the draft?"

var noteFields = []section{{"", []field{{Name: "note", Label: "Note", Kind: asText, Hint: "What changes, and why. At most 500 bytes."}}}}

func (v *visit) publishForm() *form {
	return &form{Sections: noteFields, Action: flowPage + "/publish", Button: "Publish", Cancel: flowPage}
}

const publishText = "It takes effect at once, also for sign-ins in progress. Sessions that have begun go on."

func publishFlowForm(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	s, err := v.flow()
	if err != nil {
		return err
	}
	f := v.publishForm()
	f.show(object{"updated_at": s.revision})
	v.calls = append(v.calls, call{http.MethodPost, flowPath + "/publish", object{"note": "Note", "expected_revision": s.revision}})
	return v.show("form.html", publishTitle, object{"Form": f, "Text": publishText})
}

func publishFlow(v *visit) error {
	f := v.publishForm()
	f.typed, f.Version = map[string][]string{"note": v.r.PostForm["note"]}, v.form("version")
	return v.publishBy(f, publishTitle, publishText, flowPath+"/publish", object{"note": v.form("note"), "expected_revision": v.form("version")})
}

// publishBy sends a form that publishes a version.
func (v *visit) publishBy(f *form, title, text, path string, body object) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	_, err := v.once(http.MethodPost, path, body)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status < http.StatusInternalServerError && e.Status != http.StatusUnauthorized && e.Status != http.StatusNotFound {
		return v.again("form.html", title, object{"Form": f, "Text": text}, faultOf(e, "note", "note"))
	}
	if err != nil {
		return err
	}
	v.redirect(flowPage + "?done=flow-published")
	return nil
}

func discardFlowForm(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodDelete, flowPath + "/draft", nil})
	return v.show("confirm.html", "Discard the draft?", object{
		"Text": "The active version stays as it is.", "Button": "Discard", "Action": flowPage + "/discard", "Cancel": flowPage, "Fields": object{},
	})
}

func discardFlow(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	if _, err := v.once(http.MethodDelete, flowPath+"/draft", nil); err != nil {
		return err
	}
	v.redirect(flowPage + "?done=flow-discarded")
	return nil
}

func flowVersions(v *visit) error {
	a, err := v.read(http.MethodGet, query(flowPath+"/versions", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Versions": a.Data}
	v.paged(data, a.Meta, flowPage+"/versions")
	return v.show("flow-versions.html", "Versions of the sign-in flow", data)
}

func (v *visit) versionPath() string { return "/versions/" + url.PathEscape(v.variable("version")) }

func flowVersion(v *visit) error {
	version, err := v.one(flowPath + v.versionPath())
	if err != nil {
		return err
	}
	active, err := v.one(flowPath)
	if err != nil {
		return err
	}
	return v.show("flow-version.html", "Version "+v.variable("version"), object{
		"Version": version, "Points": points, "Page": flowPage + v.versionPath(), "Write": v.may(settingsWrite) && active["version"] != version["version"],
	})
}

func (v *visit) rollbackForm() (*form, string, string) {
	return &form{Sections: noteFields, Action: flowPage + v.versionPath() + "/rollback", Button: "Roll back", Cancel: flowPage + v.versionPath()},
		"Roll back to version " + v.variable("version") + "?", "It is published again, as a new version, and takes effect at once. The draft stays as it is."
}

func rollbackFlowForm(v *visit) error {
	if err := v.require(settingsWrite); err != nil {
		return err
	}
	f, title, text := v.rollbackForm()
	f.show(object{})
	v.calls = append(v.calls, call{http.MethodPost, flowPath + v.versionPath() + "/rollback", object{"note": "Note"}})
	return v.show("form.html", title, object{"Form": f, "Text": text})
}

func rollbackFlow(v *visit) error {
	f, title, text := v.rollbackForm()
	f.typed = map[string][]string{"note": v.r.PostForm["note"]}
	return v.publishBy(f, title, text, flowPath+v.versionPath()+"/rollback", object{"note": v.form("note")})
}
