package pages

import (
	"embed"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"stonetown/api/web"
	"stonetown/identity/branding"
	"stonetown/internal/translation"
)

//go:embed texts
var textFiles embed.FS

// texts are the texts of the pages in all languages. The pages for developers and administrators
// (mailbox, welcome, test of a connection) are in English only.
var texts = sync.OnceValue(func() *translation.Texts {
	all, err := translation.Read(textFiles, "texts")
	if err != nil {
		panic(err) // embedded
	}
	return all
})

// message is a text of a page in English, by which its translations are found.
type message string

// speech is the language of a page.
type speech struct{ language translation.Language }

// say returns a message with its values; see [translation.Texts.Text].
func (s speech) say(m message, values ...any) string {
	return texts().Text(s.language, string(m), numbers(values)...)
}

// T returns a text of a template; see [translation.Texts.HTML].
func (s speech) T(text string, values ...any) template.HTML {
	return texts().HTML(s.language, text, numbers(values)...)
}

// Language returns the language of the page (BCP 47).
func (s speech) Language() string { return s.language.Tag() }

// Direction returns the direction of its script.
func (s speech) Direction() string { return s.language.Direction() }

// months are the names of months in dates.
var months = [...]message{
	"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
}

// Date returns an instant of a response as the page shows it; empty if it is none.
func (s speech) Date(instant any) string {
	text, _ := instant.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	at = at.UTC()
	return s.say("{day} {month} {year}, {time} UTC",
		"day", at.Day(), "month", s.say(months[at.Month()-1]), "year", at.Year(), "time", at.Format("15:04"))
}

// Factor returns the name of a second factor: its label, or its kind.
func (s speech) Factor(label, kind any) string {
	if text, _ := label.(string); text != "" {
		return text
	}
	switch kind {
	case "webauthn":
		return s.say("Passkey")
	case "totp":
		return s.say("Authenticator app")
	}
	return s.say("Phone")
}

// numbers returns values in which whole numbers of JSON are integers, which plural forms need.
func numbers(values []any) []any {
	out := make([]any, len(values))
	for i, value := range values {
		out[i] = value
		if n, ok := value.(float64); ok && n == float64(int(n)) {
			out[i] = int(n)
		}
	}
	return out
}

// localeCookie has the language that an application asked for with ui_locales, for the pages of the
// sign-in that follows.
const localeCookie = "__Host-locale"

// localeFor is how long the wish of an application counts, in seconds: as long as a sign-in can take.
const localeFor = 1800

// speak chooses the language of a page: that for which the application asked, then that of the user
// who is signed in, then that of the browser, of those that the tenant offers.
func (v *visit) speak() {
	wanted := v.info.Cookie(localeCookie)
	if l, ok := translation.Find(strings.ReplaceAll(v.form("ui_locales"), " ", ",")); ok {
		wanted = l.Tag()
		v.info.SetCookie(&http.Cookie{Name: localeCookie, Value: wanted, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: localeFor})
	}
	v.speech = speech{v.own.Language(wanted, v.session().locale, v.info.AcceptLanguage())}
}

// speechOf returns the language of a page that is shown without a visit, by the request alone.
func speechOf(info *web.RequestInfo, own *branding.Branding) speech {
	return speech{own.Language(info.Cookie(localeCookie), info.AcceptLanguage())}
}
