package transfer_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"filippo.io/age"

	"stonetown/controlplane"
	"stonetown/controlplane/transfer"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// databases are the kinds of databases.
var databases = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
	"PostgreSQL": pgtest.URL,
}

// deployment is a deployment with one organisation.
type deployment struct {
	transfer.Deployment
	config    sqldb.Config
	directory *controlplane.Directory
	org       string
}

func open(t testing.TB, url string, master byte) *deployment {
	t.Helper()
	config := sqldb.Config{URL: url}
	db, err := sqldb.Open(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	must(t, server.Migrate(t.Context(), db))
	key, err := seal.NewKey(bytes.Repeat([]byte{master}, seal.KeySize))
	must(t, err)
	directory, err := controlplane.New(controlplane.Config{DB: db})
	must(t, err)
	d := &deployment{transfer.Deployment{DB: db, MasterKey: key, Product: "test"}, config, directory, ""}
	must(t, db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		org, err := directory.CreateOrganization(t.Context(), tx, "org", "Organisation")
		d.org = org.ID
		return err
	}))
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tenant creates a tenant with some rows in every table, and a signing key.
func (d *deployment) tenant(t testing.TB, slug string) controlplane.Tenant {
	t.Helper()
	var tenant controlplane.Tenant
	must(t, d.DB.Tx(t.Context(), func(tx *sqldb.Tx) (err error) {
		tenant, err = d.directory.CreateTenant(t.Context(), tx, controlplane.NewTenant{OrgID: d.org, Slug: slug, Name: "Ténant", Environment: controlplane.Staging, BaseURL: "https://" + slug + ".example.com"})
		return err
	}))
	tables, err := d.DB.TenantTables(t.Context())
	must(t, err)
	for _, table := range tables {
		if table.Name != "tenant_keys" { // of an import only
			d.fill(t, table.Name, tenant.ID, 5)
		}
	}
	_, err = d.DB.Exec(t.Context(), `DELETE FROM signing_keys WHERE tenant_id = $1`, tenant.ID)
	must(t, err)
	_, err = d.DB.Exec(t.Context(), `
		INSERT INTO signing_keys (tenant_id, kid, alg, state, private_sealed, created_at, activated_at, retired_at, removed_at) VALUES ($1, 'kid', 'ES256', 'active', $2, 1, 2, 3, 4)`,
		tenant.ID, d.MasterKey.Seal(tenant.ID, "kid", []byte("private")))
	must(t, err)
	return tenant
}

// fill inserts rows with every kind of value that a column can have.
func (d *deployment) fill(t testing.TB, table, tenantID string, rows int) {
	t.Helper()
	columns, err := d.DB.Columns(t.Context(), table)
	must(t, err)
	names, places := "", ""
	for i, c := range columns {
		names += fmt.Sprintf(`, "%s"`, c.Name)
		places += fmt.Sprintf(`, $%d`, i+1)
	}
	statement := fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (%s)`, table, names[2:], places[2:])
	var b sqldb.Batch
	for n := range rows {
		values := make([]any, len(columns))
		for i, c := range columns {
			unique := rand.Text()
			switch c.Type {
			case sqldb.Text:
				values[i] = []string{unique, "Ünïcode \U0001F600 " + unique, "Z" + unique, "a" + unique, `{"a":"\u0000"}` + unique}[n%5]
			case sqldb.Integer:
				values[i] = []int64{math.MinInt64, -1, 0, 1<<53 + 1, math.MaxInt64}[n%5]
			case sqldb.Boolean:
				values[i] = n%2 == 0
			case sqldb.Bytes:
				values[i] = [][]byte{{}, {0}, []byte(unique), bytes.Repeat([]byte{0xff}, 1000), []byte("\x80")}[n%5]
			}
			if c.Name == "tenant_id" {
				values[i] = tenantID
			}
			if c.Name == "tenant_number" {
				values[i] = sqldb.TenantNumber(tenantID)
			}
			if table == "resource_attributes" && c.Name == "attributes" && n == 0 {
				values[i] = nil
			}
		}
		if slices.Contains([]string{"tenant_heads", "event_heads", "identity_settings", "oauth_settings", "sign_in_flow_drafts", "brandings"}, table) && n > 0 {
			break // the tenant is the key
		}
		b.Queue(statement, values, nil)
	}
	must(t, d.DB.Tx(t.Context(), func(tx *sqldb.Tx) error { return tx.Send(t.Context(), &b) }))
}

// counts counts the rows of a tenant in each table that has some.
func (d *deployment) counts(t testing.TB, tenantID string) map[string]int64 {
	t.Helper()
	tables, err := d.DB.TenantTables(t.Context())
	must(t, err)
	counts := map[string]int64{}
	for _, table := range tables {
		var n int64
		must(t, d.DB.QueryRow(t.Context(), fmt.Sprintf(`SELECT COUNT(*) FROM "%s" WHERE %s = $1`, table.Name, table.Column), table.Tenant(tenantID)).Scan(&n))
		if n > 0 {
			counts[table.Name] = n
		}
	}
	return counts
}

// secret is the key pair of the archives.
var secret = func() *age.X25519Identity {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		panic(err)
	}
	return identity
}()

// export returns an archive of a tenant.
func (d *deployment) export(t testing.TB, tenantID string) ([]byte, transfer.Summary) {
	t.Helper()
	var archive bytes.Buffer
	done, err := transfer.Export(t.Context(), d.Deployment, tenantID, &archive, secret.Recipient())
	must(t, err)
	return archive.Bytes(), done
}

func (d *deployment) importArchive(t testing.TB, archive []byte) (controlplane.Tenant, transfer.Summary, error) {
	t.Helper()
	return transfer.Import(t.Context(), d.Deployment, d.directory, bytes.NewReader(archive), transfer.Address{OrgID: d.org}, secret)
}

// events returns the types of the events of the organisation.
func (d *deployment) events(t testing.TB) []string {
	t.Helper()
	list, err := sqldb.Texts(d.DB.Query(t.Context(), `SELECT type FROM events WHERE tenant_id = $1 ORDER BY position`, d.org))
	must(t, err)
	return list
}
