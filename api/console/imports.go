package console

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"time"
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
	data := object{"Imports": a.Data, "Write": v.may("users:write"), "Action": importAction, "Page": importsPage}
	v.paged(data, a.Meta, importsPage)
	if v.may("users:write") {
		v.calls = append(v.calls, call{http.MethodPost, importsPath, fileOfLines("users.ndjson")})
	}
	if wrong != nil {
		return v.again("imports.html", "Imports", data, wrong)
	}
	return v.show("imports.html", "Imports", data)
}

// maxPart bounds a part of the form that is not the file, in bytes.
const maxPart = 100

// upload passes the file of the form to the operation that receives imports, part by part as it
// arrives, so that it is never in memory as a whole.
func upload(v *visit) error {
	if err := v.require("users:write"); err != nil {
		return err
	}
	parts, err := v.r.MultipartReader()
	if err != nil {
		return v.showImports(invalid("file", "The form must be sent as multipart/form-data."))
	}
	path, once := importsPath, ""
	for {
		part, err := parts.NextPart()
		if err != nil { // also at the end: the file is the last part
			return v.showImports(invalid("file", "Choose a file."))
		}
		if part.FormName() != "file" {
			text, err := io.ReadAll(io.LimitReader(part, maxPart))
			if err != nil {
				return v.showImports(invalid("file", "The form could not be read."))
			}
			switch part.FormName() {
			case "once":
				once = string(text)
			case "send_verification":
				path = query(importsPath, "send_verification", strconv.FormatBool(string(text) == "yes"))
			}
			continue
		}
		return v.receive(path, once, part)
	}
}

// gzipMagic are the first bytes of a file that is compressed (RFC 1952 §2.3.1).
const gzipMagic = "\x1f\x8b"

func (v *visit) receive(path, once string, file *multipart.Part) error {
	// A file may take longer than the deadline of pages. Operations have their own.
	v.r = v.r.WithContext(context.WithoutCancel(v.r.Context()))
	body := bufio.NewReader(file)
	header := http.Header{"Content-Type": {"application/x-ndjson"}}
	start, err := body.Peek(len(gzipMagic))
	if err != nil && len(start) == 0 {
		return v.showImports(invalid("file", "Choose a file with at least one line."))
	}
	if string(start) == gzipMagic {
		header.Set("Content-Encoding", "gzip")
	}
	a, err := v.onceUpload(once, http.MethodPost, path, header, body)
	e, ok := refused(err)
	if !ok {
		if err != nil {
			return err
		}
		job, _ := a.Data.(object)
		id, _ := job["id"].(string)
		v.redirect(importsPage + "/" + url.PathEscape(id))
		return nil
	}
	// Browsers read the answer when they have sent the file, as far as there is time for the rest.
	_ = http.NewResponseController(v.w).SetReadDeadline(time.Now().Add(maxOnce))
	_, _ = io.Copy(io.Discard, body)
	if e.Status >= http.StatusInternalServerError || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return err
	}
	return v.showImports(faultOf(e, "body", "file"))
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
		_ = w.Write(cells(row...))
	}
	w.Flush()
	return nil
}
