package main

import (
	"io"
	"text/template"
)

// walk is what a development server prints: commands that can be pasted into a
// terminal as they are. Their only needs are a POSIX shell and curl.
var walk = template.Must(template.New("walk").Parse(`
Stonetown runs on {{.BaseURL}} (or, here, any localhost address on that port).
Health and metrics: http://{{.AdminAddr}}/readyz, /metrics. Credentials: {{.File}}
Pages: {{.BaseURL}}/auth/sign-in{{with .Admin.Email}} (as {{.}}, whose password is among the credentials){{end}}.
What is sent to people: {{.BaseURL}}/dev/mailbox
{{if .ClientSecret}}
Paste this into another terminal to get a token, define a type, write a relation and check it:

BASE={{.BaseURL}}
TOKEN=$(curl -sS "$BASE/oauth2/token" -d grant_type=client_credentials \
  -d client_id={{.ClientID}} \
  -d client_secret={{.ClientSecret}} | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
call() { curl -sS "$BASE/api/v1/$1" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d "$2"; echo; }
call resource-types '{"name":"document","relations":[
  {"name":"owner","rewrites":[]},
  {"name":"editor","rewrites":[{"kind":"this"},{"kind":"computed","relation":"owner"}]},
  {"name":"viewer","rewrites":[{"kind":"this"},{"kind":"computed","relation":"editor"}]}]}'
call resources/document/readme/relations '{"subject":{"type":"user","id":"ann"},"relation":"editor"}'
call resources/check '{"subject":{"type":"user","id":"ann"},"action":"view","resource":{"type":"document","external_id":"readme"}}'
call resources/check '{"subject":{"type":"user","id":"bob"},"action":"view","resource":{"type":"document","external_id":"readme"}}'
{{else}}
The database has a tenant, but {{.File}} does not hold its credentials, which are not kept anywhere else.
Restore the file, or start over with another --data-dir.
{{end}}
`))

// printWalk prints it. The client secret goes to the terminal, never to a log.
func printWalk(w io.Writer, c credentials, admin, file string) error {
	return walk.Execute(w, struct {
		credentials
		AdminAddr, File string
	}{c, admin, file})
}
