// Package server composes the product from its modules: the tuple store and the engine,
// identity with the steps of authentication, OAuth, the background jobs, and the HTTP
// interface.
//
// [Open] opens the database and returns all services with all their dependencies. [Server.Run]
// runs the background work, and [Server.Handler] returns the HTTP interface. The program, its
// commands and the tests of the interface use the same composition. Listeners, signals and
// flags belong to the program.
package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api"
	"stonetown/api/pages"
	"stonetown/api/people"
	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/engine"
	"stonetown/engine/assertions"
	"stonetown/engine/audit"
	"stonetown/engine/authority"
	"stonetown/engine/resources"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/branding"
	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/federation/signin"
	"stonetown/identity/flow"
	"stonetown/identity/incident"
	"stonetown/identity/mails"
	"stonetown/identity/password/breached"
	"stonetown/identity/scim"
	"stonetown/identity/session"
	"stonetown/identity/threat"
	"stonetown/identity/userimport"
	"stonetown/internal/auditlog"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/idempotency"
	"stonetown/internal/jobs"
	"stonetown/internal/masterkey"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/ratelimit"
	"stonetown/internal/samlkeys"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/tenantkeys"
	"stonetown/internal/tracing"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/saml"
	"stonetown/oauth/scope"
	"stonetown/reporting"
	"stonetown/schema"
	"stonetown/settings"
	"stonetown/tuplestore/leasenode"
	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
	"stonetown/webhooks"
)

// RequestTimeout is the default of [Config.RequestTimeout].
const RequestTimeout = 30 * time.Second

// storeTime is how long storing the response to a request may take after its timeout.
const storeTime = 15 * time.Second

// Config configures a server. Its first part is required.
type Config struct {
	// Database is opened, and its tables are brought up to date.
	Database sqldb.Config
	// MasterKey encrypts secrets in the database. Its others decrypt them as well, and what is
	// encrypted under them is encrypted again ([masterkey.Rotation]).
	MasterKey *seal.Key
	// Mail and Texts send the messages to users.
	Mail  notify.Mailer
	Texts notify.Texter
	// BreachedPasswords is the list of breached passwords; [breached.None] is empty.
	BreachedPasswords breached.List
	// GeoIP locates IP addresses; [geo.None] knows no location.
	GeoIP geo.Locator
	// Outbound sends requests to the addresses that tenants set. It keeps connections, for
	// the receivers of webhooks.
	Outbound *outbound.Client
	// Logger receives errors that are not returned.
	Logger *slog.Logger

	// ControlURL is the address of the control plane; see [controlplane.Config]. Default: there
	// is no control plane.
	ControlURL string
	// OpenOrganizations, Regions and MaxTenants are those of [management.Config].
	OpenOrganizations bool
	Regions           []string
	MaxTenants        int

	// Mailbox shows sent messages on a public page. For development only. Default: there
	// is no such page.
	Mailbox pages.Mailbox
	// Welcome is a public page at / of tenants. For development only. Default: there is no such page.
	Welcome *pages.Welcome

	// ResidentBytes, MappedBytes, GraphFolder and IdleAfter, HistoryRetention and AuditRetention are those of
	// [engine.Config], [sqlstore.Config] and [eventlog.Config].
	ResidentBytes    int64
	MappedBytes      int64
	GraphFolder      string
	IdleAfter        time.Duration
	HistoryRetention time.Duration
	AuditRetention   time.Duration

	// LeaseAddress and Lease are the address and the duration of [leasenode.Config]. What listens
	// at the address serves the Handler of [Server.Leases]. Default: this process holds no read
	// leases.
	LeaseAddress string
	Lease        time.Duration
	// LeaseClock measures the terms of read leases. Default: [readlease.Machine].
	LeaseClock readlease.Clock

	// RateLimits replace the default limits that they name.
	RateLimits ratelimit.Limits
	// RequestTimeout bounds the work on one request. Default: [RequestTimeout].
	RequestTimeout time.Duration
	// MaxRequests, MaxStreams, TenantShare, CallerShare and TrustedProxies are those of
	// [web.Config].
	MaxRequests, MaxStreams  int
	TenantShare, CallerShare int
	TrustedProxies           []netip.Prefix
	// ClientCertHeader is that of [web.Config]. With it, applications can authenticate by certificates.
	ClientCertHeader string

	// SecurityContact is the URI for reports of vulnerabilities (RFC 9116 §2.5.3).
	// Default: none is published.
	SecurityContact string
	// Docs serves the documentation on all hosts.
	Docs bool
	// ServeRegions and ServeTenants limit the tenants that the interface serves, to those of a
	// region or with a slug in the lists. The control plane is always served. Default: all are.
	ServeRegions, ServeTenants []string
	// Dev serves the first tenant on localhost and loopback addresses, and lets applications
	// have redirect URIs with http and a host under .localhost.
	Dev bool
	// AccessLog logs each request at info level instead of debug.
	AccessLog bool
	// Stopping ends the streams of clients. Default: they end with their connections.
	Stopping context.Context

	// Metrics registers the metrics of requests. Default: they are not published.
	Metrics prometheus.Registerer
	// Tracer records traces. Nil records none.
	Tracer *tracing.Tracer

	// Clock returns the time of sign-ins, jobs and idempotency keys. Default: time.Now.
	Clock func() time.Time
	// Pace rounds up the time that answers to wrong passwords take. Default: that of
	// [authn.Config].
	Pace time.Duration
}

