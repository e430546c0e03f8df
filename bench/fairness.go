package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

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
)

// Fairness measures the checks of one tenant while another tenant misuses the same server,
// in one way after the other, and between these the same checks while the other tenant is
// idle. The rate of checks is modest, because the clients of both tenants share the machine
// with the server. The misusing clients are a process of their own at the lowest priority,
// so that their computation does not count as unfairness of the server.
type Fairness struct {
	Binary   string // the product's
	Dir      string // the folder for data
	Duration time.Duration
	Progress func(format string, args ...any)
}

const (
	fairnessWorkers = 4
	fairnessRate    = 200 // checks a second
)

// FairnessRow has the latencies of the checks during one misuse of the other tenant.
type FairnessRow struct {
	Figure
	Greedy string `json:"greedy"` // the misuse
	// ToIdle is the ratio of p99 to that while the other tenant was idle.
	ToIdle  float64        `json:"to_idle"`
	Answers map[int]uint64 `json:"answers"` // to the other tenant, by status
}

// Run takes the measurements.
func (f Fairness) Run(ctx context.Context) (rows []FairnessRow, err error) {
	modest, greedy, stop, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	w := Chain(10)
	if err := modest.Define(ctx, w.Types()); err != nil {
		return nil, err
	}
	if _, err := load(ctx, modest, w, func(int) {}); err != nil {
		return nil, err
	}
	if err := greedy.prepareWorst(ctx); err != nil {
		return nil, err
	}
	if err := modest.Warm(ctx, w); err != nil {
		return nil, err
	}
	measure := func(what string) (FairnessRow, error) {
		m := checking(modest, w, fairnessWorkers, func(f *Figure) { f.Rate = fairnessRate })
		if err := m.run(ctx, f.Duration); err != nil {
			return FairnessRow{}, err
		}
		return FairnessRow{Figure: m.result(), Greedy: what, ToIdle: 1}, nil
	}
	for _, what := range misuses {
		f.Progress("checks while another tenant does nothing, and then: %s", what)
		idle, err := measure("nothing")
		if err != nil {
			return nil, err
		}
		end, err := greedy.misuse(ctx, what)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		busy, err := measure(what)
		answers, misuseErr := end()
		if err := errors.Join(err, misuseErr); err != nil {
			return nil, err
		}
		busy.Answers, busy.ToIdle = answers, busy.P99/idle.P99
		rows = append(rows, idle, busy)
		time.Sleep(time.Second) // the server's remaining work must not count for the next measurement
	}
	return rows, nil
}

// WriteFairness writes the rows as a table.
func WriteFairness(w io.Writer, rows []FairnessRow) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| another tenant's | p50 | p99 | p99 to idle | answers to the other tenant |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.2f ms | %.2f ms | %.1f | %s |\n", r.Greedy, r.P50/1000, r.P99/1000, r.ToIdle, strings.TrimPrefix(fmt.Sprint(r.Answers), "map"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// start starts a server with two tenants.
func (f Fairness) start(ctx context.Context) (modest, greedy *HTTP, stop func(), err error) {
	// The credentials that the first start writes name its address.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, nil, nil, err
	}
	_, stop, err = Start(ctx, f.Binary, f.Dir, "--listen", address)
	if err != nil {
		return nil, nil, nil, err
	}
	stop()
	id, secret, err := addTenant(ctx, filepath.Join(f.Dir, "data"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("add a tenant: %w", err)
	}
	modest, stop, err = Start(ctx, f.Binary, f.Dir, "--listen", address, "--rate-limits", "sign-in.ip=unlimited,admin.caller=unlimited,admin.ip=unlimited")
	if err != nil {
		return nil, nil, nil, err
	}
	at, err := url.Parse(modest.BaseURL)
	if err == nil {
		greedy, err = Dial(ctx, "http://greedy.localhost:"+at.Port(), id, secret, 2*greedyClients)
	}
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return modest, greedy, stop, nil
}

// addTenant adds a second tenant with an application to the data of a server that is not
// running.
func addTenant(ctx context.Context, data string) (clientID, secret string, err error) {
	key, err := seal.ReadKeyFile(filepath.Join(data, "master.key"))
	if err != nil {
		return "", "", err
	}
	s, err := server.Open(ctx, server.Config{
		Database: sqldb.Config{URL: "sqlite://" + filepath.Join(data, "stonetown.db")}, MasterKey: key,
		Mail: notify.None{}, Texts: notify.None{}, BreachedPasswords: breached.None{}, GeoIP: geo.None{},
		Outbound: outbound.New(outbound.Config{}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	first, err := s.Organizations.FirstTenant(ctx)
	if err != nil {
		return "", "", err
	}
	err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		tenant, err := s.Organizations.CreateTenant(ctx, tx, controlplane.NewTenant{
			OrgID: first.OrgID, Slug: "greedy", Name: "greedy", BaseURL: "http://greedy.localhost",
		})
		if err != nil {
			return err
		}
		app, given, err := s.OAuth.Clients.CreateIn(ctx, tx, tenant.ID, client.Application{
			Name: "greedy", Type: client.Machine, AllowedScopes: scope.Builtin,
		})
		clientID, secret = app.ClientID, given
		return err
	})
	return clientID, secret, err
}
