package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

// admin is the listener for operators:
//
//	/healthz       200 while the process is alive
//	/readyz        200 while it can serve: tables up to date, database reachable,
//	               not stopping
//	/metrics       Prometheus
//	/debug/pprof/  profiles
type admin struct {
	listen net.Listener
	server *http.Server
	served chan struct{} // closed after the server has stopped
	state  atomic.Pointer[readiness]
}

// readiness is the reason why the server is not ready, or the database to query.
type readiness struct {
	reason string
	db     *sqldb.DB
}

// readyTimeout bounds a query of the database.
const readyTimeout = 2 * time.Second

func listenAdmin(addr string, registry *prometheus.Registry, log *slog.Logger) (*admin, error) {
	listen, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	a := &admin{listen: listen, served: make(chan struct{})}
	a.state.Store(&readiness{reason: "starting"})

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", a.serveReady)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)

	// There is no write timeout, because the client chooses the duration of a profile.
	a.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(a.served)
		if err := a.server.Serve(listen); !errors.Is(err, http.ErrServerClosed) {
			log.Error("admin listener ended", slog.Any("error", err))
		}
	}()
	return a, nil
}

// ready reports the server as ready while db answers.
func (a *admin) ready(db *sqldb.DB) { a.state.Store(&readiness{db: db}) }

// drain reports that the server is stopping.
func (a *admin) drain() { a.state.Store(&readiness{reason: "draining"}) }

func (a *admin) serveReady(w http.ResponseWriter, r *http.Request) {
	state := a.state.Load()
	reason := state.reason
	if state.db != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		var one int
		if err := state.db.QueryRow(ctx, `SELECT 1`).Scan(&one); err != nil {
			reason = "the database does not respond"
		}
	}
	if reason != "" {
		http.Error(w, reason, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

func (a *admin) close() error {
	err := a.server.Close()
	<-a.served
	return err
}

// registerMetrics publishes the counters of the packages.
func registerMetrics(registry *prometheus.Registry, s *server.Server) {
	counter := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "stonetown_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	loads := func(outcome string, value func(engine.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "stonetown_engine_loads_total", Help: "Attempts to load a tenant into memory.", ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(value(s.Engine.Stats())) })
	}
	parts := func(outcome string, value func(engine.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "stonetown_engine_part_lookups_total", Help: "Lookups of parts of tenants that are not in memory.", ConstLabels: prometheus.Labels{"outcome": outcome},
		}, func() float64 { return float64(value(s.Engine.Stats())) })
	}
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
		counter("checks_total", "Permission checks answered.", func() int64 { return s.Engine.Stats().Checks }),
		counter("engine_cold_reads_total", "Snapshot reads for tenants that are not in memory.", func() int64 { return s.Engine.Stats().ColdReads }),
		counter("engine_tail_reads_total", "Reads of the changelog that made answers current.", func() int64 { return s.Engine.Stats().TailReads }),
		counter("lease_answers_total", "Requests answered without a read of the database, under a read lease.", func() int64 { return s.Leases.Stats().Answered }),
		counter("lease_acquisitions_total", "Read leases acquired.", func() int64 { return s.Leases.Stats().Acquired }),
		counter("lease_revocations_total", "Revocations of read leases that this process has answered.", func() int64 { return s.Leases.Stats().Revoked }),
		counter("lease_strikes_total", "How often all read leases ended because this process did not answer a writer.", func() int64 { return s.Leases.Stats().StruckOut }),
		loads("loaded", func(s engine.Stats) int64 { return s.Loads }),
		loads("restored", func(s engine.Stats) int64 { return s.LoadsRestored }),
		loads("too_large", func(s engine.Stats) int64 { return s.LoadsTooLarge }),
		loads("failed", func(s engine.Stats) int64 { return s.LoadsFailed }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stonetown_engine_resident_bytes", Help: "Estimated memory of the tenants in memory.",
		}, func() float64 { return float64(s.Engine.Stats().ResidentBytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stonetown_engine_mapped_bytes", Help: "Size of the mapped files of tenants that do not fit into memory.",
		}, func() float64 { return float64(s.Engine.Stats().MappedBytes) }),
		parts("hit", func(s engine.Stats) int64 { return s.PartHits }),
		parts("miss", func(s engine.Stats) int64 { return s.PartMisses }),
		counter("engine_part_evictions_total", "Parts that gave place to others.", func() int64 { return s.Engine.Stats().PartEvictions }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stonetown_engine_part_bytes", Help: "Estimated memory of the parts of tenants that are not in memory.",
		}, func() float64 { return float64(s.Engine.Stats().PartBytes) }),
		counter("breached_password_questions_total", "Queries to the service for breached passwords.", func() int64 { return s.BreachedPasswords.Stats().Lookups }),
		counter("breached_password_failures_total", "Queries to the service for breached passwords that failed.", func() int64 { return s.BreachedPasswords.Stats().Failures }),
		counter("jobs_done_total", "Background jobs that succeeded.", func() int64 { return s.Jobs.Stats().Done }),
		counter("job_failures_total", "Attempts at background jobs that failed.", func() int64 { return s.Jobs.Stats().Failed }),
		counter("jobs_dead_total", "Background jobs that failed in all their attempts.", func() int64 { return s.Jobs.Stats().Dead }),
		webhookMetrics{s.Webhooks},
		counter("database_statements_total", "SQL statements run.", func() int64 { return s.DB.Stats().Statements }),
		counter("database_round_trips_total", "Round trips to a database server.", func() int64 { return s.DB.Stats().RoundTrips }),
	)
}