// Server is the composed product.
type Server struct {
	DB            *sqldb.DB
	Organizations *controlplane.Directory
	Engine        *engine.Engine
	Leases        *leasenode.Node
	Users         *identity.Directory
	Authn         *authn.Service
	OAuth         *oauth.Service
	SAML          *saml.Service
	Jobs          *jobs.Queue
	Connections   *federation.Registry
	Webhooks      *webhooks.Service
	Incidents     *incident.Registry
	Flows         *flow.Registry
	Threats       *threat.Feeds
	Reports       *reporting.Registry
	Branding      *branding.Registry
	Mails         *mails.Composer
	Management    *management.Service

	BreachedPasswords breached.List
	// API is the configuration of [Server.Handler].
	API api.Config

	keys  *tenantkeys.Store
	store *sqlstore.Store
	loops []func(context.Context)
}

// Migrate brings the tables of a database up to date.
func Migrate(ctx context.Context, db *sqldb.DB) error {
	return db.Migrate(ctx, migrations()...)
}

// Open opens the database and composes the services. It fails with [seal.ErrWrongKey] if the
// secrets in the database were encrypted with another master key, or with the errors of
// [masterkey.Open].
func Open(ctx context.Context, c Config) (_ *Server, err error) {
	if c.MasterKey == nil || c.Mail == nil || c.Texts == nil || c.BreachedPasswords == nil || c.GeoIP == nil || c.Outbound == nil || c.Logger == nil {
		return nil, errors.New("server: Config.MasterKey, Mail, Texts, BreachedPasswords, GeoIP, Outbound and Logger are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = RequestTimeout
	}
	s := &Server{BreachedPasswords: c.BreachedPasswords}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.DB, err = sqldb.Open(ctx, c.Database); err != nil {
		return nil, err
	}
	if err = Migrate(ctx, s.DB); err != nil {
		return nil, err
	}
	if c.MasterKey, err = masterkey.Open(ctx, s.DB, c.MasterKey, c.Clock()); err != nil {
		return nil, err
	}
	if err = s.compose(c); err != nil {
		return nil, err
	}
	if c.ControlURL != "" {
		if err = s.Management.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	return s, s.checkMasterKey(ctx)
}

// compose makes the services, each after those that it needs.
func (s *Server) compose(c Config) (err error) {
	if s.keys, err = tenantkeys.New(c.MasterKey, c.Database); err != nil {
		return err
	}
	sealer := c.MasterKey.WithImported(s.keys)
	events, err := eventlog.Open(eventlog.Config{DB: s.DB, Retention: c.AuditRetention, Logger: c.Logger})
	if err != nil {
		return err
	}
	s.Leases, err = leasenode.New(leasenode.Config{
		Rows: sqlstore.LeaseRows{DB: s.DB}, Key: c.MasterKey.Derive("read leases"), Address: c.LeaseAddress, Lease: c.Lease, Clock: c.LeaseClock, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	s.store, err = sqlstore.New(sqlstore.Config{DB: s.DB, Leases: s.Leases, Retention: c.HistoryRetention, EventFloor: events.Floor, EventRetention: events.Retention(), Logger: c.Logger})
	if err != nil {
		return err
	}
	s.Engine, err = engine.New(engine.Config{
		Store: s.store, ResidentBytes: c.ResidentBytes, MappedBytes: c.MappedBytes, GraphFolder: c.GraphFolder, IdleAfter: c.IdleAfter, Logger: c.Logger,
		Lease: func(tenant string) engine.Lease { return s.Leases.Tenant(tenant) },
	})
	if err != nil {
		return err
	}
	if s.Organizations, err = controlplane.New(controlplane.Config{DB: s.DB, ControlURL: c.ControlURL, Clock: c.Clock, Logger: c.Logger}); err != nil {
		return err
	}
	if s.Branding, err = branding.New(branding.Config{DB: s.DB, Tenants: s.Organizations, Clock: c.Clock}); err != nil {
		return err
	}
	if s.Jobs, err = jobs.New(jobs.Config{DB: s.DB, Seal: sealer, Clock: c.Clock, Logger: c.Logger, Tracer: c.Tracer}); err != nil {
		return err
	}
	limits, err := ratelimit.New(ratelimit.Config{DB: s.DB, Limits: c.RateLimits, Logger: c.Logger})
	if err != nil {
		return err
	}
	keys, err := idempotency.New(idempotency.Config{
		DB: s.DB, Seal: sealer, Clock: c.Clock, Logger: c.Logger,
		Lease: c.RequestTimeout + storeTime, // no request holds its key for longer
	})
	if err != nil {
		return err
	}

	samlKeys := samlkeys.NewStore(samlkeys.Config{DB: s.DB, Seal: sealer, Clock: c.Clock, Logger: c.Logger})

	rights := authority.New(s.Engine, scope.Administrative)
	scopes := scope.NewRegistry(s.DB, s.Engine)
	s.Users, err = identity.New(identity.Config{
		DB: s.DB, Relations: s.Engine, Authority: rights, Scopes: scopes, Breached: c.BreachedPasswords,
		Verification: authn.Verification{Jobs: s.Jobs}, OnDelete: []func(*sqldb.Batch, string, string){s.forgetUser}, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	s.Flows, err = flow.New(flow.Config{
		DB: s.DB, Seal: sealer, Users: s.Users, Authority: rights, Outbound: c.Outbound, Signer: flowSigner{}, MayClaim: client.CanAddClaim, Clock: c.Clock,
	})
	if err != nil {
		return err
	}
	s.Threats = threat.New(threat.Config{DB: s.DB, Jobs: s.Jobs, Outbound: c.Outbound, Changed: s.Users.ThreatFeedsChanged, Clock: c.Clock, Logger: c.Logger})
	s.Mails = mails.New(mails.Config{DB: s.DB, Brandings: s.Branding, Clock: c.Clock})
	control, err := url.Parse(c.ControlURL)
	if err != nil {
		return err
	}
	opened := consoles{server: s, host: control.Hostname()}
	s.Authn, err = authn.New(authn.Config{
		DB: s.DB, Seal: sealer, Users: s.Users, Jobs: s.Jobs, Mail: c.Mail, Texts: c.Texts, Mails: s.Mails, Tenants: tenants{s.Organizations}, Flows: s.Flows, Origins: opened,
		GeoIP: c.GeoIP, Limits: limits, Threats: s.Threats, Clock: c.Clock, Pace: c.Pace, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	s.Incidents = incident.New(incident.Config{DB: s.DB, Users: s.Users, Mail: s.Authn, Jobs: s.Jobs, Clock: c.Clock})
	measured, err := newFederationMetrics(c.Metrics)
	if err != nil {
		return err
	}
	providers, err := relyingparty.New(relyingparty.Config{Client: c.Outbound, Clock: c.Clock, Log: c.Logger, Observe: measured.request})
	if err != nil {
		return err
	}
	s.Connections = federation.NewRegistry(federation.Config{
		DB: s.DB, Seal: sealer, Groups: s.Users, Authority: rights, Scopes: scope.Administrative, Tenants: tenants{s.Organizations}, Jobs: s.Jobs,
		Outbound: c.Outbound, Providers: providers, Clock: c.Clock, Logger: c.Logger,
	})
	signIns := signin.New(signin.Config{
		DB: s.DB, Seal: sealer, Connections: s.Connections, Accounts: s.Authn, Groups: s.Users, Providers: providers,
		Keys: serviceProviderKeys{samlKeys}, Observe: measured.signIn, Clock: c.Clock, Logger: c.Logger,
	})
	s.Authn.UseConnections(signIns)
	accounts := &users{Send: s.DB.Send, Scopes: scopes, Users: s.Users, Sessions: s.Authn}
	s.OAuth, err = oauth.New(oauth.Config{
		DB: s.DB, Seal: sealer, Relations: s.Engine, Authority: rights, Users: accounts,
		Jobs: s.Jobs, Tenants: tenants{s.Organizations}.OAuthTenant, Outbound: c.Outbound, Logger: c.Logger,
		LocalRedirects: c.Dev, Certificates: c.ClientCertHeader != "",
	})
	if err != nil {
		return err
	}
	s.SAML = saml.New(saml.Config{
		DB: s.DB, Seal: sealer, Clients: s.OAuth.Clients, Access: s.OAuth.Access, Users: accounts, Keys: samlKeys, Clock: c.Clock, Logger: c.Logger,
	})
	s.Authn.OnSessionEnd(func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error {
		return s.OAuth.Authorization.SessionEnded(ctx, tx, e.TenantID, e.ID, e.UserID)
	})
	importer, err := userimport.New(userimport.Config{DB: s.DB, Seal: sealer, Users: s.Users, Jobs: s.Jobs, Parse: people.ParseImport, Logger: c.Logger})
	if err != nil {
		return err
	}

	s.Webhooks, err = webhooks.New(webhooks.Config{
		DB: s.DB, Seal: sealer, Log: events, Relations: s.Engine, Tenants: tenants{s.Organizations}, Jobs: s.Jobs,
		Outbound: c.Outbound, Clock: c.Clock, Logger: c.Logger,
	})
	if err != nil {
		return err
	}

	s.Reports = reporting.New(reporting.Config{
		DB: s.DB, Events: events, Engine: s.Engine, People: reportedPeople{s.Users, s.Authn, scopes}, Applications: reportedApplications{s.OAuth.Clients},
		Mail: reportMails{s.Authn}, Inactive: s.Organizations.InactiveTenants, Jobs: s.Jobs, Clock: c.Clock, Logger: c.Logger,
	})

	s.Management, err = management.New(management.Config{
		DB: s.DB, Directory: s.Organizations, Relations: s.Engine, Users: managers{s.Users, s.Authn}, Mail: managers{s.Users, s.Authn}, Consoles: opened,
		Applications: applications{s.OAuth.Clients, s.Users}, Jobs: s.Jobs, Log: events,
		Open: c.OpenOrganizations, Regions: c.Regions, MaxTenants: c.MaxTenants, Clock: c.Clock, Logger: c.Logger,
	})
	if err != nil {
		return err
	}

	s.API = api.Config{
		Engine: audit.Engine{Engine: s.Engine, MayRename: s.mayRename}, Resources: resources.New(s.Engine, s.DB), Assertions: assertions.NewStore(s.DB),
		Users: s.Users, Authn: s.Authn, Importer: importer, Scopes: scopes, OAuth: api.OAuthOf(s.OAuth),
		Settings:          settings.New(s.Organizations, s.Users, s.OAuth.Clients),
		Connections:       s.Connections,
		SignIns:           signIns,
		Webhooks:          s.Webhooks,
		SAMLKeys:          samlKeys,
		SAML:              s.SAML,
		SCIM:              scim.New(s.Users),
		Audit:             &auditlog.Reader{Log: events},
		Incidents:         s.Incidents,
		Flows:             s.Flows,
		Threats:           s.Threats,
		Reports:           s.Reports,
		Branding:          s.Branding,
		Mails:             s.Mails,
		ControlURL:        c.ControlURL,
		Organizations:     s.Management,
		OrganizationNames: s.Organizations,
		CursorKey:         c.MasterKey.Derive("cursors"),
		Mailbox:           c.Mailbox,
		Welcome:           c.Welcome,
		SecurityContact:   c.SecurityContact,
		Docs:              c.Docs,
		GeoIP:             c.GeoIP,
		Config: web.Config{
			Verifier: &verifier{Tokens: s.OAuth.Tokens, Sessions: s.Authn},
			Tenants:  s.Organizations, Idempotency: keys, Limits: limits, Origins: s.OAuth.Clients,
			Timeout: c.RequestTimeout, MaxWorking: c.MaxRequests, MaxStreams: c.MaxStreams,
			TenantShare: c.TenantShare, CallerShare: c.CallerShare, TrustedProxies: c.TrustedProxies, ClientCertHeader: c.ClientCertHeader,
			Serves: c.serves(),
			Dev:    c.Dev, Stopping: c.Stopping,
			Logger: c.Logger, AccessLog: c.AccessLog, Metrics: c.Metrics, Tracer: c.Tracer,
		},
	}
	s.loops = []func(context.Context){
		masterkey.Rotation{DB: s.DB, Key: sealer, Logger: c.Logger}.Run, keys.Run, limits.Run, events.Run, samlKeys.Run, s.Leases.Run, s.store.Run, s.Authn.Run, s.Threats.Run, importer.Run, s.Jobs.Run, s.Connections.Run, signIns.Run, s.Webhooks.Run, s.Reports.Run, s.Organizations.Run, s.Management.Run,
		func(ctx context.Context) { s.OAuth.Run(ctx, c.Logger) },
	}
	return nil
}

// mayRename asks the modules whether their data has a name of the engine that would change.
func (s *Server) mayRename(ctx context.Context, tenantID string, renames []schema.Rename) error {
	return cmp.Or(s.Webhooks.MayRename(ctx, tenantID, renames), s.OAuth.Clients.MayRename(ctx, tenantID, renames))
}

// forgetUser deletes the tokens and grants of a deleted user, and takes the user out of incidents.
// The users are composed before OAuth and incidents, which read them.
func (s *Server) forgetUser(b *sqldb.Batch, tenantID, userID string) {
	s.OAuth.Access.ForgetUser(b, tenantID, userID)
	s.Incidents.ForgetUser(b, tenantID, userID)
}

// checkMasterKey reads a secret of the database, so that a wrong key is found at the start
// rather than at the first token.
func (s *Server) checkMasterKey(ctx context.Context) error {
	tenant, err := s.Organizations.FirstTenant(ctx)
	if errors.Is(err, controlplane.ErrTenantNotFound) {
		return nil
	}
	if err == nil {
		_, err = s.OAuth.Keys.JWKS(ctx, protocol.Tenant{ID: tenant.ID, BaseURL: tenant.BaseURL})
	}
	return err
}

// Handler returns the HTTP interface of all tenants. It registers the metrics of requests,
// and must be called once.
func (s *Server) Handler() (http.Handler, error) { return api.New(s.API) }

// Run runs the background work until ctx ends: jobs, the rotation of keys, and the
// collection of expired rows. Any number of processes may run it on one database.
func (s *Server) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, loop := range s.loops {
		running.Go(func() { loop(ctx) })
	}
	running.Wait()
}

// Close closes what [Open] opened. Run must have returned.
func (s *Server) Close() error {
	if s.Engine != nil {
		s.Engine.Close()
	}
	var errs []error
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.Leases != nil {
		s.Leases.Close()
	}
	if s.keys != nil {
		errs = append(errs, s.keys.Close())
	}
	if s.DB != nil {
		errs = append(errs, s.DB.Close())
	}
	return errors.Join(errs...)
}
