package console

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"stonetown/api/inprocess"
	"stonetown/api/web"
)

// keyedAPI executes an operation once for each Idempotency-Key, as the pipeline of the API does.
type keyedAPI struct {
	// execute is the operation: a status and the data of its response.
	execute func(body string) (int, object)

	mu       sync.Mutex
	answers  map[string]*keyedAnswer
	executed int
	waited   chan struct{} // gets a value for each request that was refused because another is being executed
}

type keyedAnswer struct {
	done   bool
	body   string
	status int
	data   object
}

func (k *keyedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, data object) {
		w.WriteHeader(status)
		body := object{"data": data}
		if status >= 400 {
			body = data
		}
		_ = json.NewEncoder(w).Encode(body)
	}
	key := r.Header.Get("Idempotency-Key")
	k.mu.Lock()
	if known := k.answers[key]; known != nil && !known.done { // an upload was not read yet
		k.mu.Unlock()
		if k.waited != nil {
			k.waited <- struct{}{}
		}
		answer(http.StatusConflict, object{"error": "idempotency_in_progress"})
		return
	}
	k.mu.Unlock()
	text, _ := io.ReadAll(r.Body)
	k.mu.Lock()
	if known := k.answers[key]; known != nil && key != "" {
		defer k.mu.Unlock()
		if known.body != string(text) {
			answer(http.StatusUnprocessableEntity, object{"error": "idempotency_key_reused"})
			return
		}
		answer(known.status, known.data)
		return
	}
	mine := &keyedAnswer{body: string(text)}
	if k.answers == nil {
		k.answers = map[string]*keyedAnswer{}
	}
	k.answers[key] = mine
	k.executed++
	k.mu.Unlock()
	status, data := k.execute(string(text))
	k.mu.Lock()
	mine.done, mine.status, mine.data = true, status, data
	k.mu.Unlock()
	answer(status, data)
}

var parsed = sync.OnceValues(func() (map[string]*template.Template, error) { return web.ParseTemplates(files, functions) })

// sent is a visit with a form that was sent.
func sent(t *testing.T, api http.Handler, session string, form url.Values) (*visit, *httptest.ResponseRecorder) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/console", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	templates, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	return &visit{
		handlers: &Handlers{API: api, templates: templates}, site: &site{areas: (*visit).areas}, w: w, r: r, info: &web.RequestInfo{},
		session: session, token: "token", scopes: []string{"applications:read", "applications:write"},
	}, w
}

// A form that is sent twice at the same time acts once, and both requests get the answer.
func TestFormSentTwiceAtOnce(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	api := &keyedAPI{waited: make(chan struct{}, 100)}
	api.execute = func(string) (int, object) {
		close(begun)
		<-end
		return http.StatusCreated, object{"secret": "s"}
	}
	var answers [2]inprocess.Answer
	var wg sync.WaitGroup
	send := func(i int) {
		v, _ := sent(t, api, "ses_a", url.Values{"once": {"x"}})
		wg.Go(func() {
			var err error
			if answers[i], err = v.once(http.MethodPost, "/things", object{"name": "n"}); err != nil {
				t.Error(err)
			}
		})
	}
	send(0)
	<-begun
	send(1)
	<-api.waited // the second has asked, and waits
	close(end)
	wg.Wait()
	if got := fmt.Sprint(answers[0].Data, answers[1].Data); got != "map[secret:s] map[secret:s]" || api.executed != 1 {
		t.Errorf("%d executions, with the answers %s", api.executed, got)
	}
}

