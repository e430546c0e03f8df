package client_test

import (
	"context"
	"log"
	"net/http"

	"github.com/gorilla/mux"

	"stonetown/client"
)

func Example() {
	c, err := client.New(client.Config{BaseURL: "https://acme.example.com", ClientID: "client_…", ClientSecret: "cs_…"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := client.WithConsistency(context.Background())
	ann, report := client.Subject{Type: "user", ID: "ann"}, client.Ref{Type: "document", ExternalID: "q3"}
	if _, err := c.CreateRelation(ctx, client.Tuple{Resource: report, Relation: "viewer", Subject: ann}); err != nil {
		log.Fatal(err)
	}
	allowed, err := c.Allowed(ctx, ann, "view", report) // reflects the write above
	if err != nil {
		log.Fatal(err)
	}
	log.Println(allowed)
}

// The requests of a service that are in progress share the requests to the server.
func ExampleGuard() {
	var c *client.Client // as above
	guard := &client.Guard{
		Checker: client.NewBatcher(c),
		Subject: func(r *http.Request) (client.Subject, bool) {
			id, ok := userOf(r) // from the token that the service has verified
			return client.Subject{Type: "user", ID: id}, ok
		},
		Failed: func(r *http.Request, err error) { log.Print(err) },
	}

	routes := http.NewServeMux()
	routes.Handle("GET /documents/{id}", guard.Require("view", client.Path("document", "id"))(http.HandlerFunc(serve)))

	// The same with gorilla/mux.
	router := mux.NewRouter()
	documents := router.PathPrefix("/documents/{id}").Subrouter()
	documents.Use(guard.Require("view", func(r *http.Request) client.Ref {
		return client.Ref{Type: "document", ExternalID: mux.Vars(r)["id"]}
	}))
	documents.HandleFunc("", serve)
}

func userOf(*http.Request) (string, bool) { return "", false }

func serve(http.ResponseWriter, *http.Request) {}
