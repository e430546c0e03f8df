package main

import (
	_ "embed"
	"io"
	"strings"
	"text/template"
)

// quickstart is the commands with which the README begins. Their only needs are a POSIX
// shell and curl.
//
//go:embed quickstart.sh
var quickstart string

// walk is what a development server prints: commands that can be pasted into a
// terminal as they are.
var walk = template.Must(template.Must(template.New("quickstart").Parse(quickstart)).New("walk").Parse(`
Stonetown runs on {{.BaseURL}}
(on this machine, also on any localhost address with that port).
Health and metrics: http://{{.AdminAddr}}/readyz, /metrics. Credentials: {{.File}}
Pages: {{.BaseURL}}/auth/sign-in{{with .Admin.Email}} (as {{.}}; the password is in the credentials file){{end}}.
Mails and text messages: {{.BaseURL}}/dev/mailbox
{{if .ClientSecret}}
Paste this into another terminal, in the same folder, to get a token, define types, write relations and check them.
The README explains them and continues from there.

{{template "quickstart" .Shell}}{{else}}
The database has a tenant, but {{.File}} does not hold its credentials. There is no other copy of them.
Restore the file, or start over with another --data-dir.
{{end}}
`))

// printWalk prints it. The commands read the client secret from the file.
func printWalk(w io.Writer, c credentials, admin, file string) error {
	return walk.Execute(w, struct {
		credentials
		AdminAddr, File string
		Shell           struct{ File string }
	}{c, admin, file, struct{ File string }{shellWord(file)}})
}

// shellWord quotes a path for a shell, if it has to be.
func shellWord(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
