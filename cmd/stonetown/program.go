package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api"
	apiaccount "stonetown/api/account"
	"stonetown/api/pages"
	apipeople "stonetown/api/people"
	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/engine/audit"
	"stonetown/engine/authority"
	"stonetown/engine/resources"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/identity/userimport"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/idempotency"
	"stonetown/internal/outbound"
	"stonetown/internal/outbox"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/internal/tracing"
	"stonetown/oauth"
	"stonetown/oauth/authorization"
	"stonetown/oauth/scope"
	"stonetown/settings"
	"stonetown/tuplestore/sqlstore"
)

// Program is the server. Open it, Serve, Close it; tests do the same.
type Program struct {
	config Config
	out    io.Writer // for the person who started it
	log    *slog.Logger

	admin  *admin
	listen net.Listener
	server *http.Server

	tracer   *tracing.Tracer // nil without trace_url
	modules  *modules
	store    *sqlstore.Store
	engine   *engine.Engine
	oauth    *oauth.Service
	mailbox  pages.Mailbox // nil but in development
	geoIP    geo.Locator
	breached breached.List

	// What goes on by itself, streams and collections, ends with running.
	running context.Context
	stop    context.CancelFunc
	loops   sync.WaitGroup
}

func newProgram(config Config, out io.Writer, log *slog.Logger) *Program {
	p := &Program{config: config, out: out, log: log, breached: breached.None{}, geoIP: geo.None{}}
	p.running, p.stop = context.WithCancel(context.Background())
	return p
}

// Limits of a connection. They keep one that sends or reads nothing from being
// held for ever; how long the work on a request may take is Config.RequestTimeout.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	transferTime      = 30 * time.Second // to send a body or take an answer
	storeTime         = 15 * time.Second // to store an answer, before it is sent
	maxHeaderBytes    = 32 << 10         // a token of 16 KiB of scopes, and the rest
)

