// Command stonetown-bench measures Stonetown: in process, and over HTTP against a
// server that it starts from the product's own binary, with an echo server as the
// floor. Every answer is compared with the workload's oracle.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stonetown/bench"
	"stonetown/engine"
	"stonetown/internal/netline"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func main() {
	server := flag.String("server", "bin/stonetown", "the stonetown binary to start; empty measures in process only")
	here := flag.String("in-process", "*", "the workloads measured in process: patterns of names, separated by commas")
	over := flag.String("http", "docs", "the workloads measured over HTTP")
	out := flag.String("out", "bench.json", "where to write the figures as JSON; empty for nowhere")
	page := flag.String("html", "", "where to write the figures as a page; empty for nowhere")
	duration := flag.Duration("duration", 3*time.Second, "how long each figure is measured")
	fairness := flag.Bool("fairness", false, "measure one tenant's checks while another tenant does its worst, and nothing else")
	tenants := flag.Int("tenants", 0, "measure a deployment with so many tenants beside one with a single tenant, and nothing else")
	cluster := flag.String("cluster", "", "measure so many processes on one PostgreSQL, numbers separated by commas, with read leases and without, and nothing else")
	latency := flag.String("latency", "2ms", "for -cluster: the time to the database and back, durations separated by commas; for -line: one")
	clusterTenants := flag.Int("cluster-tenants", 100, "for -cluster: the number of tenants")
	writes := flag.Float64("writes", 10, "for -cluster: writes per second beside the checks")
	faults := flag.String("faults", "", "for -cluster: measure also while processes fail: kill, stop, or both, separated by a comma")
	webhooks := flag.String("webhooks", "", "measure these parts of webhooks and nothing else: patterns of idle, rate, throughput, hanging, pending and writes, separated by commas")
	postgres := flag.String("postgres", os.Getenv("STONETOWN_TEST_POSTGRES_URL"), "the PostgreSQL server on which webhooks and tenants are measured as well, and clusters; the default is set by internal/pgtest/withpg")
	profile := flag.String("cpuprofile", "", "where to write a CPU profile of the measurement of webhooks; empty for nowhere")
	misuse := flag.String("misuse", "", "misuse the server that is named on standard input in this way and do nothing else")
	line := flag.String("line", "", "put a PostgreSQL server at this URL -latency away for other programs, print the URL for them, and do nothing else")
	echoOn := flag.String("echo", "", "serve as the echo floor on this address and do nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *echoOn != "":
		err = serveEcho(*echoOn)
	case *line != "":
		err = serveLine(ctx, *line, *latency)
	case *misuse != "":
		err = bench.Misuse(ctx, *misuse, os.Stdin, os.Stdout)
	case *fairness:
		err = measureFairness(ctx, *server, *duration)
	case *tenants > 1:
		err = measureTenants(ctx, bench.ManyTenants{Binary: *server, PostgresURL: *postgres, Tenants: *tenants, Duration: *duration, Progress: progress})
	case *cluster != "":
		err = measureCluster(ctx, *cluster, *latency, *faults, bench.Cluster{Binary: *server, PostgresURL: *postgres, Tenants: *clusterTenants, Writes: *writes, Duration: *duration, Progress: progress})
	case *webhooks != "":
		err = measureWebhooks(ctx, bench.Webhooks{PostgresURL: *postgres, Measures: *webhooks, Duration: *duration, Progress: progress}, *profile)
	default:
		err = run(ctx, *server, *here, *over, *out, *page, *duration)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stonetown-bench:", err)
		os.Exit(1)
	}
}

// serveEcho prints its address for the parent process.
func serveEcho(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return bench.ServeEcho(l)
}

// serveLine forwards connections to a PostgreSQL server until the context ends.
func serveLine(ctx context.Context, url, latency string) error {
	d, err := parseLatency(latency)
	if err != nil {
		return err
	}
	l, url, err := netline.Postgres(url, d)
	if err != nil {
		return err
	}
	fmt.Println(url)
	<-ctx.Done()
	return l.Close()
}

func parseLatency(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Second {
		return 0, fmt.Errorf("-latency: %q is not a duration from 0 to 1s", text)
	}
	return d, nil
}

func measureFairness(ctx context.Context, server string, duration time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "stonetown-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rows, err := bench.Fairness{Binary: server, Dir: dir, Duration: duration, Progress: progress}.Run(ctx)
	if err != nil {
		return err
	}
	return bench.WriteFairness(os.Stdout, rows)
}

