package console

import (
	"net/http"
	"testing"

	"stonetown/api/web"
)

// Every form is in one of the two lists, and each entry of these is a form: a new form needs a decision.
func TestForms(t *testing.T) {
	h := &Handlers{}
	plain := func(_ web.Operation, _ web.ErrorFormat, next http.Handler) http.Handler { return next }
	forms := map[string]bool{}
	for name, routes := range map[string]func(wrap) (map[string]map[string]http.Handler, error){"tenant": h.Routes, "control plane": h.ControlRoutes} {
		pages, err := routes(plain)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for path, methods := range pages {
			if methods[http.MethodPost] == nil {
				continue
			}
			n++
			forms[path] = true
			if (delicate[path] == 0) == !ordinary[path] {
				t.Errorf("%s is in none of the lists, or in both", path)
			}
			if delicate[path] == atForm && methods[http.MethodGet] == nil {
				t.Errorf("%s has no form at its path", path)
			}
		}
		if n < 10 {
			t.Errorf("%d forms of the %s", n, name)
		}
	}
	for path := range delicate {
		if !forms[path] {
			t.Errorf("%s is no form", path)
		}
	}
	for path := range ordinary {
		if !forms[path] {
			t.Errorf("%s is no form", path)
		}
	}
	// A form that nobody has decided about ends the start.
	_, err := h.routes(plain, &site{}, map[string]map[string]page{home + "/undecided": {http.MethodPost: overview}})
	if err == nil {
		t.Error("a form in none of the lists is served")
	}
}
