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
	reportsPage = "/console/reports"
	reportsPath = "/api/v1/reports"

	reportsWrite = "settings:write" // the scope
)

// reportKind is a kind of report, with what a new one of it begins with.
type reportKind struct {
	Kind, Name, About string
	fields            []field
}

// reportKinds are all kinds of reports.
var reportKinds = []reportKind{
	{"sign_ins_by_method", "Sign-ins by method", "How users signed in on each day, how often it failed, and how many users they were.", []field{
		{Name: "parameters/days", Label: "Days", Kind: asNumber, Hint: "Up to today, 1 to 90. Empty: 30."},
	}},
	{"mfa_coverage", "MFA coverage", "Users without a second factor, and how many each group has.", []field{
		{Name: "parameters/include_covered", Label: "List users with a second factor, too", Kind: asFlag},
	}},
	{"unused_applications", "Unused applications", "Applications that got no token for some time.", []field{
		{Name: "parameters/days", Label: "Days without a token", Kind: asNumber, Hint: "1 to 3650. Empty: 90."},
	}},
	{"access_review", "Access review", "Who may do something to resources, by which direct relation, granted by whom and when.", []field{
		{Name: "parameters/resource_type", Label: "Type of the resources", Kind: asText, Required: true},
		{Name: "parameters/action", Label: "Action or relation", Kind: asText, Required: true, Hint: "Such as view or owner."},
		{Name: "parameters/subject_type", Label: "Type of the subjects", Kind: asText, Hint: "Empty: user."},
		{Name: "parameters/resource_ids", Label: "Ids of the resources", Kind: asLines, Hint: "One on each line, at most 1,000. Empty: all of the type, at most 1,000."},
	}},
}

func reportKindOf(kind any) reportKind {
	for _, p := range reportKinds {
		if p.Kind == kind {
			return p
		}
	}
	return reportKind{Name: fmt.Sprint(kind)}
}

// reportForm returns the form for a report of a kind.
func reportForm(p reportKind, action, button, cancel string) *form {
	return &form{Action: action, Button: button, Cancel: cancel, Sections: []section{
		{"", append([]field{{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "At most 200 bytes."}}, p.fields...)},
		{"Schedule", []field{
			{Name: "schedule/interval", Label: "Run", Kind: asChoice, Options: []string{"daily", "weekly", "monthly"}, Hint: "Default: on request only. A week begins on Monday, a month on its first day."},
			{Name: "schedule/hour", Label: "Hour", Kind: asNumber, Hint: "In UTC, 0 to 23."},
			{Name: "schedule/recipients", Label: "Recipients", Kind: asLines, Hint: "Ids or addresses of users, one on each line, at most 20. They get a mail with figures and a link. Those who may not read the report get none."},
		}},
	}}
}