func measureTenants(ctx context.Context, m bench.ManyTenants) (err error) {
	if m.Dir, err = os.MkdirTemp("", "stonetown-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.Dir)) }()
	rows, err := m.Run(ctx)
	if err != nil {
		return err
	}
	return m.WriteTable(os.Stdout, rows)
}

func measureCluster(ctx context.Context, processes, latencies, faults string, c bench.Cluster) (err error) {
	for text := range strings.SplitSeq(processes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 16 {
			return fmt.Errorf("-cluster: %q is not a number from 1 to 16", text)
		}
		c.Processes = append(c.Processes, n)
	}
	for text := range strings.SplitSeq(latencies, ",") {
		d, err := parseLatency(text)
		if err != nil {
			return err
		}
		c.Latencies = append(c.Latencies, d)
	}
	if faults != "" {
		c.Faults = strings.Split(faults, ",")
	}
	if c.Dir, err = os.MkdirTemp("", "stonetown-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Dir)) }()
	rows, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if err := c.WriteTable(os.Stdout, rows); err != nil {
		return err
	}
	if n := bench.ClusterWrong(rows); n > 0 {
		return fmt.Errorf("wrong answers: %d", n)
	}
	return nil
}

func measureWebhooks(ctx context.Context, w bench.Webhooks, profile string) (err error) {
	if w.Dir, err = os.MkdirTemp("", "stonetown-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.Dir)) }()
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return errors.Join(err, f.Close())
		}
		defer func() {
			pprof.StopCPUProfile()
			_ = f.Close()
		}()
	}
	ballast := make([]byte, 256<<20) // as in the product, so that the garbage collector runs as often
	rows, err := w.Run(ctx)
	runtime.KeepAlive(ballast)
	if err != nil {
		return err
	}
	return bench.WriteWebhooks(os.Stdout, rows)
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func run(ctx context.Context, server, inProcessNames, httpNames, out, page string, duration time.Duration) (err error) {
	here, err := bench.Choose(inProcessNames)
	if err != nil {
		return err
	}
	over, err := bench.Choose(httpNames)
	if err != nil {
		return err
	}
	args, err := bench.ServerArgs(over)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stonetown-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := bench.Options{Duration: duration, Progress: progress}
	o.Workloads = here
	report, err := inProcess(ctx, dir, o)
	if err != nil {
		return err
	}
	if server != "" {
		o.Workloads = over
		over, err := overHTTP(ctx, server, args, dir, o)
		if err != nil {
			return err
		}
		report.Figures = append(report.Figures, over.Figures...)
	}
	if err := report.WriteTable(os.Stdout); err != nil {
		return err
	}
	if page != "" {
		if err := report.WriteHTML(page); err != nil {
			return err
		}
	}
	if out == "" {
		return nil
	}
	return report.WriteJSON(out)
}

// inProcess measures an engine on an embedded database of its own, with a tenant for each
// workload.
func inProcess(ctx context.Context, dir string, o bench.Options) (report *bench.Report, err error) {
	db, err := sqldb.Open(ctx, sqldb.Config{URL: "sqlite://" + filepath.Join(dir, "inprocess.db")})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx, sqlstore.Migrations()); err != nil {
		return nil, err
	}
	store, err := sqlstore.New(sqlstore.Config{DB: db})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	e, err := engine.New(engine.Config{Store: store})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	tenants := 0
	o.InProcess = func() *bench.InProcess {
		tenants++
		return &bench.InProcess{Engine: e, Store: store, Tenant: fmt.Sprintf("tnt_bench%d", tenants)}
	}
	return bench.Run(ctx, o)
}

// overHTTP starts the echo and the product as separate processes and measures both.
func overHTTP(ctx context.Context, server string, args []string, dir string, o bench.Options) (report *bench.Report, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	echo := exec.CommandContext(ctx, self, "-echo", "127.0.0.1:0")
	address, err := echo.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := echo.Start(); err != nil {
		return nil, err
	}
	defer bench.StopProcess(echo)
	var echoAddress string
	if _, err := fmt.Fscanln(address, &echoAddress); err != nil {
		return nil, fmt.Errorf("start echo: %w", err)
	}
	o.EchoURL = "http://" + echoAddress
	target, stop, err := bench.Start(ctx, server, dir, args...)
	if err != nil {
		return nil, err
	}
	defer stop()
	o.HTTP = target
	return bench.Run(ctx, o)
}
