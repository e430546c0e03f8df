package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"stonetown/api/web"
)

const (
	importsPage = usersPage + "/imports"
	importsPath = "/api/v1/users/bulk-import"
)

// importAction is the path that a file of users is sent to. Its form is read as a stream.
const importAction = importsPage + "/upload"

// imports lists the imports of users, with a form for a new one.
func imports(v *visit) error {
	return v.showImports(nil)
}

func (v *visit) showImports(wrong *fault) error {
	a, err := v.read(http.MethodGet, query(importsPath, "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	confirm, err := v.confirmation()
	if err != nil {
		return err
	}
	data := object{"Imports": a.Data, "Write": v.may("users:write"), "Action": importAction, "Page": importsPage, "Confirm": confirm}
	v.paged(data, a.Meta, importsPage)
	if v.may("users:write") {
		v.calls = append(v.calls, call{http.MethodPost, importsPath, file{"users.ndjson", "application/x-ndjson"}})
	}
	if wrong != nil {
		return v.again("imports.html", "Imports", data, wrong)
	}
	return v.show("imports.html", "Imports", data)
}

// upload passes the file of the form to the operation that receives imports.
func upload(v *visit) error {
	if err := v.require("users:write"); err != nil {
		return err
	}
	path, once := importsPath, ""
	part, wrong := v.filePart(func(name, text string) {
		switch name {
		case "once":
			once = text
		case "send_verification":
			path = query(importsPath, "send_verification", strconv.FormatBool(text == "yes"))
		}
	})
	if wrong != nil {
		return v.showImports(wrong)
	}
	a, wrong, err := v.sendFile(once, http.MethodPost, path, "application/x-ndjson", part)
	if wrong != nil {
		return v.showImports(wrong)
	}
	if err != nil {
		return err
	}
	job, _ := a.Data.(object)
	id, _ := job["id"].(string)
	v.redirect(importsPage + "/" + url.PathEscape(id))
	return nil
}

// importPath returns the path of the operations on the import of a page.
func (v *visit) importPath() string { return importsPath + "/" + url.PathEscape(v.variable("job_id")) }

// importPage returns the path of the page of the import.
func (v *visit) importPage() string { return importsPage + "/" + url.PathEscape(v.variable("job_id")) }

// underway reports whether an import has not ended.
func underway(job object) bool { return job["finished_at"] == nil }

// oneImport shows the progress of an import, and why rows failed.
func oneImport(v *visit) error {
	job, err := v.one(v.importPath())
	if err != nil {
		return err
	}
	total, _ := job["total"].(float64)
	imported, _ := job["imported"].(float64)
	failed, _ := job["failed"].(float64)
	v.follow = underway(job)
	return v.show("import.html", "Import of users", object{
		"Import": job, "Done": imported + failed, "Total": max(total, 1), "Underway": underway(job), "Write": v.may("users:write"), "Page": v.importPage(), "All": importsPage,
	})
}

func cancelImportForm(v *visit) error {
	if err := v.require("users:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.importPath(), nil)
	if err != nil {
		return err
	}
	job, _ := a.Data.(object)
	if !underway(job) {
		v.redirect(v.importPage())
		return nil
	}
	v.calls = append(v.calls, call{http.MethodPost, v.importPath() + "/cancel", nil})
	return v.confirm("Stop this import?", object{
		"Text": "The rows that were not imported yet are discarded. Users who were imported stay.", "Button": "Stop the import", "Action": v.importPage() + "/cancel", "Cancel": v.importPage(), "Fields": object{},
	}, nil)
}

func cancelImport(v *visit) error {
	return v.act(v.importPath()+"/cancel", nil, v.importPage(), "import-cancelled")
}

// importErrors writes why rows of an import failed, as a file of comma-separated values.
func importErrors(v *visit) error {
	a, err := v.call(http.MethodGet, v.importPath(), nil)
	if err != nil {
		return err
	}
	job, _ := a.Data.(object)
	id, _ := job["id"].(string)
	list, _ := job["errors"].([]any)
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "errors-"+id+".csv"))
	w := csv.NewWriter(v.w)
	_ = w.Write([]string{"line", "email", "code", "message"}) // errors mean that the client has disconnected
	for _, item := range list {
		o, _ := item.(object)
		row := []string{fmt.Sprint(o["line"]), "", "", ""}
		for i, name := range []string{"email", "code", "message"} {
			text, _ := o[name].(string)
			row[i+1] = text
		}
		_ = w.Write(web.CSVCells(row...))
	}
	w.Flush()
	return nil
}
