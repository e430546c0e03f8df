package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stonetown/controlplane"
	"stonetown/identity/password/breached"
	"stonetown/internal/geo"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/scope"
	"stonetown/server"
	"stonetown/tuplestore"
)

// deployment is a database with tenants, and a server process on it.
type deployment struct {
	binary, dir string
	db          database
	drop        func() error // deletes the database
	tenants     []*hosted
	creation    latencies

	process       *exec.Cmd // nil: it does not run
	served, admin string    // base URLs, the same for all processes
	client        *http.Client
}

// hosted is a tenant of a deployment, with an application.
type hosted struct {
	host, id               string
	clientID, clientSecret string
	folder                 tuplestore.Object // that some users may view
	accessToken            string            // of the application; empty: it has none yet
}

const (
	hostedDepth   = 3
	hostedViewers = 5
)

// create creates a tenant with an application. Its latency is that of the creation of a tenant.
func (d *deployment) create(ctx context.Context, s *server.Server, orgID string, n int) (*hosted, error) {
	t := &hosted{host: fmt.Sprintf("t%d.example.com", n), folder: tenantFolder(n, 0, hostedDepth)}
	began := time.Now()
	err := s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		tenant, err := s.Organizations.CreateTenant(ctx, tx, controlplane.NewTenant{
			OrgID: orgID, Slug: fmt.Sprintf("t%d", n), Name: fmt.Sprintf("Tenant %d", n), BaseURL: "https://" + t.host,
		})
		if err != nil {
			return err
		}
		app, secret, err := s.OAuth.Clients.CreateIn(ctx, tx, tenant.ID, client.Application{
			Name: "bench", Type: client.Machine, AllowedScopes: scope.Builtin,
		})
		t.id, t.clientID, t.clientSecret = tenant.ID, app.ClientID, secret
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.OAuth.Clients.HoldScopes(ctx, t.id); err != nil {
		return nil, err
	}
	d.creation.add(time.Since(began))
	return t, nil
}

// fill creates the database with tenants, each with an application, a chain of folders and users
// who may view them.
func (d *deployment) fill(ctx context.Context, n int) (err error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	key, err := seal.OpenKeyFile(d.keyFile())
	if err != nil {
		return err
	}
	s, err := server.Open(ctx, server.Config{
		Database: sqldb.Config{URL: d.db.url}, MasterKey: key, Mail: notify.None{}, Texts: notify.None{},
		BreachedPasswords: breached.None{}, GeoIP: geo.None{}, Outbound: outbound.New(outbound.Config{}),
		Logger: slog.New(slog.DiscardHandler), ResidentBytes: -1,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var org controlplane.Organization
	err = s.DB.Tx(ctx, func(tx *sqldb.Tx) (err error) {
		org, err = s.Organizations.CreateOrganization(ctx, tx, "bench", "Bench")
		return err
	})
	if err != nil {
		return err
	}
	d.creation = newLatencies()
	for i := range n {
		t, err := d.create(ctx, s, org.ID, i)
		if err != nil {
			return err
		}
		d.tenants = append(d.tenants, t)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * loaders)
	for i, t := range d.tenants {
		group.Go(func() error {
			in := &InProcess{Engine: s.Engine, Tenant: t.id}
			if err := in.Define(ctx, drive()); err != nil {
				return err
			}
			var tuples []tuplestore.Tuple
			for level := range hostedDepth {
				tuples = append(tuples, tuplestore.Tuple{
					Object: tenantFolder(i, 0, level+1), Relation: "parent", Subject: asSubject(tenantFolder(i, 0, level), ""),
				})
			}
			for u := range hostedViewers {
				tuples = append(tuples, tuplestore.Tuple{Object: tenantFolder(i, 0, 0), Relation: "viewer", Subject: user(u)})
			}
			return in.Write(ctx, tuples)
		})
	}
	return group.Wait()
}

func (d *deployment) keyFile() string { return filepath.Join(d.dir, "master.key") }

// restart ends the server, if it runs, and starts it with optional arguments. It returns the time
// until it is ready.
func (d *deployment) restart(ctx context.Context, more ...string) (ready time.Duration, err error) {
	d.stop()
	if d.served == "" {
		served, admin, err := FreeAddresses()
		if err != nil {
			return 0, err
		}
		d.served, d.admin = "http://"+served, "http://"+admin
		d.client = newClient(2 * callersAtOnce)
	}
	args := append([]string{
		"serve", "--data-dir", d.dir, "--database-url", d.db.url, "--master-key-file", d.keyFile(),
		"--listen", strings.TrimPrefix(d.served, "http://"), "--admin-listen", strings.TrimPrefix(d.admin, "http://"), "--rate-limits", "token.ip=unlimited,token.caller=unlimited,client.caller=unlimited,authz.caller=unlimited",
	}, more...)
	product := exec.CommandContext(ctx, d.binary, args...)
	log, err := os.Create(filepath.Join(d.dir, "server.log"))
	if err != nil {
		return 0, err
	}
	product.Stderr = log
	began := time.Now()
	if err := errors.Join(product.Start(), log.Close()); err != nil {
		return 0, fmt.Errorf("start the server: %w", err)
	}
	d.process = product
	for deadline := began.Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		var answer bytes.Buffer
		err := d.get(ctx, "/readyz", &answer)
		if err == nil {
			return time.Since(began), nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return 0, fmt.Errorf("the server did not start: %w", err)
		}
	}
}

// FreeAddresses returns two addresses on which no process listens.
func FreeAddresses() (a, b string, err error) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", errors.Join(err, first.Close())
	}
	return first.Addr().String(), second.Addr().String(), errors.Join(first.Close(), second.Close())
}

