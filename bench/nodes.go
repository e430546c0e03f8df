package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"stonetown/internal/netline"
	"stonetown/tuplestore"
)

// nodes are the processes of one deployment of [Cluster], with its callers.
type nodes struct {
	ClusterRow
	base *deployment // has the database and the tenants
	line *netline.Line
	list []*deployment // a process each
	args [][]string

	tolerant      bool // requests may fail
	failed, wrong atomic.Int64
	mu            sync.Mutex
	written       latencies
}

func (d *nodes) String() string { return fmt.Sprintf("%s, %s", d.name(), d.Database) }

// open creates the database and starts the processes. All of them have all tenants in memory then.
func (d *nodes) open(ctx context.Context, c Cluster, dir string) (err error) {
	d.written = newLatencies()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	url, drop := "sqlite://"+filepath.Join(dir, "cluster.db"), func() error { return nil }
	if d.Database != "SQLite" {
		if url, drop, err = createDatabase(ctx, c.PostgresURL); err != nil {
			return fmt.Errorf("create a database: %w", err)
		}
	}
	d.base = &deployment{binary: c.Binary, dir: filepath.Join(dir, "base"), db: database{name: d.Database, url: url}, drop: drop}
	if err := d.base.fill(ctx, c.Tenants); err != nil {
		return fmt.Errorf("create tenants: %w", err)
	}
	key, err := os.ReadFile(d.base.keyFile())
	if err != nil {
		return err
	}
	if d.Database != "SQLite" {
		if d.line, url, err = netline.Postgres(url, d.Latency); err != nil {
			return err
		}
	}
	for i := range d.Processes {
		n := &deployment{binary: c.Binary, dir: filepath.Join(dir, fmt.Sprint(i)), db: database{url: url}, tenants: d.base.tenants}
		if err := errors.Join(os.Mkdir(n.dir, 0o700), os.WriteFile(n.keyFile(), key, 0o600)); err != nil {
			return err
		}
		var args []string
		if d.Leases {
			listen, _, err := FreeAddresses()
			if err != nil {
				return err
			}
			args = []string{"--lease-listen", listen}
		}
		d.list, d.args = append(d.list, n), append(d.args, args)
		if _, err := n.restart(ctx, args...); err != nil {
			return err
		}
	}
	if err := d.list[0].visit(ctx); err != nil {
		return err
	}
	return d.warm(ctx)
}

