package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// call is the request for an operation.
type call struct {
	method, path string
	body         any
}

// file is a body that is in a file.
type file struct{ name, mediaType string }

// picture is a body that is a picture, by the name of a file.
type picture string

// curl returns the call as a command of a POSIX shell.
func (c call) curl(base string) string {
	text := "curl -sS"
	if c.method != http.MethodGet && (c.method != http.MethodPost || c.body == nil) {
		text += " -X " + c.method
	}
	text += " " + quoted(base+c.path) + ` \` + "\n" + `  -H "Authorization: Bearer $TOKEN"`
	if f, ok := c.body.(file); ok {
		return text + " -H " + quoted("Content-Type: "+f.mediaType) + " \\\n  --data-binary " + quoted("@"+f.name)
	}
	if file, ok := c.body.(picture); ok {
		return text + ` -H 'Content-Type: image/png' \` + "\n  --data-binary " + quoted("@"+string(file))
	}
	if c.body != nil {
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(c.body); err != nil {
			panic("console: " + err.Error()) // a programming error
		}
		text += ` -H 'Content-Type: application/json' \` + "\n  -d " + quoted(strings.TrimSpace(body.String()))
	}
	return text
}

// quoted returns a text as one word of a POSIX shell (XCU §2.2.2).
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
