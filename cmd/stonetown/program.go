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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api/pages"
	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/identity/password/breached"
	"stonetown/internal/geo"
	"stonetown/internal/ratelimit"
	"stonetown/internal/tracing"
	"stonetown/internal/tracing/otlp"
	"stonetown/server"
)

// Program is a running server with its listeners. Call Open, Serve and Close.
type Program struct {
	config Config
	out    io.Writer // for the user who started it
	log    *slog.Logger

	admin  *admin
	listen net.Listener
	leases *leaseListener // nil without lease_listen
	http   *http.Server
	server *server.Server

	welcome  *pages.Welcome  // nil without dev
	tracer   *tracing.Tracer // nil without trace_url
	geoIP    geo.Locator
	breached breached.List

	draining atomic.Bool

	// Background work and streams end with running.
	running    context.Context
	stop       context.CancelFunc
	background sync.WaitGroup
}

func newProgram(config Config, out io.Writer, log *slog.Logger) *Program {
	p := &Program{config: config, out: out, log: log, geoIP: geo.None{}, breached: breached.None{}}
	p.running, p.stop = context.WithCancel(context.Background())
	return p
}

// Limits of a connection, so that a client that sends or reads nothing cannot hold it for
// ever. Config.RequestTimeout bounds the work on a request.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	transferTime      = 30 * time.Second // for a request body, and for a response
	maxHeaderBytes    = 32 << 10         // a token with 16 KiB of scopes, and other headers
)

