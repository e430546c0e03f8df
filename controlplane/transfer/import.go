package transfer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"filippo.io/age"

	"stonetown/controlplane"
	"stonetown/internal/lease"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/tenantkeys"
	"stonetown/oauth/revocation"
	"stonetown/tuplestore/sqlstore"
)

// Address says where an imported tenant belongs.
type Address struct {
	OrgID   string
	Region  string // default: none
	Slug    string // default: the one that the tenant had
	BaseURL string // default: the one that the tenant had
}

// Import reads an archive from r and adds its tenant, suspended. Servers of the deployment may go
// on; after it returns, each of them has all that it keeps in memory about tenants, so that the
// tenant can be resumed. Import fails with [ErrNotArchive], [ErrWrongSecret], [ErrDamaged],
// [*SchemaError], [*VerifyError], or as [controlplane.Directory.ImportTenant]; after any error but
// a [*sqldb.AmbiguousCommitError] nothing is imported.
func Import(ctx context.Context, to Deployment, directory *controlplane.Directory, r io.Reader, at Address, identities ...age.Identity) (controlplane.Tenant, Summary, error) {
	t, done, err := importArchive(ctx, to, directory, r, at, identities)
	if err != nil {
		return controlplane.Tenant{}, Summary{}, fmt.Errorf("import tenant: %w", err)
	}
	lease.Settle(ctx)
	return t, done, nil
}

func importArchive(ctx context.Context, to Deployment, directory *controlplane.Directory, r io.Reader, at Address, identities []age.Identity) (t controlplane.Tenant, done Summary, err error) {
	a, err := openArchive(r, identities)
	if err != nil {
		return t, done, err
	}
	here, err := tables(ctx, to.DB)
	if err != nil {
		return t, done, err
	}
	if d := difference(a.Tables, here); d != "" {
		return t, done, &SchemaError{a.Product, to.Product, d}
	}
	if t, err = a.tenant(at); err != nil {
		return t, done, err
	}
	keys, err := a.keys()
	if err != nil {
		return t, done, err
	}
	// Not serializable: the rows belong to a tenant that no other transaction has.
	tx, err := to.DB.Pipeline(ctx, &sqldb.Batch{})
	if err != nil {
		return t, done, err
	}
	defer tx.Rollback()
	t, err = directory.ImportTenant(ctx, tx.Tx, t, func() error {
		if done, err = a.write(ctx, tx.Tx, here); err != nil {
			return err
		}
		var last sqldb.Batch
		tenantkeys.Add(&last, to.MasterKey, t.ID, keys)
		sqlstore.BeginTenantEpoch(&last, t.ID)
		revocation.Republish(&last, t.ID, to.now())
		return tx.Send(ctx, &last)
	})
	if sqldb.IsUniqueViolation(err) { // another import of the tenant has committed meanwhile
		err = fmt.Errorf("%w: %w", controlplane.ErrTenantExists, err)
	}
	if err != nil {
		return t, done, err
	}
	return t, done, tx.Commit(ctx, &sqldb.Batch{})
}

// write writes the rows of the archive and verifies them.
func (a *archiveReader) write(ctx context.Context, tx *sqldb.Tx, list []table) (done Summary, err error) {
	for _, t := range list {
		w := t.writer(tx, a.Tenant.ID)
		want, err := a.table(t, func(rows [][]any) error { return w.write(ctx, rows) })
		if err != nil {
			return done, err
		}
		written := newSum()
		if err := t.read(ctx, tx, a.Tenant.ID, func(row []byte) error { written.add(row); return nil }); err != nil {
			return done, err
		}
		if got := written.total(); got.Rows != want.Rows || !bytes.Equal(got.Hash, want.Hash) {
			return done, &VerifyError{t.Name, want.Rows, got.Rows}
		}
		done.add(want.Rows)
	}
	return done, a.end()
}

// tenant returns the tenant of the archive at its new address.
func (a *archiveReader) tenant(at Address) (t controlplane.Tenant, err error) {
	limits, err := ratelimit.ParseLimits(a.Tenant.RateLimits)
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	t = controlplane.Tenant{
		ID: a.Tenant.ID, OrgID: at.OrgID, Region: at.Region, Slug: cmp.Or(at.Slug, a.Tenant.Slug), Name: a.Tenant.Name,
		BaseURL: cmp.Or(at.BaseURL, a.Tenant.BaseURL), Environment: controlplane.Environment(a.Tenant.Environment), RateLimits: limits, Branding: a.Tenant.Branding,
	}
	return t, nil
}

func (a *archiveReader) keys() (keys []*seal.TenantKey, err error) {
	for _, k := range a.Keys {
		id, err := seal.ParseKeyID(k.ID)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		key, err := seal.NewTenantKey(id, k.Secret)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, ErrDamaged
	}
	return keys, nil
}