func reports(v *visit) error {
	a, err := v.read(http.MethodGet, query(reportsPath, "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	list, _ := a.Data.([]any)
	for _, item := range list {
		r, _ := item.(object)
		r["About"] = reportKindOf(r["kind"]).Name
	}
	data := object{"Reports": list, "Presets": reportKinds, "Write": v.may(reportsWrite)}
	v.paged(data, a.Meta, reportsPage)
	return v.show("reports.html", "Reports", data)
}

// reportPath returns the path of the operations on the report of a page, and reportPage that of its
// page.
func (v *visit) reportPath() string {
	return reportsPath + "/" + url.PathEscape(v.variable("report_id"))
}

func (v *visit) reportPage() string {
	return reportsPage + "/" + url.PathEscape(v.variable("report_id"))
}

// report shows a report with its runs.
func report(v *visit) error { return v.reportWith(nil) }

func (v *visit) reportWith(wrong *fault) error {
	r, err := v.one(v.reportPath())
	if err != nil {
		return err
	}
	data := object{"Report": r, "About": reportKindOf(r["kind"]), "Page": v.reportPage(), "Write": v.may(reportsWrite), "Denied": ""}
	a, err := v.read(http.MethodGet, query(v.reportPath()+"/runs", "cursor", v.form("cursor")), nil)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Code == "insufficient_scope" {
		data["Denied"] = faultOf(e).text
	} else if err != nil {
		return err
	}
	data["Runs"] = a.Data
	v.paged(data, a.Meta, v.reportPage())
	if wrong != nil {
		return v.again("report.html", titleOf("", r), data, wrong)
	}
	return v.show("report.html", titleOf("", r), data)
}

// runReport runs a report, and leads to the page that follows the run.
func runReport(v *visit) error {
	a, err := v.call(http.MethodPost, v.reportPath()+"/runs", nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.reportWith(faultOf(e))
	}
	if err != nil {
		return err
	}
	run, _ := a.Data.(object)
	id, _ := run["id"].(string)
	v.redirect(v.reportPage() + "/runs/" + url.PathEscape(id))
	return nil
}

// newReport returns the form for a report of the kind of the page.
func (v *visit) newReport() (*form, reportKind) {
	p := reportKindOf(v.form("kind"))
	return reportForm(p, query(reportsPage+"/new", "kind", p.Kind), "Save", reportsPage), p
}

func newReportForm(v *visit) error {
	if err := v.require(reportsWrite); err != nil {
		return err
	}
	f, p := v.newReport()
	if p.Kind == "" {
		v.redirect(reportsPage)
		return nil
	}
	f.show(object{"name": p.Name})
	example := object{"name": p.Name, "kind": p.Kind}
	if p.Kind == "access_review" {
		example["parameters"] = object{"resource_type": "document", "action": "view"}
	}
	v.calls = append(v.calls, call{http.MethodPost, reportsPath, example})
	return v.show("form.html", "New report: "+p.Name, object{"Form": f, "Text": p.About})
}

func createReport(v *visit) error {
	if err := v.require(reportsWrite); err != nil {
		return err
	}
	f, p := v.newReport()
	body, wrong, err := v.reportBody(f, object{})
	if err != nil {
		return err
	}
	if wrong == nil {
		body["kind"] = p.Kind
		a, err := v.once(http.MethodPost, reportsPath, body)
		if wrong = f.refused(err, nil); wrong == nil {
			if err != nil {
				return err
			}
			r, _ := a.Data.(object)
			id, _ := r["id"].(string)
			v.redirect(reportsPage + "/" + url.PathEscape(id) + "?done=report-saved")
			return nil
		}
	}
	return v.again("form.html", "New report: "+p.Name, object{"Form": f, "Text": p.About}, wrong)
}

// reportBody reads the form of a report. Parameters and schedule are sent as a whole.
func (v *visit) reportBody(f *form, now object) (body object, wrong *fault, err error) {
	body, wrong = v.body(f, object{"updated_at": now["updated_at"]})
	if wrong != nil {
		return nil, wrong, nil
	}
	if body["parameters"] == nil {
		body["parameters"] = object{}
	}
	schedule, _ := body["schedule"].(object)
	if schedule["interval"] == nil {
		if schedule != nil && now["schedule"] == nil { // nothing would come of what was typed
			return nil, invalid("schedule/interval", "Choose how often the report runs, or leave hour and recipients empty."), nil
		}
		body["schedule"] = nil
		return body, nil, nil
	}
	recipients, _ := schedule["recipients"].([]any)
	addresses := 0
	for i, item := range recipients {
		text := fmt.Sprint(item)
		if !strings.Contains(text, "@") {
			continue
		}
		if addresses++; addresses > maxAddresses {
			return nil, invalid("schedule/recipients", fmt.Sprintf("Enter at most %d addresses.", maxAddresses)), nil
		}
		id, unknown, err := v.userID(text)
		if err != nil {
			return nil, nil, err
		}
		if unknown != nil {
			return nil, invalid("schedule/recipients", "No user has the address "+text+"."), nil
		}
		recipients[i] = id
	}
	return body, nil, nil
}

// editedReport returns the form for the report of the page.
func (v *visit) editedReport() (f *form, r object, title string, err error) {
	if err := v.require(reportsWrite); err != nil {
		return nil, nil, "", err
	}
	r, err = v.one(v.reportPath())
	return reportForm(reportKindOf(r["kind"]), v.reportPage()+"/edit", "Save", v.reportPage()), r, "Edit " + titleOf("", r), err
}

func editReportForm(v *visit) error {
	f, r, title, err := v.editedReport()
	if err != nil {
		return err
	}
	f.show(r)
	v.calls = append(v.calls, call{http.MethodPatch, v.reportPath(), object{"name": r["name"]}})
	return v.show("form.html", title, object{"Form": f})
}

func editReport(v *visit) error {
	f, r, title, err := v.editedReport()
	if err != nil {
		return err
	}
	body, wrong, err := v.reportBody(f, r)
	if err != nil {
		return err
	}
	if wrong == nil {
		_, err = v.call(http.MethodPatch, v.reportPath(), body)
		wrong = f.refused(err, nil)
	}
	if wrong != nil {
		return v.again("form.html", title, object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(v.reportPage() + "?done=saved")
	return nil
}

func deleteReportForm(v *visit) error {
	if err := v.require(reportsWrite); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.reportPath(), nil)
	if err != nil {
		return err
	}
	r, _ := a.Data.(object)
	v.calls = append(v.calls, call{http.MethodDelete, v.reportPath(), nil})
	return v.confirm(titleOf("Delete ", r)+"?", object{
		"Text": "The results of its runs are deleted, too.", "Button": "Delete", "Action": v.reportPage() + "/delete", "Cancel": v.reportPage(), "Fields": object{},
	}, nil)
}

func deleteReport(v *visit) error {
	if err := v.require(reportsWrite); err != nil {
		return err
	}
	if _, err := v.call(http.MethodDelete, v.reportPath(), nil); err != nil {
		return err
	}
	v.redirect(reportsPage + "?done=report-deleted")
	return nil
}

// bar is a bar of a chart.
type bar struct {
	Label string
	Value float64
	Width int // of 200
}

// reportRun shows the progress of a run, its figures and its rows.
func reportRun(v *visit) error {
	path := v.reportPath() + "/runs/" + url.PathEscape(v.variable("run_id"))
	page := v.reportPage() + "/runs/" + url.PathEscape(v.variable("run_id"))
	run, err := v.one(path)
	if err != nil {
		return err
	}
	v.follow = underway(run)
	name, _ := run["name"].(string)
	data := object{"Run": run, "Page": page, "Report": v.reportPage(), "Underway": underway(run), "Users": v.may("users:read"), "About": reportKindOf(run["kind"]).Name, "First": "", "Next": ""}
	var columns []string
	list, _ := run["columns"].([]any)
	names := texts(list)
	for _, name := range names {
		columns = append(columns, titled(name))
	}
	figures, _ := run["figures"].([]any)
	data["Columns"], data["Totals"], data["Bars"], data["Parts"] = columns, totals(figures), bars(figures), parts(figures)
	if run["state"] == "completed" {
		a, err := v.read(http.MethodGet, query(path+"/rows", "cursor", v.form("cursor")), nil)
		if err != nil {
			return err
		}
		data["Rows"] = cellsOf(names, a.Data)
		v.paged(data, a.Meta, page)
	}
	return v.show("report-run.html", name, data)
}

// cellsOf returns rows as texts, in the order of columns. Null is empty.
func cellsOf(names []string, rows any) (all [][]string) {
	list, _ := rows.([]any)
	for _, item := range list {
		row, _ := item.(object)
		cells := make([]string, len(names))
		for i, name := range names {
			if row[name] != nil {
				cells[i] = fmt.Sprint(row[name])
			}
		}
		all = append(all, cells)
	}
	return all
}

// titled returns the name of a column or a figure as text for people.
func titled(name string) string {
	text := strings.ReplaceAll(strings.ReplaceAll(name, "sign_ins", "sign-ins"), "_", " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// totals returns the figures of all, bars those of each method of sign-ins, and parts the others.
func totals(figures []any) (all []bar) {
	for _, item := range figures {
		f, _ := item.(object)
		if name, _ := f["name"].(string); f["label"] == nil {
			value, _ := f["value"].(float64)
			all = append(all, bar{Label: titled(name), Value: value})
		}
	}
	return all
}

func bars(figures []any) (all []bar) {
	most := 1.0
	for _, item := range figures {
		f, _ := item.(object)
		label, _ := f["label"].(string)
		value, _ := f["value"].(float64)
		if f["name"] == "sign_ins" && label != "" {
			all = append(all, bar{Label: label, Value: value})
			most = max(most, value)
		}
	}
	for i := range all {
		all[i].Width = max(1, int(all[i].Value/most*200))
	}
	return all
}

func parts(figures []any) (all []bar) {
	for _, item := range figures {
		f, _ := item.(object)
		name, _ := f["name"].(string)
		label, _ := f["label"].(string)
		value, _ := f["value"].(float64)
		if name != "sign_ins" && label != "" {
			all = append(all, bar{Label: titled(name) + ": " + label, Value: value})
		}
	}
	return all
}

// reportFile returns the page with the rows of a run as a file.
func reportFile(format string) page {
	return func(v *visit) error {
		path := v.reportPath() + "/runs/" + url.PathEscape(v.variable("run_id")) + "/rows?format=" + format
		return inprocess.Download(v.handlers.API, v.w, v.r, v.token, path)
	}
}