// Open starts everything except accepting requests. Close must be called even if it fails.
// After it, Addr and AdminAddr are known, and connections are queued.
func (p *Program) Open(ctx context.Context) error {
	p.log.InfoContext(ctx, "starting", slog.String("version", version()), slog.Any("config", p.config))

	registry := prometheus.NewRegistry()
	var err error
	// The listener for operators is first, so that an orchestrator finds a process that is
	// alive, but not ready, during migrations.
	if p.admin, err = listenAdmin(p.config.AdminListen, registry, p.log); err != nil {
		return err
	}
	if p.listen, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.config.Listen); err != nil {
		return err
	}
	if p.leases, err = listenLeases(ctx, p.config); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(p.Addr())
	if err != nil {
		return err
	}
	development := developmentOptions(port)
	if p.config.Dev && p.config.ControlURL == "" {
		p.config.ControlURL = development.ControlURL
	}
	development.ControlURL = p.config.ControlURL
	if p.config.Dev {
		if p.welcome, err = p.welcomePage(development); err != nil {
			return err
		}
	}
	if err := p.openServer(ctx, registry); err != nil {
		return err
	}
	handler, err := p.server.Handler()
	if err != nil {
		return err
	}
	registerMetrics(registry, p.server)
	if p.leases != nil {
		p.leases.serve(p.server.Leases, p.log)
	}
	p.http = &http.Server{
		Handler:           p.closeWhileDraining(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout + transferTime,
		WriteTimeout:      p.config.RequestTimeout + transferTime,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// OPTIONS * is a request like others.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	p.http.RegisterOnShutdown(p.stop)
	p.background.Go(func() { p.server.Run(p.running) })
	if p.config.Dev {
		return p.prepareDevelopment(ctx, development)
	}
	first, err := p.server.Organizations.FirstTenant(ctx)
	if errors.Is(err, controlplane.ErrTenantNotFound) {
		p.log.WarnContext(ctx, "the database has no tenant; create one with stonetown bootstrap")
		return nil
	}
	if err != nil {
		return err
	}
	return p.prepareTenant(ctx, first)
}

// openServer composes the server of the configuration.
func (p *Program) openServer(ctx context.Context, metrics prometheus.Registerer) error {
	config, err := serverConfig(p.config, p.log)
	if err != nil {
		return err
	}
	if p.config.TraceURL != "" {
		p.tracer, err = otlp.New(otlp.Config{URL: p.config.TraceURL, Sample: p.config.TraceSample, Version: version(), Logger: p.log})
		if err != nil {
			return err
		}
	}
	if p.config.BreachedPasswordsURL != "" {
		list, err := breached.New(breached.Config{URL: p.config.BreachedPasswordsURL})
		if err != nil {
			return err
		}
		p.breached = list
	}
	if p.config.GeoFile != "" {
		database, err := geo.Open(p.config.GeoFile)
		if err != nil {
			return err
		}
		p.geoIP = database
	}
	if config.Mail, config.Texts, config.Mailbox, err = openNotify(p.config); err != nil {
		return err
	}
	if config.RateLimits, err = ratelimit.ParseLimits(p.config.RateLimits); err != nil {
		return err
	}
	if p.config.AllowInsecureTargets {
		p.log.WarnContext(ctx, "allow_insecure_targets is set: tenants can send requests to any address that this machine reaches; not for production")
	}
	if p.config.GraphDir != noGraphDir {
		config.GraphFolder = p.config.GraphDir
	}
	if p.leases != nil {
		config.LeaseAddress = p.leases.address
	}
	config.BreachedPasswords, config.GeoIP = p.breached, p.geoIP
	config.Stopping, config.Welcome = p.running, p.welcome
	config.Metrics, config.Tracer = metrics, p.tracer
	p.server, err = openServer(ctx, p.config, config)
	return err
}

// prepareTenant finishes a tenant that bootstrap left, and gives its organisation an owner, unless it
// has one.
func (p *Program) prepareTenant(ctx context.Context, t controlplane.Tenant) error {
	if t.State == controlplane.TenantProvisioning {
		if _, err := p.server.Management.Provision(ctx, t.ID); err != nil {
			return err
		}
	}
	if p.config.ControlURL == "" {
		return nil
	}
	return p.server.Management.Adopt(ctx, t.OrgID)
}

// prepareDevelopment prepares the tenant of a development server, and prints the quickstart.
func (p *Program) prepareDevelopment(ctx context.Context, o bootstrapOptions) error {
	file := p.config.bootstrapFile()
	c, err := bootstrapDevelopment(ctx, p.server, o, file)
	if err != nil {
		return err
	}
	first, err := p.server.Organizations.FirstTenant(ctx)
	if err == nil {
		err = p.prepareTenant(ctx, first)
	}
	if err != nil {
		return err
	}
	return printQuickstart(p.out, c, p.AdminAddr(), file)
}

// Addr returns the address on which tenants are served.
func (p *Program) Addr() string { return p.listen.Addr().String() }

// AdminAddr returns the address of health, metrics and profiles.
func (p *Program) AdminAddr() string { return p.admin.listen.Addr().String() }

// Serve accepts requests until ctx ends. It then reports that the program is not ready, waits
// for Config.DrainDelay so that load balancers notice, stops accepting, and gives requests in
// progress Config.DrainTimeout.
func (p *Program) Serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- p.http.Serve(web.Listen(p.listen)) }()
	p.admin.ready(p.server.DB)
	p.log.InfoContext(ctx, "ready", slog.String("addr", p.Addr()), slog.String("admin_addr", p.AdminAddr()))

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	p.admin.drain()
	p.draining.Store(true)
	p.log.Info("draining")
	select {
	case err := <-failed:
		return err
	case <-time.After(p.config.DrainDelay):
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.config.DrainTimeout)
	defer cancel()
	err := p.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("requests were still in progress %v after the server began to stop", p.config.DrainTimeout)
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// closeWhileDraining ends each connection with its next response while the program drains. A
// client or proxy that keeps one would otherwise send a request on it just as Shutdown closes it.
func (p *Program) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Close ends in reverse order what Open started. It may be called after any failure, and more
// than once.
func (p *Program) Close() error {
	var errs []error
	if p.http != nil {
		errs = append(errs, p.http.Close())
	}
	if p.listen != nil {
		if err := p.listen.Close(); !errors.Is(err, net.ErrClosed) { // Server.Close closes it too
			errs = append(errs, err)
		}
	}
	p.stop()
	p.background.Wait()
	if p.server != nil {
		errs = append(errs, p.server.Close())
	}
	if p.leases != nil {
		errs = append(errs, p.leases.close())
	}
	errs = append(errs, p.geoIP.Close())
	p.breached.Close()
	p.tracer.Close()
	if p.admin != nil {
		errs = append(errs, p.admin.close())
	}
	p.admin, p.listen, p.leases, p.http, p.server, p.tracer, p.geoIP, p.breached = nil, nil, nil, nil, nil, nil, geo.None{}, breached.None{}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.log.Info("stopped")
	return nil
}
