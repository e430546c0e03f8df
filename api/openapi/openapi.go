// Package openapi has the OpenAPI document of tenants ([DataPlane]), and serves documents
// ([Document]). The routing and the types of the packages beside it are generated from a document,
// and so are the scopes, media types and limits of its operations. To parse a document takes longer
// than everything else that a server does when it starts, so the forms that are seldom asked for,
// JSON and the catalogue of event types, are made when they are.
package openapi

import (
	_ "embed"
	"fmt"
	"sync"

	"stonetown/api/openapi/internal/parse"
	"stonetown/api/web"
)

var (
	//go:embed openapi.yaml
	source []byte
	//go:embed collection.json
	collection []byte
)

// DataPlane is the document that is served on the hosts of tenants.
var DataPlane = Document{YAML: source, Collection: collection, Operations: operations, Server: "http://dev.localhost:8080"}

// Document is an OpenAPI document. Its contents must not be changed.
type Document struct {
	YAML []byte
	// Collection is the document converted by collection.mjs.
	Collection []byte
	// Operations are what the pipeline enforces of the operations.
	Operations []web.Operation
	// Server is the address in the document that stands for the one where it is served.
	Server string
}

// JSON converts the document to JSON, with its members in the original order.
func (d Document) JSON() ([]byte, error) { return parse.JSON(d.YAML) }

// EventType describes a type of event.
type EventType = parse.EventType

// EventTypes returns the types of all events, in the order of the section webhooks of [DataPlane].
// They must not be changed.
var EventTypes = sync.OnceValue(func() []EventType {
	types, err := parse.EventTypes(source)
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err)) // the document is part of the program
	}
	return types
})
