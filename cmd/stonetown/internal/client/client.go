// Package client speaks to a running server over its HTTP API. It has what the
// terminal commands need and no more: resource types, resources, relations and
// checks.
//
// A [Client] gets its own access tokens. It repeats what the server was too busy
// for and what the network lost, but a write only under an Idempotency-Key, so
// that nothing is done twice. Values that are read keep the JSON they came in,
// so that what is written elsewhere lacks nothing this package does not know.
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
	ScopeRead  = "resources:read"
	ScopeWrite = "resources:write"
)

// Config says which server, and as whom.
type Config struct {
	// BaseURL is the tenant's, such as http://dev.localhost:8080.
	BaseURL string

	// ClientID and ClientSecret are those of an application of the tenant.
	ClientID, ClientSecret string

	// Scopes of the access tokens. None: all that the application may have.
	Scopes []string

	// HTTP sends the requests. Default: as [NewHTTP] makes it.
	HTTP *http.Client

	// Patience is how long after its start a call may be tried again, when the
	// server is busy or out of reach. Default 15s.
	Patience time.Duration
}

// Client is a caller of the API. It may be used concurrently.
type Client struct {
	base     string // without a slash at the end
	http     *http.Client
	tokens   tokens
	patience time.Duration
}

// New returns a client. It sends nothing yet.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	// The errors do not quote the URL, which may hold a password.
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
	c.tokens = tokens{http: c.http, config: clientcredentials.Config{
		ClientID: config.ClientID, ClientSecret: config.ClientSecret,
		TokenURL: c.base + "/oauth2/token", Scopes: config.Scopes,
		AuthStyle: oauth2.AuthStyleInHeader,
	}}
	return c, nil
}

// Close gives up the connections that are kept for further calls.
func (c *Client) Close() { c.http.CloseIdleConnections() }