// warm asks each process about each tenant, often enough for leases.
func (d *nodes) warm(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callersAtOnce)
	for _, n := range d.list {
		for _, t := range d.base.tenants {
			group.Go(func() error {
				for range 20 {
					if err := n.check(t)(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return group.Wait()
}

func (d *nodes) close() (err error) {
	for _, n := range d.list {
		n.stop()
	}
	if d.line != nil {
		err = d.line.Close()
	}
	if d.base != nil {
		err = errors.Join(err, d.base.close())
	}
	return err
}

// use is what a deployment has used so far.
type use struct {
	roundTrips int
	seconds    float64 // of processors
}

func (d *nodes) use(ctx context.Context) (u use, err error) {
	if d.line != nil {
		u.roundTrips = d.line.RoundTrips()
	}
	for _, n := range d.list {
		seconds, err := n.metric(ctx, "process_cpu_seconds_total")
		if err != nil {
			return u, err
		}
		u.seconds += seconds
	}
	return u, nil
}

// divide divides what was used since then by the number of checks.
func (d *nodes) divide(ctx context.Context, before use) error {
	now, err := d.use(ctx)
	checks := float64(max(1, d.Many.Calls))
	d.RoundTrips = 1000 * float64(now.roundTrips-before.roundTrips) / checks
	d.Processor = time.Duration((now.seconds - before.seconds) / checks * float64(time.Second))
	return err
}

// meter returns the meter of checks, beside writes at a rate.
func (d *nodes) meter(callers int, writes float64) *meter {
	m := newMeter(Figure{Target: d.String(), Measure: "check", Workers: callers, PerCall: 1}, d.checking)
	if writes > 0 {
		w := Figure{Target: d.String(), Measure: "write, and a check of it", Workers: callersAtOnce, Rate: writes, PerCall: 1}
		m.beside = append(m.beside, newMeter(w, d.writing))
	}
	return m
}

// caller draws tenants, and sends requests to the processes in turn or, with affinity, to the one
// of the tenant.
type caller struct {
	*nodes
	draw *rand.Zipf
	turn int
}

func (d *nodes) caller(seed, worker int) *caller {
	r := rand.New(rand.NewPCG(uint64(seed), uint64(worker)))
	return &caller{d, rand.NewZipf(r, zipfExponent, 1, uint64(len(d.base.tenants)-1)), worker}
}

// node returns the process for a request about a tenant.
func (c *caller) node(tenant int) *deployment {
	if c.Affine {
		return c.list[rendezvous(c.base.tenants[tenant].host, len(c.list))]
	}
	c.turn++
	return c.list[c.turn%len(c.list)]
}

var rendezvousSeed = maphash.MakeSeed()

// rendezvous returns which of n processes has the highest hash with a host, as proxies choose it.
func rendezvous(host string, n int) (chosen int) {
	var highest uint64
	for i := range n {
		if h := maphash.Comparable(rendezvousSeed, struct {
			host string
			i    int
		}{host, i}); h >= highest {
			chosen, highest = i, h
		}
	}
	return chosen
}

// note counts what went wrong, and returns what must end the run.
func (c *caller) note(err error) error {
	switch {
	case errors.Is(err, errWrong):
		c.wrong.Add(1)
	case err != nil && c.tolerant:
		c.failed.Add(1)
	default:
		return err
	}
	return nil
}

// checking returns the checks of a caller. Where requests may fail, it tries the next process, as a
// proxy does, until all have failed.
func (d *nodes) checking(worker int) func(context.Context) error {
	c := d.caller(1, worker)
	return func(ctx context.Context) error {
		tenant := int(c.draw.Uint64())
		n := c.node(tenant)
		err := n.check(c.base.tenants[tenant])(ctx)
		for i := 1; err != nil && !errors.Is(err, errWrong) && c.tolerant && i < len(c.list); i++ {
			n = c.list[(slices.Index(c.list, n)+1)%len(c.list)]
			err = n.check(c.base.tenants[tenant])(ctx)
		}
		return c.note(err)
	}
}

// writing makes users of its own viewers of the topmost folders, and removes them again. Another
// process has to answer accordingly.
func (d *nodes) writing(worker int) func(context.Context) error {
	c := d.caller(2, worker)
	subject := tuplestore.Subject{Type: "user", ID: fmt.Sprint("writer", worker)}
	related := map[int]bool{}
	return func(ctx context.Context) error {
		tenant := int(c.draw.Uint64())
		t, folder := c.base.tenants[tenant], tenantFolder(tenant, 0, 0)
		method := http.MethodPost
		if related[tenant] {
			method = http.MethodDelete
		}
		began := time.Now()
		err := c.node(tenant).send(ctx, t, method, "folder/"+folder.ID+"/relations", map[string]any{"subject": wireOf(subject), "relation": "viewer"}, new(bytes.Buffer))
		took := time.Since(began)
		if err != nil { // whether it was written is unknown, and is settled by the next one
			delete(related, tenant)
			return c.note(err)
		}
		c.mu.Lock()
		c.written.add(took)
		c.mu.Unlock()
		related[tenant] = !related[tenant]
		return c.note(c.node(tenant).ask(ctx, t, &Question{subject, t.folder, "view", related[tenant]}))
	}
}

// inject injects faults until ctx ends.
func (d *nodes) inject(ctx context.Context, fault string) error {
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(faultEvery):
		}
		n := d.list[i%len(d.list)]
		switch fault {
		case "kill":
			if err := n.process.Process.Kill(); err != nil {
				return err
			}
			_ = n.process.Wait() // the error says that it was killed
			n.process = nil
			if _, err := n.restart(context.WithoutCancel(ctx), d.args[i%len(d.list)]...); err != nil {
				return err
			}
		case "stop":
			if err := n.process.Process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			time.Sleep(stopTime)
			if err := n.process.Process.Signal(syscall.SIGCONT); err != nil {
				return err
			}
		}
	}
}