func (d *deployment) stop() {
	if d.process != nil {
		StopProcess(d.process)
		d.client.CloseIdleConnections()
		d.process = nil
	}
}

func (d *deployment) close() error {
	d.stop()
	return d.drop()
}

// get reads a path of the listener for operators.
func (d *deployment) get(ctx context.Context, path string, answer *bytes.Buffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.admin+path, nil)
	if err != nil {
		return err
	}
	return (&HTTP{client: d.client}).do(req, answer)
}

// heap returns the memory of the server that is in use, in bytes, after garbage collections.
func (d *deployment) heap(ctx context.Context) (float64, error) {
	for range 2 { // the second frees what finalizers and pools held
		if err := d.get(ctx, "/debug/pprof/heap?gc=1", new(bytes.Buffer)); err != nil {
			return 0, err
		}
	}
	return d.metric(ctx, "go_memstats_heap_alloc_bytes")
}

// metric reads a metric without labels.
func (d *deployment) metric(ctx context.Context, name string) (float64, error) {
	var metrics bytes.Buffer
	if err := d.get(ctx, "/metrics", &metrics); err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(&metrics); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// awaitIdle waits until no tenant is in the memory of the server.
func (d *deployment) awaitIdle(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		n, err := d.metric(ctx, "stonetown_engine_resident_bytes")
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%.0f bytes of tenants are still in memory", n)
		}
	}
}

// visit makes a token of each tenant and one check with it.
func (d *deployment) visit(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requestsAtOnce)
	for _, t := range d.tenants {
		group.Go(func() error { return errors.Join(d.token(t)(ctx), d.check(t)(ctx)) })
	}
	return group.Wait()
}

// token returns a call that requests a token of a tenant.
func (d *deployment) token(t *hosted) func(context.Context) error {
	form := url.Values{"grant_type": {"client_credentials"}}.Encode()
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.served+tokenPath, strings.NewReader(form))
		if err != nil {
			return err
		}
		req.Host, req.Header = t.host, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		req.SetBasicAuth(t.clientID, t.clientSecret)
		var answer bytes.Buffer
		if err := (&HTTP{client: d.client}).do(req, &answer); err != nil || t.accessToken != "" {
			return err
		}
		var made struct {
			AccessToken string `json:"access_token"`
		}
		err = json.Unmarshal(answer.Bytes(), &made)
		t.accessToken = made.AccessToken
		return err
	}
}

// check returns a call that asks whether a user may view a folder of a tenant, with the token of
// its application.
func (d *deployment) check(t *hosted) func(context.Context) error {
	return func(ctx context.Context) error {
		u := rand.IntN(2 * hostedViewers)
		return d.ask(ctx, t, &Question{user(u), t.folder, "view", u < hostedViewers})
	}
}

// ask sends a check and compares the answer.
func (d *deployment) ask(ctx context.Context, t *hosted, q *Question) error {
	subject := wireOf(q.Subject)
	var answer bytes.Buffer
	if err := d.send(ctx, t, http.MethodPost, "check", wireCheck{&subject, q.Action, wireResource{q.Resource.Type, q.Resource.ID}}, &answer); err != nil {
		return err
	}
	var allowed [1]bool
	if err := decisions(answer.Bytes(), allowed[:]); err != nil {
		return err
	}
	if allowed[0] != q.Allowed {
		return wrong(q, allowed[0])
	}
	return nil
}

// send sends a request about resources of a tenant.
func (d *deployment) send(ctx context.Context, t *hosted, method, path string, body any, answer *bytes.Buffer) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, d.served+"/api/v1/resources/"+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	req.Host, req.Header = t.host, http.Header{"Authorization": {"Bearer " + t.accessToken}, "Content-Type": {"application/json"}}
	return (&HTTP{client: d.client}).do(req, answer)
}
