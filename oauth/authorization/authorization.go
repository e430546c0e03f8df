// Package authorization obtains the permission of users: what happens between an
// authorization request and the code or grant that the token endpoint redeems.
//
// A request to the authorization endpoint (RFC 6749 §4.1.1, OIDC Core §3.1.2.1) is validated
// by [Service.Authorize], whether its parameters come from the browser or were pushed by the
// application (RFC 9126, [Service.Push]). Nothing is sent to a redirect URI before the
// application is known to have registered it: until then a refusal is a [*PageError], and
// afterwards a [*RedirectError].
//
// If the session of the browser does not suffice, or the user has to choose an account or
// give consent, the request is stored ([Service.Suspend]) and the hosted pages continue it.
// A stored request is bound to the browser from which it came ([Service.Resume]). The answer
// of the user is stored with the request, so no parameter of the browser's decides what is
// granted.
//
// A device without a browser shows a code, which the user enters elsewhere (RFC 8628,
// [Service.AuthorizeDevice]).
//
// A user who is signed out is signed out of applications, too: at the request of one
// ([Service.Logout], OIDC RP-Initiated Logout), and by a request to each one that has a
// backchannel_logout_uri (OIDC Back-Channel Logout).
package authorization

import (
	"context"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/audience"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Config is the configuration of a [Service]. All fields are required.
type Config struct {
	DB        *sqldb.DB
	Registry  *client.Registry      // admits clients whose ids are URLs
	Clients   *client.Authenticator // authenticates clients that push requests, and devices
	Keys      *keys.Service         // signs logout tokens
	Access    *access.Store
	Details   *detail.Checker
	Audiences *audience.Checker
	Tokens    *token.Service // reads ID tokens that are given as hints
	Jobs      *jobs.Queue    // sends logout tokens
	Outbound  *outbound.Client
	Tenants   func(ctx context.Context, tenantID string) (protocol.Tenant, error)
	Clock     func() time.Time
}

// Service handles the authorization requests of any number of tenants. It is safe for
// concurrent use.
type Service struct {
	registry  *client.Registry
	db        *sqldb.DB
	authn     *client.Authenticator
	keys      *keys.Service
	access    *access.Store
	details   *detail.Checker
	audiences *audience.Checker
	tokens    *token.Service
	jobs      *jobs.Queue
	outbound  *outbound.Client
	tenants   func(ctx context.Context, tenantID string) (protocol.Tenant, error)
	clock     func() time.Time
	record    *eventlog.Recorder
	fetches   *fair.Shares // of request objects
}

// New returns the service whose state is in c.DB.
func New(c Config) *Service {
	s := &Service{c.Registry, c.DB, c.Clients, c.Keys, c.Access, c.Details, c.Audiences, c.Tokens, c.Jobs, c.Outbound, c.Tenants, c.Clock, eventlog.NewRecorder(c.DB), fair.NewShares("request objects", fetchLimits)}
	s.registerLogout(c.Jobs)
	return s
}
