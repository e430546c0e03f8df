package transfer_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"stonetown/controlplane/transfer"
	"stonetown/internal/sqldb"
)

// tuples adds n rows to the largest table of tenants.
func (d *deployment) tuples(t testing.TB, tenantID string, n int) {
	t.Helper()
	const statement = `
		INSERT INTO tuples (tenant_number, object, relation, subject, subject_relation, condition, context, expires_at, created_rev, created_at, created_by)
		VALUES ($1, $2, 'viewer', $3, '', '', '', 0, 1, 1, 'user:usr_k3q7v2m5x4r6t2w7a2c3d4e5f6')`
	for at := 0; at < n; {
		must(t, d.DB.Tx(t.Context(), func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			for end := min(n, at+5000); at < end; at++ {
				b.Queue(statement, []any{sqldb.TenantNumber(tenantID), fmt.Sprintf("document:document-%07d", at), fmt.Sprintf("user:usr_%026d", at%1000)}, nil)
			}
			return tx.Send(t.Context(), &b)
		}))
	}
}

// peak samples the heap until done.
func peak(done <-chan struct{}) (most uint64) {
	var m runtime.MemStats
	for {
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		select {
		case <-done:
			return most
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Memory does not grow with the number of rows. STONETOWN_TRANSFER_TUPLES sets another number.
func TestMemory(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("STONETOWN_TRANSFER_TUPLES"))
	if err != nil {
		n = 50_000
	}
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, url(t), 1), open(t, url(t), 2)
			tenant := from.tenant(t, "acme")
			from.tuples(t, tenant.ID, n)
			f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
			must(t, err)
			defer f.Close()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			before := m.HeapInuse
			measure := func(what string, do func() (transfer.Summary, error)) {
				t.Helper()
				done := make(chan struct{})
				most := make(chan uint64)
				go func() { most <- peak(done) }()
				began := time.Now()
				summary, err := do()
				took := time.Since(began)
				close(done)
				must(t, err)
				grown := int64(<-most) - int64(before)
				t.Logf("%s: %d rows in %v, heap +%d MiB", what, summary.Rows, took.Round(time.Millisecond), grown>>20)
				if grown > 16<<20 || summary.Rows < int64(n) {
					t.Errorf("%s: the heap grew by %d MiB for %d rows", what, grown>>20, summary.Rows)
				}
			}
			measure("export", func() (transfer.Summary, error) {
				return transfer.Export(t.Context(), from.Deployment, tenant.ID, f, secret.Recipient())
			})
			_, err = f.Seek(0, io.SeekStart)
			must(t, err)
			measure("import", func() (transfer.Summary, error) {
				_, done, err := transfer.Import(t.Context(), to.Deployment, to.directory, f, transfer.Address{OrgID: to.org}, secret)
				return done, err
			})
		})
	}
}
