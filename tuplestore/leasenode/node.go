// Package leasenode is a process that takes part in the protocol of read leases (package
// readlease, docs/leases.md): it registers and renews, acquires tenants that are often asked about,
// and exchanges messages with other processes.
//
// A [Node] without an address holds no leases and only sends the messages of writers.
package leasenode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
)

// The limits of [Config.Lease].
const (
	DefaultLease = time.Second
	MinLease     = 100 * time.Millisecond
	MaxLease     = 10 * time.Second
)

const (
	// worthwhile is how many checks a lease has to save between two writes. A tenant is acquired
	// after as many reads that have found nothing new.
	worthwhile = 16
	// acquisitions is how many are in progress at once; each takes a connection.
	acquisitions = 2
	// maxBackoff bounds the time before a node that was struck out registers again.
	maxBackoff = 5 * time.Minute
	cleanEvery = 10 * time.Minute
)

// Config configures a node.
type Config struct {
	Rows sqlstore.LeaseRows // required
	// Key authenticates messages. All processes have the same. Required.
	Key []byte
	// Address is the host:port at which other processes reach [Node.Handler]. Default: this
	// process holds no leases.
	Address string
	// Lease is the longest time that this process can delay a write. Default: [DefaultLease].
	Lease time.Duration
	// Clock measures terms. Default: [readlease.Machine].
	Clock readlease.Clock
	// Logger gets the errors of background work. Default: discarded.
	Logger *slog.Logger
}

// Node is a process. It is safe for concurrent use.
type Node struct {
	Config
	durations readlease.Durations
	client    *http.Client
	term      atomic.Pointer[readlease.Term]
	tenants   sync.Map // string -> *Lease
	slots     chan struct{}
	attempts  atomic.Uint64
	work      sync.WaitGroup // acquisitions
	releases  sync.WaitGroup // messages
	stats     stats

	background context.Context // ends with Run
	stop       context.CancelFunc
}

type stats struct{ answered, acquired, revoked, struckOut atomic.Int64 }

// Stats counts the work of a node since its start.
type Stats struct {
	Answered  int64 // questions that needed no read of the database
	Acquired  int64 // leases
	Revoked   int64 // revocations that were answered
	StruckOut int64 // how often the registration was ended by a writer
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	return Stats{n.stats.answered.Load(), n.stats.acquired.Load(), n.stats.revoked.Load(), n.stats.struckOut.Load()}
}

// New returns a node. Run makes it hold leases.
func New(c Config) (*Node, error) {
	if c.Rows.DB == nil || len(c.Key) == 0 {
		return nil, errors.New("leasenode: Config.Rows and Key are required")
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Lease < MinLease || c.Lease > MaxLease {
		return nil, fmt.Errorf("leasenode: Config.Lease is %v; it must be from %v to %v", c.Lease, MinLease, MaxLease)
	}
	if c.Clock == nil {
		c.Clock = readlease.Machine{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		Config: c, durations: readlease.Durations{Lease: c.Lease}, slots: make(chan struct{}, acquisitions),
		client: &http.Client{Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: MaxLease}).DialContext, MaxIdleConnsPerHost: 16, IdleConnTimeout: 5 * time.Minute,
		}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	n.term.Store(new(readlease.Term))
	n.background, n.stop = context.WithCancel(context.Background())
	return n, nil
}

// Close waits for messages. It follows the end of Run and of all writes.
func (n *Node) Close() {
	n.releases.Wait()
	n.client.CloseIdleConnections()
}

// Run registers the node and renews its leases until ctx ends. Then it gives them up.
func (n *Node) Run(ctx context.Context) {
	if n.Address == "" {
		return
	}
	var before readlease.NodeID // a registration whose row may exist
	defer func() { n.leave(before) }()
	backoff := n.Lease
	cleaned := n.Clock.Now()
	for ctx.Err() == nil {
		node := readlease.NodeID(rand.Text())
		n.giveUp()
		sent := n.Clock.Now()
		timeout, cancel := context.WithTimeout(ctx, n.Lease)
		err := n.Rows.Register(timeout, sqlstore.Holder{Node: node, Address: n.Address, Lease: n.Lease}, before)
		cancel()
		before = node
		if err != nil {
			if ctx.Err() == nil {
				n.Logger.Warn("no read leases", "error", err)
			}
			n.pause(ctx, n.Lease)
			continue
		}
		n.setTerm(n.durations.Renewed(node, sent))
		registered := sent
		for n.renew(ctx, node) {
			if now := n.Clock.Now(); now > cleaned.Add(cleanEvery) {
				cleaned = now
				if err := n.Rows.Clean(ctx); err != nil && ctx.Err() == nil {
					n.Logger.Warn("read leases that have ended are not deleted", "error", err)
				}
			}
		}
		if ctx.Err() != nil {
			return
		}
		n.giveUp()
		n.stats.struckOut.Add(1)
		if backoff *= 2; n.Clock.Now() > registered.Add(2*maxBackoff) {
			backoff = n.Lease
		}
		backoff = min(backoff, maxBackoff)
		n.Logger.Warn("did not answer a writer in time; no read leases for now", "retry_after", backoff)
		n.pause(ctx, backoff)
	}
}

// renew waits and renews. It returns false if the node was struck out, or ctx has ended.
func (n *Node) renew(ctx context.Context, node readlease.NodeID) bool {
	n.pause(ctx, n.durations.RenewEvery())
	if ctx.Err() != nil {
		return false
	}
	sent := n.Clock.Now()
	timeout, cancel := context.WithTimeout(ctx, n.Lease)
	defer cancel()
	found, err := n.Rows.Renew(timeout, node)
	if err != nil {
		if ctx.Err() == nil {
			n.Logger.Warn("read leases are not renewed", "error", err)
		}
		return ctx.Err() == nil
	}
	if found {
		n.setTerm(n.durations.Renewed(node, sent))
	}
	return found
}

func (n *Node) setTerm(t readlease.Term) { n.term.Store(&t) }

// giveUp ends the registration in this process, and with it all it holds.
func (n *Node) giveUp() {
	n.setTerm(readlease.Term{})
	n.tenants.Range(func(_, l any) bool {
		l.(*Lease).Forget()
		return true
	})
}

// leave gives everything up and deletes the row, so that no writer waits.
func (n *Node) leave(node readlease.NodeID) {
	n.giveUp()
	n.stop()
	n.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), n.Lease)
	defer cancel()
	if err := n.Rows.Leave(ctx, node); err != nil {
		n.Logger.Warn("the read leases of this process end by themselves", "error", err)
	}
}

func (n *Node) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-n.Clock.After(d):
	}
}
