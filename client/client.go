// Package client calls a running server over its HTTP API: resource types, resources, relations,
// checks, lists and webhook subscriptions. The terminal commands use it, too.
//
//	c, err := client.New(client.Config{BaseURL: "https://acme.example.com", ClientID: id, ClientSecret: secret})
//	allowed, err := c.Allowed(ctx, client.Subject{Type: "user", ID: "ann"}, "view", client.Ref{Type: "document", ExternalID: "q3"})
//
// A [Batcher] answers checks of the same moment with one request, [WithConsistency] carries
// consistency tokens from call to call, and a [Guard] protects handlers of net/http.
//
// A [Client] gets its own access tokens. It repeats requests that the server was too busy for
// or that the network lost. It repeats a write only under an Idempotency-Key, so that no write
// is executed twice. Values that are read keep their JSON, so that members that this package
// does not have are not lost when the values are written elsewhere.
package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Scopes that the operations need.
const (
	ScopeRead      = "resources:read"
	ScopeWrite     = "resources:write"
	ScopeSubscribe = "webhooks:write"
)

// Config has the address of the server and the credentials.
type Config struct {
	// BaseURL is the URL of the tenant, such as http://dev.localhost:8080.
	BaseURL string

	// ClientID and ClientSecret are the credentials of an application of the tenant.
	ClientID, ClientSecret string

	// Scopes of the access tokens. Default: all that the application may have.
	Scopes []string

	// HTTP sends the requests. Default: [NewHTTP].
	HTTP *http.Client

	// Warn, if not nil, is called with each warning of the server, once for each text. Calls do
	// not overlap.
	Warn func(text string)

	// Patience is how long after its start a call is repeated while the server is busy or
	// unreachable. Default 15s.
	Patience time.Duration
}

// Client calls the API. It is safe for concurrent use.
type Client struct {
	base     string // without a final slash
	http     *http.Client
	tokens   tokens
	patience time.Duration
	warnings warnings
}

// New returns a client. It sends no request.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	// The errors do not quote the URL, which may have a password.
	switch {
	case err != nil:
		return nil, errors.New("the server's URL is malformed")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the server's URL must not have user information, a query or a fragment")
	case base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "":
		return nil, fmt.Errorf("the server's URL %q does not begin with http:// or https:// and a host", config.BaseURL)
	case config.ClientID == "" || config.ClientSecret == "":
		return nil, errors.New("the client id or the client secret is missing")
	}
	c := &Client{base: strings.TrimRight(config.BaseURL, "/"), http: config.HTTP, patience: config.Patience}
	if c.http == nil {
		c.http = NewHTTP()
	}
	if c.patience == 0 {
		c.patience = 15 * time.Second
	}
	c.warnings.warn = config.Warn
	c.tokens = tokens{http: c.http, config: clientcredentials.Config{
		ClientID: config.ClientID, ClientSecret: config.ClientSecret,
		TokenURL: c.base + "/oauth2/token", Scopes: config.Scopes,
		AuthStyle: oauth2.AuthStyleInHeader,
	}}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
