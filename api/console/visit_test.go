package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stonetown/api/web"
)

// An error that is none of the request is logged, and not shown.
func TestInternalErrorsAreLogged(t *testing.T) {
	templates, err := web.ParseTemplates(files, functions)
	if err != nil {
		t.Fatal(err)
	}
	var logged error
	h := &Handlers{templates: templates, Internal: func(_ *http.Request, err error) { logged = err }}
	failed := errors.New("the disk is on fire")
	for _, known := range []error{errNoRight, errSignIn, &web.Error{Status: http.StatusRequestEntityTooLarge, Message: "too large"}, failed} {
		w := httptest.NewRecorder()
		v := &visit{
			handlers: h, w: w, r: httptest.NewRequest(http.MethodGet, "/console", nil), info: &web.RequestInfo{},
			site: &site{areas: func(*visit) []area { return nil }},
		}
		v.fail(known)
		if (logged != nil) != (known == failed) || strings.Contains(w.Body.String(), "fire") {
			t.Errorf("%v: %d %v logged", known, w.Code, logged)
		}
	}
}
