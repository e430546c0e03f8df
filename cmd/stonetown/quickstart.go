package main

import (
	_ "embed"
	"io"
	"strings"
	"text/template"

	"stonetown/api/pages"
)

// quickstart are the commands with which the README begins. They require only a POSIX shell
// and curl.
//
//go:embed quickstart.sh
var quickstart string

// banner is the text that a development server prints. Its commands can be pasted into a
// terminal.
var banner = template.Must(template.Must(template.New("quickstart").Parse(quickstart)).New("banner").Parse(`
Stonetown runs on {{.BaseURL}}
(on this machine, also on any localhost address with that port).
Health and metrics: http://{{.AdminAddr}}/readyz, /metrics. Credentials: {{.File}}
Start in a browser: {{.BaseURL}}
Pages: {{.BaseURL}}/auth/sign-in{{with .Admin.Email}} (as {{.}}; the password is in the credentials file){{end}}.
Control plane: {{.ControlURL}}{{with .Owner.Email}} (as {{.}}; the password is in the credentials file){{end}}.
Mails and text messages: {{.BaseURL}}/dev/mailbox
{{if .ClientSecret}}
Paste this into another terminal, in the same folder, to get a token, define types, write relations and check them.
The README explains them and continues from there.

{{template "quickstart" .Shell}}{{else}}
The database has a tenant, but {{.File}} does not hold its credentials. There is no other copy of them.
Restore the file, or start over with another --data-dir.
{{end}}
`))

// printQuickstart prints the banner. Its commands read the client secret from the file.
func printQuickstart(w io.Writer, c credentials, admin, file string) error {
	return banner.Execute(w, struct {
		credentials
		AdminAddr, File string
		Shell           struct{ File string }
	}{c, admin, file, struct{ File string }{shellWord(file)}})
}

// welcomePage returns the front page of a development server, with the commands of the banner.
func (p *Program) welcomePage(o bootstrapOptions) (*pages.Welcome, error) {
	file := p.config.bootstrapFile()
	var commands strings.Builder
	if err := banner.ExecuteTemplate(&commands, "quickstart", struct{ File string }{shellWord(file)}); err != nil {
		return nil, err
	}
	return &pages.Welcome{
		Version: version(), Database: redacted(p.config.DatabaseURL), ControlURL: o.ControlURL, AdminURL: "http://" + localAddress(p.AdminAddr()),
		AdminEmail: o.AdminEmail, OwnerEmail: o.OwnerEmail, Credentials: file, Commands: commands.String(), Docs: p.config.Docs,
	}, nil
}

// shellWord quotes a path for a shell, if necessary.
func shellWord(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
