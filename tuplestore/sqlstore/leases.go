package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/readlease"
)

// Revoker sends the messages of writers to the holders of read leases (package readlease).
type Revoker interface {
	// Revoke tells a node of a revocation, and returns whether it holds the tenant. An error means
	// that the node has not answered.
	Revoke(ctx context.Context, to Holder, tenant string, id readlease.RevocationID) (held bool, err error)
	// Release tells a node that the outcome of a revocation is known, and of a visible revision. It
	// does not wait for the node.
	Release(to Holder, tenant string, id readlease.RevocationID, newest tuplestore.Revision)
}

// Holder is a node that may hold a tenant.
type Holder struct {
	Node    readlease.NodeID
	Address string
	Lease   time.Duration
}

// LeaseRows are the rows of read leases in a database.
type LeaseRows struct{ DB *sqldb.DB }

// Register inserts the row of a node, and deletes that of an earlier registration of the same
// process, which holds nothing any more.
func (l LeaseRows) Register(ctx context.Context, node Holder, before readlease.NodeID) error {
	err := l.DB.ReadCommitted(ctx, func(*sqldb.Batch) {}, func(b *sqldb.Batch) {
		b.Queue(`DELETE FROM lease_nodes WHERE node_id = $1`, []any{string(before)}, nil)
		b.Queue(`INSERT INTO lease_nodes (node_id, address, lease, renewals) VALUES ($1, $2, $3, 0)`,
			[]any{string(node.Node), node.Address, node.Lease.Microseconds()}, nil)
	})
	if err != nil {
		return fmt.Errorf("register for read leases: %w", err)
	}
	return nil
}

// Renew renews a registration. It reports whether there is one.
func (l LeaseRows) Renew(ctx context.Context, node readlease.NodeID) (found bool, err error) {
	n, err := l.DB.Exec(ctx, `UPDATE lease_nodes SET renewals = renewals + 1 WHERE node_id = $1`, string(node))
	if err != nil {
		return false, fmt.Errorf("renew read leases: %w", err)
	}
	return n > 0, nil
}

// Leave deletes the row of a node that holds nothing any more, and rows without a node.
func (l LeaseRows) Leave(ctx context.Context, node readlease.NodeID) error {
	err := l.DB.ReadCommitted(ctx, func(*sqldb.Batch) {}, func(b *sqldb.Batch) {
		b.Queue(`DELETE FROM lease_nodes WHERE node_id = $1`, []any{string(node)}, nil)
	})
	if err != nil {
		return fmt.Errorf("end read leases: %w", err)
	}
	return l.Clean(ctx)
}

// Clean deletes the rows of tenants whose node has none.
func (l LeaseRows) Clean(ctx context.Context) error {
	_, err := l.DB.Exec(ctx, `DELETE FROM tenant_leases WHERE node_id NOT IN (SELECT node_id FROM lease_nodes)`)
	if err != nil {
		return fmt.Errorf("delete read leases that have ended: %w", err)
	}
	return nil
}

