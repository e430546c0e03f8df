package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/mux"

	"stonetown/client"
)

// A service protects its handlers with the client library: routes of net/http and of gorilla/mux,
// checks of the same moment in one request, and writes that the next check reflects.
func TestClientLibrary(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	app := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	c, err := client.New(client.Config{BaseURL: app.BaseURL, ClientID: app.ClientID, ClientSecret: app.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	guard := &client.Guard{
		Checker: client.NewBatcher(c),
		Subject: func(r *http.Request) (client.Subject, bool) {
			id, _, ok := r.BasicAuth()
			return client.Subject{Type: "user", ID: id}, ok
		},
		Failed: func(_ *http.Request, err error) { t.Error(err) },
	}
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})
	routes := http.NewServeMux()
	routes.Handle("GET /documents/{id}", guard.Require("view", client.Path("document", "id"))(ok))
	router := mux.NewRouter()
	under := router.PathPrefix("/mux/{id}").Subrouter()
	under.Use(guard.Require("view", func(r *http.Request) client.Ref { return client.Ref{Type: "document", ExternalID: mux.Vars(r)["id"]} }))
	under.Handle("", ok)
	routes.Handle("/mux/", router)
	status := func(path, user string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		if user != "" {
			r.SetBasicAuth(user, "")
		}
		routes.ServeHTTP(w, r)
		return w.Code
	}

	ctx := client.WithConsistency(t.Context())
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			tuple := client.Tuple{
				Resource: client.Ref{Type: "document", ExternalID: fmt.Sprint(n)}, Relation: "viewer", Subject: client.Subject{Type: "user", ID: fmt.Sprint("u", n%3)},
			}
			if created, err := c.CreateRelation(ctx, tuple); err != nil || !created {
				t.Error(created, err)
			}
			if allowed, err := c.Allowed(ctx, tuple.Subject, "view", tuple.Resource); err != nil || !allowed {
				t.Error(allowed, err)
			}
		})
	}
	all.Wait()
	for n := range 120 {
		all.Go(func() {
			path := strings.Replace("/documents/N", "N", fmt.Sprint(n/3), 1)
			if n%2 == 0 {
				path = fmt.Sprint("/mux/", n/3)
			}
			wanted := http.StatusForbidden
			if n%3 == n/3%3 {
				wanted = http.StatusOK
			}
			if got := status(path, fmt.Sprint("u", n%3)); got != wanted {
				t.Errorf("%s of u%d: status %d, want %d", path, n%3, got, wanted)
			}
		})
	}
	all.Wait()
	if got := [3]int{status("/documents/absent", "u1"), status("/documents/1", ""), status("/mux/1", "u1")}; got != [3]int{403, 401, 200} {
		t.Errorf("statuses %v", got)
	}
	if allowed, err := c.Allowed(ctx, client.Subject{Type: "user", ID: "u1"}, "view", client.Ref{Type: "document", ExternalID: "1"}); err != nil || !allowed || client.ConsistencyToken(ctx) == "" {
		t.Error(allowed, err, client.ConsistencyToken(ctx))
	}
}
