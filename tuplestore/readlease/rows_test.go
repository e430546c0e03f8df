package readlease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// rows notes what happens to the rows of the protocol in a real database.
type rows struct {
	t  *testing.T
	db *sqldb.DB

	mu           sync.Mutex
	writes       []write
	strikes      map[string]strike // by node; of transactions that were committed
	absences     []absence
	acquisitions []acquisition
	renewals     []renewal
}

type (
	// write is a committed write, with the holders that its transaction read.
	write struct {
		tenant, revision int
		holders          []string
		read             time.Time // the holders had been read
	}
	// strike is the deletion of the row of a node.
	strike struct {
		tenant, revision int
		deleted          time.Time // the deletion had ended
		committing       time.Time // COMMIT had not been sent
	}
	// absence is a deletion that found no row.
	absence struct {
		node string
		at   time.Time
	}
	acquisition struct {
		node          string
		tenant, floor int
	}
	// renewal is one that found the row.
	renewal struct {
		node string
		sent time.Time
	}
)

func (r *rows) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// write runs the transaction of a writer, and strikes out some nodes.
func (r *rows) write(ctx context.Context, tenant int, random *rand.Rand) error {
	w := write{tenant: tenant}
	b := new(sqldb.Batch)
	b.Queue(`UPDATE tenant_heads SET rev = rev WHERE tenant_id = $1 RETURNING rev`, []any{fmt.Sprint(tenant)}, func(rows *sqldb.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&w.revision); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	b.Queue(`SELECT l.node_id FROM tenant_leases AS l JOIN lease_nodes AS n ON n.node_id = l.node_id WHERE l.tenant_id = $1 ORDER BY l.node_id`,
		[]any{fmt.Sprint(tenant)}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				var node string
				if err := rows.Scan(&node); err != nil {
					return err
				}
				w.holders = append(w.holders, node)
			}
			return rows.Err()
		})
	tx, err := r.db.Pipeline(ctx, b)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	w.read = time.Now()
	var struck []string
	var deleted time.Time
	for _, node := range w.holders {
		if random.IntN(4) > 0 {
			continue
		}
		found, err := tx.Exec(ctx, `DELETE FROM lease_nodes WHERE node_id = $1`, node)
		if err != nil {
			return err
		}
		deleted = time.Now()
		if found == 0 {
			r.note(func() { r.absences = append(r.absences, absence{node, deleted}) })
			continue
		}
		struck = append(struck, node)
	}
	time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
	if random.IntN(3) == 0 {
		return nil // rolls back
	}
	w.revision++
	committing := time.Now()
	r.note(func() { // before the commit, because others can see its effects before it returns
		r.writes = append(r.writes, w)
		for _, node := range struck {
			r.strikes[node] = strike{tenant, w.revision, deleted, committing}
		}
	})
	b = new(sqldb.Batch)
	b.Queue(`UPDATE tenant_heads SET rev = $2 WHERE tenant_id = $1`, []any{fmt.Sprint(tenant), w.revision}, nil)
	return tx.Commit(ctx, b)
}

// hold registers a node, acquires tenants and renews until the row of the node is gone.
func (r *rows) hold(ctx context.Context, node readlease.NodeID, random *rand.Rand) error {
	leases := sqlstore.LeaseRows{DB: r.db}
	if err := leases.Register(ctx, sqlstore.Holder{Node: node, Address: "localhost", Lease: time.Second}, ""); err != nil {
		return err
	}
	for _, tenant := range random.Perm(2) {
		head, _, err := leases.Acquire(ctx, fmt.Sprint(tenant), node)
		if err != nil {
			return err
		}
		r.note(func() {
			r.acquisitions = append(r.acquisitions, acquisition{string(node), tenant, int(head.Revision)})
		})
	}
	for {
		sent := time.Now()
		found, err := leases.Renew(ctx, node)
		if err != nil || !found {
			return err
		}
		r.note(func() { r.renewals = append(r.renewals, renewal{string(node), sent}) })
	}
}

// The rows exclude each other on PostgreSQL as the argument, and the simulation, require of a
// database.
func TestRowsExclude(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context(), sqlstore.Migrations()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `INSERT INTO tenant_heads (tenant_id, tenant_number, epoch, rev, schema_rev, min_rev) VALUES ('0', 0, 'one', 0, 0, 0), ('1', 1, 'one', 0, 0, 0)`); err != nil {
		t.Fatal(err)
	}
	r := &rows{t: t, db: db, strikes: map[string]strike{}}
	ctx, done := context.WithCancel(t.Context())
	var writers, holders sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range 100 {
				if err := r.write(t.Context(), n%2, random); err != nil && !sqldb.IsRetryable(err) {
					t.Error(err)
				}
			}
		})
	}
	for n := range 3 {
		holders.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 2))
			for i := 0; ctx.Err() == nil; i++ {
				if err := r.hold(ctx, readlease.NodeID(fmt.Sprintf("node %d.%d", n, i)), random); err != nil && ctx.Err() == nil && !sqldb.IsRetryable(err) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	done()
	holders.Wait()
	r.verify()
}

func (r *rows) verify() {
	seen := 0
	for _, a := range r.acquisitions {
		for _, w := range r.writes {
			if w.tenant != a.tenant || w.revision <= a.floor || slices.Contains(w.holders, a.node) {
				seen++
				continue
			}
			// The node may have been struck out before, by a writer of either tenant.
			if s, ok := r.strikes[a.node]; !ok || s.tenant == a.tenant && s.revision >= w.revision || s.committing.After(w.read) {
				r.t.Errorf("%s acquired tenant %d at revision %d, and the writer of %d did not see it", a.node, a.tenant, a.floor, w.revision)
			}
		}
	}
	for _, renewed := range r.renewals {
		if s, ok := r.strikes[renewed.node]; ok && renewed.sent.After(s.deleted) {
			r.t.Errorf("%s was renewed %v after it was struck out", renewed.node, renewed.sent.Sub(s.deleted))
		}
	}
	for _, a := range r.absences {
		if s, ok := r.strikes[a.node]; !ok || a.at.Before(s.committing) {
			r.t.Errorf("the row of %s was gone before the transaction that deleted it was committed", a.node)
		}
	}
	r.t.Logf("%d writes, %d acquisitions, %d renewals, %d nodes struck out, %d of them twice", len(r.writes), len(r.acquisitions), len(r.renewals), len(r.strikes), len(r.absences))
	if len(r.writes) < 100 || len(r.acquisitions) < 10 || len(r.renewals) < 100 || len(r.strikes) < 10 || len(r.absences) == 0 || seen == 0 {
		r.t.Error("this shows too little")
	}
}