// Acquire adds a node to the holders of a tenant, and returns the head. It excludes the writers of
// the tenant, because it locks the head as they do. A tenant without a head cannot be held: ok is
// false.
func (l LeaseRows) Acquire(ctx context.Context, tenant string, node readlease.NodeID) (head tuplestore.Head, ok bool, err error) {
	err = l.DB.ReadCommitted(ctx, func(*sqldb.Batch) {}, func(b *sqldb.Batch) {
		ok = false
		b.Queue(`UPDATE tenant_heads SET rev = rev WHERE tenant_id = $1 RETURNING epoch, rev, schema_rev`, []any{tenant}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				ok = true
				if err := rows.Scan(&head.Epoch, &head.Revision, &head.SchemaRevision); err != nil {
					return err
				}
			}
			return nil
		})
		b.Queue(`INSERT INTO tenant_leases (tenant_id, node_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, []any{tenant, string(node)}, nil)
	})
	if err != nil {
		return head, false, fmt.Errorf("acquire the read lease of tenant %s: %w", tenant, err)
	}
	return head, ok, nil
}

// readHolders reads the nodes that may hold the tenant, after the lock on the head.
func (a *attempt) readHolders(b *sqldb.Batch) {
	if a.store.onlyWriter() {
		return // it knows all revisions
	}
	b.Queue(`SELECT n.node_id, n.address, n.lease FROM tenant_leases AS l JOIN lease_nodes AS n ON n.node_id = l.node_id WHERE l.tenant_id = $1`,
		[]any{a.tenant}, func(rows *sqldb.Rows) error {
			a.holders = nil
			for rows.Next() {
				var node, address string
				var lease int64
				if err := rows.Scan(&node, &address, &lease); err != nil {
					return err
				}
				a.holders = append(a.holders, Holder{readlease.NodeID(node), address, time.Duration(lease) * time.Microsecond})
			}
			return nil
		})
}

// revocations are those of all attempts of a group, until they are released.
type revocations struct {
	store  *Store
	tenant string
	list   []revoked
}

type revoked struct {
	id readlease.RevocationID
	to Holder
}

// release tells the holders that the outcomes of all attempts are known.
func (r *revocations) release(newest tuplestore.Revision) {
	for _, revoked := range r.list {
		r.store.Leases.Release(revoked.to, r.tenant, revoked.id, newest)
	}
	r.list = nil
}

// revoke returns when no process answers from the revisions before the commit. Processes that do
// not answer are struck out, in this transaction.
func (a *attempt) revoke(told *revocations) error {
	if len(a.holders) == 0 {
		return nil
	}
	var longest time.Duration
	nodes := make(map[readlease.NodeID]Holder, len(a.holders))
	var ids []readlease.NodeID
	for _, h := range a.holders {
		longest = max(longest, h.Lease)
		nodes[h.Node] = h
		ids = append(ids, h.Node)
	}
	durations := readlease.Durations{Lease: longest}
	id := readlease.RevocationID(rand.Text())
	r := readlease.NewRevocation(durations, a.store.LeaseClock.Now(), ids)
	type answer struct {
		node readlease.NodeID
		held bool
		err  error
	}
	answers := make(chan answer, len(a.holders))
	note := func(got answer) {
		if got.err != nil {
			r.Failed(got.node)
			return
		}
		r.Answered(got.node, got.held)
		if got.held {
			told.list = append(told.list, revoked{id, nodes[got.node]})
		}
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithTimeout(a.ctx, durations.Patience())
	defer cancel()
	for _, h := range a.holders {
		if a.store.Leases == nil {
			r.Failed(h.Node)
			continue
		}
		asking.Go(func() {
			held, err := a.store.Leases.Revoke(ctx, h, a.tenant, id)
			answers <- answer{h.Node, held, err}
		})
	}
	for {
		for len(answers) > 0 {
			note(<-answers)
		}
		step := r.Next(a.store.LeaseClock.Now())
		switch {
		case step.Commit:
			a.notHeld = r.NotHeld()
			return nil
		case len(step.StrikeOut) > 0:
			if err := a.strikeOut(r, step.StrikeOut); err != nil {
				return err
			}
			continue
		}
		select {
		case got := <-answers:
			note(got)
		case <-a.store.LeaseClock.After(time.Duration(step.Until - a.store.LeaseClock.Now())):
		case <-a.ctx.Done():
			return a.ctx.Err()
		}
	}
}

// strikeOut deletes the rows of nodes. Those cannot renew from here on, and the deletion is visible
// with the write, when their leases have ended.
func (a *attempt) strikeOut(r *readlease.Revocation, nodes []readlease.NodeID) error {
	a.store.Logger.Warn("processes with read leases did not answer; their leases end", "tenant", a.tenant, "nodes", joined(nodes))
	for _, node := range nodes {
		found, err := a.tx.Exec(a.ctx, `DELETE FROM lease_nodes WHERE node_id = $1`, string(node))
		if err != nil {
			return err
		}
		r.Struck(node, found > 0, a.store.LeaseClock.Now())
	}
	return nil
}

func joined(nodes []readlease.NodeID) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = string(node)
	}
	return strings.Join(texts, " ")
}