// The browser leaves the first of two requests, whose work has to be done all the same.
func TestFormWhoseRequestWasLeft(t *testing.T) {
	api := &keyedAPI{execute: func(string) (int, object) { return http.StatusCreated, object{"secret": "s"} }}
	v, _ := sent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			t.Error("the operation is canceled with the request of the browser")
		}
		api.ServeHTTP(w, r)
	}), "ses_a", url.Values{"once": {"x"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v.r = v.r.WithContext(ctx)
	if _, err := v.once(http.MethodPost, "/things", nil); err != nil || api.executed != 1 {
		t.Errorf("%d executions, %v", api.executed, err)
	}
}

// The value of a form is no key to the answer for another session, or for another operation.
func TestFormOfAnotherSession(t *testing.T) {
	api := &keyedAPI{}
	api.execute = func(string) (int, object) { return http.StatusCreated, object{"secret": fmt.Sprint(api.executed)} }
	for i, of := range []struct{ session, method, path, want string }{
		{"ses_a", http.MethodPost, "/things", "1"},
		{"ses_a", http.MethodPost, "/things", "1"}, // sent again
		{"ses_b", http.MethodPost, "/things", "2"},
		{"ses_a", http.MethodPost, "/others", "3"},
		{"ses_a", http.MethodDelete, "/things", "4"},
	} {
		v, _ := sent(t, api, of.session, url.Values{"once": {"x"}})
		a, err := v.once(of.method, of.path, nil)
		if got, _ := a.Data.(object); err != nil || got["secret"] != of.want {
			t.Errorf("%d: %v, %v; want %s", i, a.Data, err, of.want)
		}
	}
}

var onceField = regexp.MustCompile(`name="once" value="([^"]+)"`)

// A form that was refused and then corrected is processed: the page with the error has another value.
// From the page before, to which the browser can go back, it is refused once more, because the console
// does not know what came of the first.
func TestRefusedFormIsCorrected(t *testing.T) {
	api := &keyedAPI{execute: func(body string) (int, object) {
		if strings.Contains(body, "http://") {
			return http.StatusUnprocessableEntity, object{"error": "validation_failed", "details": object{"field_errors": []object{{"field": "issuer", "message": "must be https"}}}}
		}
		return http.StatusCreated, object{"id": "iss_1"}
	}}
	send := func(once, issuer string) *httptest.ResponseRecorder {
		t.Helper()
		v, w := sent(t, api, "ses_a", url.Values{"once": {once}, "preset": {"other"}, "issuer": {issuer}, "enabled": {"yes"}, "single_use": {"yes"}, "signing_algs": {"RS256", "PS256", "ES256", "EdDSA"}})
		if err := createIssuer(v); err != nil {
			t.Fatal(err)
		}
		return w
	}
	first := send("x", "http://issuer.example.com")
	page := first.Body.String()
	next := onceField.FindStringSubmatch(page)
	if first.Code != http.StatusUnprocessableEntity || next == nil || next[1] == "x" || !strings.Contains(page, `value="http://issuer.example.com"`) || !strings.Contains(page, "Must be https.") {
		t.Fatalf("status %d, value %q:\n%s", first.Code, next, page)
	}
	if got := send(next[1], "https://issuer.example.com"); got.Code != http.StatusSeeOther || api.executed != 2 {
		t.Errorf("corrected: status %d after %d executions", got.Code, api.executed)
	}

	back := send("x", "https://other.example.com")
	page = back.Body.String()
	if next = onceField.FindStringSubmatch(page); back.Code != http.StatusUnprocessableEntity || next == nil || !strings.Contains(page, "This form was sent before, with other values.") || !strings.Contains(page, `value="https://other.example.com"`) {
		t.Fatalf("status %d:\n%s", back.Code, page)
	}
	if got := send(next[1], "https://other.example.com"); got.Code != http.StatusSeeOther || api.executed != 3 {
		t.Errorf("sent again: status %d after %d executions", got.Code, api.executed)
	}
}

// A file that waits for another request with the same value is passed as a whole.
func TestFileSentTwice(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	api := &keyedAPI{waited: make(chan struct{}, 100)}
	api.execute = func(body string) (int, object) {
		close(begun)
		<-end
		return http.StatusAccepted, object{"id": body}
	}
	var wg sync.WaitGroup
	send := func() {
		v, _ := sent(t, api, "ses_a", nil)
		wg.Go(func() {
			a, err := v.onceUpload("x", http.MethodPost, "/things", http.Header{"Content-Type": {"application/x-ndjson"}}, strings.NewReader("{}\n{}\n"))
			if got, _ := a.Data.(object); err != nil || got["id"] != "{}\n{}\n" {
				t.Errorf("%v, %v", a.Data, err)
			}
		})
	}
	send()
	<-begun
	send()
	<-api.waited
	close(end)
	wg.Wait()
	if api.executed != 1 {
		t.Errorf("%d executions", api.executed)
	}
}
