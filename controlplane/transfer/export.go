package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"filippo.io/age"

	"stonetown/controlplane"
	"stonetown/internal/masterkey"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/tenantkeys"
)

// Deployment is where a tenant comes from, or goes to.
type Deployment struct {
	DB        *sqldb.DB
	MasterKey *seal.Key
	Product   string // its version
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
}

func (d Deployment) now() time.Time {
	if d.Clock == nil {
		return time.Now()
	}
	return d.Clock()
}

// Export writes an archive of a tenant to w, for recipients: one [age.ScryptRecipient], or public
// keys. It reads one snapshot of the database, which may be open to be read only, while servers go
// on. It fails with [controlplane.ErrTenantNotFound], with
// [*controlplane.StateError] unless the tenant is active or suspended, or with
// [seal.ErrWrongKey] if the master key is not that of the deployment. After an error, what was
// written is no archive.
func Export(ctx context.Context, from Deployment, tenantID string, w io.Writer, recipients ...age.Recipient) (done Summary, err error) {
	list, err := tables(ctx, from.DB)
	if err == nil {
		err = from.DB.Snapshot(ctx, func(tx *sqldb.Tx) error {
			h, err := describe(ctx, tx, from, tenantID)
			if err != nil {
				return err
			}
			h.Tables = list
			a, err := newArchive(w, h, recipients)
			if err != nil {
				return err
			}
			for _, t := range list {
				if err := t.read(ctx, tx, tenantID, a.row); err != nil {
					return err
				}
				rows, err := a.endTable()
				if err != nil {
					return err
				}
				done.add(rows)
			}
			return a.close()
		})
	}
	if err != nil {
		return Summary{}, fmt.Errorf("export tenant: %w", err)
	}
	return done, nil
}

// describe returns the header without the tables.
func describe(ctx context.Context, tx *sqldb.Tx, from Deployment, tenantID string) (header, error) {
	t, err := controlplane.TenantIn(ctx, tx, tenantID)
	if err != nil {
		return header{}, err
	}
	if t.State != controlplane.TenantActive && t.State != controlplane.TenantSuspended {
		return header{}, &controlplane.StateError{State: t.State}
	}
	master, err := masterkey.Load(ctx, tx, from.MasterKey)
	if err != nil {
		return header{}, err
	}
	earlier, err := tenantkeys.Read(ctx, tx, master, tenantID)
	if err != nil {
		return header{}, err
	}
	if err := CheckKey(ctx, tx, master.WithImported(keyring(earlier)), tenantID); err != nil {
		return header{}, err
	}
	h := header{
		Format: format, Version: formatVersion, Product: from.Product, ExportedAt: from.now().UnixMicro(),
		Tenant: tenant{ID: t.ID, Slug: t.Slug, Name: t.Name, BaseURL: t.BaseURL, Environment: string(t.Environment), RateLimits: t.RateLimits.Text(), Branding: t.Branding},
	}
	keys := earlier
	add := func(own *seal.TenantKey) {
		// A tenant that has returned to a deployment with this key has it.
		if !slices.ContainsFunc(keys, func(k *seal.TenantKey) bool { return k.ID() == own.ID() }) {
			keys = append(keys, own)
		}
	}
	if len(earlier) == 0 {
		add(master.Root().Tenant(tenantID)) // the first key is that of derived values
	}
	for _, key := range master.Others() {
		add(key.Tenant(tenantID))
	}
	add(master.Tenant(tenantID))
	for _, k := range keys {
		h.Keys = append(h.Keys, key{k.ID().String(), k.Bytes()})
	}
	return h, nil
}

// CheckKey opens a signing key of a tenant: with a wrong master key that fails with
// [seal.ErrWrongKey], and an archive would have keys that open nothing.
func CheckKey(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}, key *seal.Key, tenantID string,
) error {
	var kid string
	var sealed []byte
	err := q.QueryRow(ctx, `SELECT kid, private_sealed FROM signing_keys WHERE tenant_id = $1 LIMIT 1`, tenantID).Scan(&kid, &sealed)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = key.Open(tenantID, kid, sealed)
	}
	return err
}