// Open starts everything up to, and without, accepting requests. Close must be
// called even if it fails. After it, Addr and AdminAddr are known and
// connections wait.
func (p *Program) Open(ctx context.Context) error {
	p.log.InfoContext(ctx, "starting", slog.String("version", version()), slog.Any("config", p.config))

	registry := prometheus.NewRegistry()
	var err error
	// First of all, so that an orchestrator sees a process that is alive and not
	// ready while tables are brought up to date.
	if p.admin, err = listenAdmin(p.config.AdminListen, registry, p.log); err != nil {
		return err
	}
	if p.listen, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.config.Listen); err != nil {
		return err
	}
	if p.config.TraceURL != "" {
		p.tracer, err = tracing.New(tracing.Config{URL: p.config.TraceURL, Sample: p.config.TraceSample, Version: version(), Logger: p.log})
		if err != nil {
			return err
		}
	}
	if p.modules, err = openModules(ctx, p.config); err != nil {
		return err
	}
	if p.store, err = sqlstore.New(sqlstore.Config{DB: p.modules.db, Retention: p.config.HistoryRetention, Logger: p.log}); err != nil {
		return err
	}
	p.engine, err = engine.New(engine.Config{
		Store: p.store, ResidentBytes: p.config.ResidentMemoryMiB << 20, Logger: p.log,
	})
	if err != nil {
		return err
	}
	if p.config.BreachedPasswordsURL != "" {
		list, err := breached.New(breached.Config{URL: p.config.BreachedPasswordsURL})
		if err != nil {
			return err
		}
		p.breached = list
	}
	rights := authority.New(p.engine, scope.Administrative)
	jobs, err := outbox.New(outbox.Config{DB: p.modules.db, Seal: p.modules.key, Logger: p.log, Tracer: p.tracer})
	if err != nil {
		return err
	}
	scopes := scope.NewRegistry(p.modules.db, p.engine)
	people, err := identity.New(identity.Config{
		DB: p.modules.db, Relations: p.engine, Authority: rights, Breached: p.breached, Logger: p.log,
		Scopes: scopes, Verification: authn.Verification{Outbox: jobs},
		OnDelete: []func(*sqldb.Batch, string, string){func(b *sqldb.Batch, tenantID, userID string) { p.oauth.Access.ForgetUser(b, tenantID, userID) }},
	})
	if err != nil {
		return err
	}
	keys, limits, err := p.kit()
	if err != nil {
		return err
	}
	mail, texts, mailbox, err := openNotify(p.config)
	p.mailbox = mailbox
	if err != nil {
		return err
	}
	if p.config.GeoFile != "" {
		database, err := geo.Open(p.config.GeoFile)
		if err != nil {
			return err
		}
		p.geoIP = database
	}
	signIns, err := authn.New(authn.Config{
		DB: p.modules.db, Seal: p.modules.key, Users: people, Outbox: jobs, Mail: mail, Texts: texts, Tenants: senders{p.modules.tenants},
		GeoIP: p.geoIP, Limits: limits, Logger: p.log,
	})
	if err != nil {
		return err
	}
	if p.config.AllowInsecureTargets {
		p.log.WarnContext(ctx, "allow_insecure_targets is set: tenants can have any address fetched that this machine reaches; not for production")
	}
	p.oauth, err = oauth.New(oauth.Config{
		DB: p.modules.db, Seal: p.modules.key, Relations: p.engine, Authority: rights, Users: &apiaccount.People{Users: people, Sessions: signIns},
		Outbox: jobs, Tenants: senders{p.modules.tenants}.OAuthTenant,
		Outbound: outbound.New(outbound.Config{AllowInsecure: p.config.AllowInsecureTargets}), Logger: p.log,
	})
	if err != nil {
		return err
	}
	signIns.Handle(authorization.LogoutJob, p.oauth.Authorization.SendLogout)
	signIns.OnSessionEnd(func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error {
		return p.oauth.Authorization.SessionEnded(ctx, tx, e.TenantID, e.ID, e.UserID)
	})
	importer, err := userimport.New(userimport.Config{DB: p.modules.db, Seal: p.modules.key, Users: people, Parse: apipeople.ParseImport, Logger: p.log})
	if err != nil {
		return err
	}
	handler, err := api.New(api.Config{
		Engine: audit.Engine{Engine: p.engine}, Resources: resources.New(p.engine, p.modules.db),
		Users: people, Authn: signIns, Importer: importer, Scopes: scopes, OAuth: api.OAuthOf(p.oauth),
		Settings:        settings.New(p.modules.tenants, people, p.oauth.Clients),
		CursorKey:       p.modules.key.Derive("cursors"),
		Mailbox:         mailbox,
		SecurityContact: p.config.SecurityContact,
		GeoIP:           p.geoIP,
		Config: web.Config{
			Tenants: p.modules.tenants,
			Logger:  p.log, Metrics: registry, AccessLog: p.config.AccessLog, Tracer: p.tracer,
			Timeout:        p.config.RequestTimeout,
			MaxWorking:     p.config.MaxRequests,
			MaxStreams:     p.config.MaxStreams,
			TenantShare:    p.config.TenantShare,
			CallerShare:    p.config.CallerShare,
			TrustedProxies: p.config.TrustedProxies,
			Idempotency:    keys,
			Limits:         limits,
			Origins:        p.oauth.Clients,
			Stopping:       p.running,
			Dev:            p.config.Dev,
		},
	})
	if err != nil {
		return err
	}
	registerMetrics(registry, p.modules.db, p.engine, p.breached)
	p.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout + transferTime,
		WriteTimeout:      p.config.RequestTimeout + transferTime,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// OPTIONS * is a request like others.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	log, err := eventlog.Open(eventlog.Config{DB: p.modules.db, Retention: p.config.AuditRetention, Logger: p.log})
	if err != nil {
		return err
	}
	p.server.RegisterOnShutdown(p.stop)
	tokens := func(ctx context.Context) { p.oauth.Run(ctx, p.log) }
	for _, loop := range []func(context.Context){keys.Run, limits.Run, tokens, log.Run, p.store.Run, importer.Run, signIns.Run} {
		p.loops.Go(func() { loop(p.running) })
	}
	if p.config.Dev {
		return p.beginDevelopment(ctx, people)
	}
	first, err := p.modules.tenants.FirstTenant(ctx)
	if errors.Is(err, controlplane.ErrTenantNotFound) {
		p.log.WarnContext(ctx, "the database has no tenant; create one with stonetown bootstrap")
		return nil
	}
	if err != nil {
		return err
	}
	return p.beginTenant(ctx, people, first.ID)
}

