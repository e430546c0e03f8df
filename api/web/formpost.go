package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
)

// submit submits the form. Without scripts there is a button.
const submit = "document.forms[0].submit()"

// formPost is a page that posts a form (OAuth 2.0 Form Post Response Mode §2, SAML Bindings §3.5.4).
var formPost = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>One moment</title>
<form method="post" action="{{.To}}">
{{range $name, $values := .Params}}{{range $values}}<input type="hidden" name="{{$name}}" value="{{.}}">
{{end}}{{end}}<noscript><button>Continue</button></noscript>
</form>
<script>` + submit + `</script>
</html>
`))

// formPostPolicy is the policy of that page. The targets of forms are not limited, because the limit
// would also apply to redirects by the receiver.
var formPostPolicy = scriptPolicy(submit)

// scriptPolicy returns the content security policy that allows one script and nothing else.
func scriptPolicy(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'"
}

// writePage responds with a page that has a policy of its own.
func writePage(w http.ResponseWriter, t *template.Template, policy string, data any) error {
	var page bytes.Buffer
	if err := t.Execute(&page, data); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(page.Bytes()) // an error means that the client has disconnected
	return nil
}

// PostForm responds with a page that posts a form to a URL. Without scripts, the user presses a
// button. The caller must have checked the scheme of the URL; html/template would know only http and
// https.
func PostForm(w http.ResponseWriter, to string, params url.Values) error {
	return writePage(w, formPost, formPostPolicy, struct {
		To     template.URL
		Params url.Values
	}{template.URL(to), params})
}
