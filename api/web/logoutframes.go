package web

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// goOn leaves the page when all frames have loaded, or after five seconds: an application that does
// not respond must not keep the user.
const goOn = `const next=document.getElementById("next");let gone=false;const go=()=>{if(!gone){gone=true;next.click()}};addEventListener("load",go);setTimeout(go,5000)`

// logoutFrames is the page that signs the user out of applications (OIDC Front-Channel Logout §3).
// Without scripts the browser goes on two seconds after the frames have loaded, or the user presses
// the button. The frames can neither navigate the page nor open windows.
var logoutFrames = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Signing out</title>
{{if not .Form}}<noscript><meta http-equiv="refresh" content="2; url={{.To}}"></noscript>
{{end}}</head><body><h1>Signing out</h1>
{{if .Form}}<form method="post" action="{{.To}}">
{{range $name, $values := .Form}}{{range $values}}<input type="hidden" name="{{$name}}" value="{{.}}">
{{end}}{{end}}<button id="next">Continue</button>
</form>
{{else}}<p><a id="next" href="{{.To}}">Continue</a></p>
{{end}}{{range .Frames}}<iframe src="{{.}}" title="Signing out" hidden sandbox="allow-scripts allow-same-origin"></iframe>
{{end}}<script>` + goOn + `</script>
</body></html>
`))

// framesPolicy returns the policy that allows the one script and frames of some origins, and
// nothing else. Each origin is that of a frontchannel_logout_uri, whose host was validated when it was
// stored: it has no character that ends a directive.
func framesPolicy(frames []string) (string, error) {
	var origins []string
	for _, frame := range frames {
		u, err := url.Parse(frame)
		if err != nil {
			return "", err
		}
		if origin := u.Scheme + "://" + u.Host; !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return scriptPolicy(goOn) + "; frame-src " + strings.Join(origins, " "), nil
}

// LogoutFrames responds with a page that loads the addresses of applications in frames, and then goes
// on to a URL: by GET if form is nil, and otherwise by a POST of the form. The caller must have
// checked the scheme of the URL, and that the addresses are those of applications.
func LogoutFrames(w http.ResponseWriter, frames []string, to string, form url.Values) error {
	policy, err := framesPolicy(frames)
	if err != nil {
		return err
	}
	return writePage(w, logoutFrames, policy, struct {
		Frames []string
		To     template.URL
		Form   url.Values
	}{frames, template.URL(to), form})
}