// beginTenant writes the relations that a tenant made by bootstrap begins with, unless they
// are there.
func (p *Program) beginTenant(ctx context.Context, people *identity.Directory, tenantID string) error {
	if err := people.Administrators(ctx, tenantID, scope.Builtin); err != nil {
		return err
	}
	return p.oauth.Clients.HoldScopes(ctx, tenantID)
}

// kit opens what requests of all kinds go through.
func (p *Program) kit() (*idempotency.Store, *ratelimit.Limiter, error) {
	own, err := ratelimit.ParseLimits(p.config.RateLimits)
	if err != nil {
		return nil, nil, err
	}
	limits, err := ratelimit.New(ratelimit.Config{DB: p.modules.db, Limits: own, Logger: p.log})
	if err != nil {
		return nil, nil, err
	}
	keys, err := idempotency.New(idempotency.Config{
		DB: p.modules.db, Seal: p.modules.key, Logger: p.log,
		Lease: p.config.RequestTimeout + storeTime, // no request holds its key for longer
	})
	return keys, limits, err
}

func (p *Program) beginDevelopment(ctx context.Context, people *identity.Directory) error {
	_, port, err := net.SplitHostPort(p.Addr())
	if err != nil {
		return err
	}
	file := p.config.bootstrapFile()
	c, err := p.modules.beginDevelopment(ctx, devBeginning(port), file)
	if err != nil {
		return err
	}
	if err := p.beginTenant(ctx, people, c.TenantID); err != nil {
		return err
	}
	return printWalk(p.out, c, p.AdminAddr(), file)
}

// Addr is the address that tenants are served on.
func (p *Program) Addr() string { return p.listen.Addr().String() }

// AdminAddr is the address of health, metrics and profiles.
func (p *Program) AdminAddr() string { return p.admin.listen.Addr().String() }

// Serve accepts requests until ctx ends, and then finishes those under way: it
// reports itself not ready, waits for load balancers to notice, stops accepting,
// and gives the rest Config.DrainTimeout.
func (p *Program) Serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- p.server.Serve(web.Listen(p.listen)) }()
	p.admin.ready(p.modules.db)
	p.log.InfoContext(ctx, "ready", slog.String("addr", p.Addr()), slog.String("admin_addr", p.AdminAddr()))

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	p.admin.drain()
	p.log.Info("draining")
	select {
	case err := <-failed:
		return err
	case <-time.After(p.config.DrainDelay):
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.config.DrainTimeout)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("requests were still in progress %v after the server began to stop", p.config.DrainTimeout)
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Close ends what Open started, the last first. It may be called after any
// failure, and more than once.
func (p *Program) Close() error {
	var errs []error
	if p.server != nil {
		errs = append(errs, p.server.Close())
	}
	if p.listen != nil {
		if err := p.listen.Close(); !errors.Is(err, net.ErrClosed) { // the server closes it too
			errs = append(errs, err)
		}
	}
	p.stop()
	p.loops.Wait()
	if p.engine != nil {
		p.engine.Close()
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	errs = append(errs, p.geoIP.Close())
	p.breached.Close()
	if p.modules != nil {
		errs = append(errs, p.modules.close())
	}
	p.tracer.Close()
	if p.admin != nil {
		errs = append(errs, p.admin.close())
	}
	p.admin, p.listen, p.server, p.tracer, p.modules, p.store, p.engine, p.geoIP, p.breached = nil, nil, nil, nil, nil, nil, nil, geo.None{}, breached.None{}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.log.Info("stopped")
	return nil
}
