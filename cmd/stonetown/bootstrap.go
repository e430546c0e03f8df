package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// beginning is what an empty deployment starts with.
type beginning struct {
	Organization string // slug; the name is the same
	Tenant       string // slug; the name is the same
	BaseURL      string
	ControlURL   string
	AdminEmail   string // administrator of the tenant
	OwnerEmail   string // owner of the organisation, a user of the system tenant
}

// devBeginning is the one for a development server on a port.
func devBeginning(port string) beginning {
	return beginning{
		Organization: "dev", Tenant: "dev",
		BaseURL: "http://dev.localhost:" + port, ControlURL: "http://control.localhost:" + port,
		AdminEmail: "admin@dev.localhost", OwnerEmail: "owner@dev.localhost",
	}
}

// credentials are the content of bootstrap.json: how to get at what the
// beginning created.
type credentials struct {
	BaseURL      string  `json:"base_url"`
	ControlURL   string  `json:"control_url"`
	OrgID        string  `json:"org_id"`
	TenantID     string  `json:"tenant_id"`
	Admin        account `json:"admin"`
	Owner        account `json:"owner"`
	ClientID     string  `json:"client_id"`
	ClientSecret string  `json:"client_secret"`
}

type account struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// errBegun is returned for a deployment that has a tenant already.
var errBegun = errors.New("the database already has a tenant")

// bootstrap creates what b says, in one transaction, and writes the credentials
// to a file, replacing it. On a deployment that has begun it changes nothing and
// returns errBegun.
func (m *modules) bootstrap(ctx context.Context, b beginning, file string) (credentials, error) {
	c := credentials{
		BaseURL: b.BaseURL, ControlURL: b.ControlURL,
		Admin: account{b.AdminEmail, rand.Text()}, Owner: account{b.OwnerEmail, rand.Text()},
	}
	adminHash, err := password.NewHash(ctx, c.Admin.Password)
	if err != nil {
		return credentials{}, err
	}
	ownerHash, err := password.NewHash(ctx, c.Owner.Password)
	if err != nil {
		return credentials{}, err
	}
	written := false
	err = m.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if empty, err := m.tenants.Empty(ctx, tx); err != nil {
			return err
		} else if !empty {
			return errBegun
		}
		org, err := m.tenants.CreateOrganization(ctx, tx, b.Organization, b.Organization)
		if err != nil {
			return err
		}
		tenant, err := m.tenants.CreateTenant(ctx, tx, controlplane.NewTenant{
			OrgID: org.ID, Slug: b.Tenant, Name: b.Tenant, BaseURL: b.BaseURL,
		})
		if err != nil {
			return err
		}
		_, err = m.users.CreateUser(ctx, tx, tenant.ID, identity.NewUser{
			Email: b.AdminEmail, EmailVerified: true, Profile: identity.Profile{Name: "Administrator"}, PasswordHash: adminHash,
		})
		if err != nil {
			return err
		}
		_, err = m.users.CreateUser(ctx, tx, controlplane.SystemTenant, identity.NewUser{
			Email: b.OwnerEmail, EmailVerified: true, Profile: identity.Profile{Name: "Owner"}, PasswordHash: ownerHash,
		})
		if err != nil {
			return err
		}
		app, secret, err := client.CreateIn(ctx, tx, tenant.ID, client.Application{
			Name: "bootstrap", Type: client.Machine, AllowedScopes: scope.Builtin,
		}, outbound.New(outbound.Config{}), time.Now())
		if err != nil {
			return err
		}
		c.OrgID, c.TenantID, c.ClientID, c.ClientSecret = org.ID, tenant.ID, app.ClientID, secret
		// Written before the commit: if the process dies in between, the file is
		// of no use and is replaced at the next start. The other way round the
		// secrets would be lost.
		written = true
		return c.write(file)
	})
	if _, ambiguous := errors.AsType[*sqldb.AmbiguousCommitError](err); err != nil && written && !ambiguous {
		err = errors.Join(err, os.Remove(file)) // credentials of nothing
	}
	if err == nil {
		// The tenant has its signing keys from the beginning, so that every later
		// start notices another master key.
		_, err = m.keys.JWKS(ctx, protocol.Tenant{ID: c.TenantID, BaseURL: c.BaseURL})
	}
	if err != nil {
		return credentials{}, fmt.Errorf("bootstrap: %w", err)
	}
	return c, nil
}

// write replaces the file, for the owner's eyes only, as a whole or not at all.
func (c credentials) write(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".bootstrap-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readCredentials reads what write wrote for a tenant. A file that is missing
// or speaks of another tenant is fs.ErrNotExist.
func readCredentials(path, tenantID string) (credentials, error) {
	var c credentials
	text, err := os.ReadFile(path)
	if err != nil {
		return credentials{}, err
	}
	if json.Unmarshal(text, &c) != nil { // the error would quote the file
		return credentials{}, fmt.Errorf("%s is not a file that bootstrap wrote", path)
	}
	if c.TenantID != tenantID {
		return credentials{}, fmt.Errorf("%s belongs to another tenant: %w", path, fs.ErrNotExist)
	}
	return c, nil
}

// beginDevelopment makes sure that a development server has something to try:
// at the first start it creates it, later it adapts it to the port of today.
// Without an error but no client id, the credentials are not to be had.
func (m *modules) beginDevelopment(ctx context.Context, b beginning, file string) (credentials, error) {
	c, err := m.bootstrap(ctx, b, file)
	if !errors.Is(err, errBegun) {
		return c, err
	}
	tenant, err := m.tenants.FirstTenant(ctx)
	if err != nil {
		return credentials{}, err
	}
	c, err = readCredentials(file, tenant.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials{BaseURL: tenant.BaseURL}, nil
	}
	if err != nil || c.BaseURL == b.BaseURL && tenant.BaseURL == b.BaseURL {
		return c, err
	}
	if !isLocal(tenant.BaseURL) {
		return c, nil // not made by a development server: its address is no business of ours
	}
	// Another server may be running on this database, whose tokens a new address would make
	// invalid. The embedded one is ours alone.
	if m.db.Dialect() != sqldb.SQLite {
		return credentials{}, fmt.Errorf("the tenant of this database has the address %s, and other servers may be using it: "+
			"start on the same port (--listen), or with another database", tenant.BaseURL)
	}
	c.BaseURL, c.ControlURL = b.BaseURL, b.ControlURL
	err = m.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := m.tenants.MoveTenant(ctx, tx, tenant.ID, c.BaseURL); err != nil {
			return err
		}
		return c.write(file)
	})
	return c, err
}

// isLocal reports whether a URL is under localhost, as those of development
// servers are (RFC 6761 §6.3).
func isLocal(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && strings.HasSuffix("."+u.Hostname(), ".localhost")
}

func bootstrapCommand(environ []string) *cobra.Command {
	b := devBeginning("8080")
	var out string
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Create the first organisation, tenant, users and application",
		Long: `Creates, in an empty database, an organisation, a tenant in it, an administrator
of the tenant, an owner of the organisation, and an application with all built-in
scopes. The credentials are written to a file that only you can read. If the
database already has a tenant, the command changes nothing and prints a notice.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("control-url") {
				b.ControlURL = controlURL(b.BaseURL)
			}
			if out == "" {
				out = config.bootstrapFile()
			}
			return runBootstrap(cmd, config, b, out)
		},
	}
	configFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&b.Organization, "organization", b.Organization, "`slug` of the organisation")
	f.StringVar(&b.Tenant, "tenant", b.Tenant, "`slug` of the tenant")
	f.StringVar(&b.BaseURL, "base-url", b.BaseURL, "`URL` at which clients reach the tenant")
	f.StringVar(&b.ControlURL, "control-url", "", "`URL` of the control plane (default the base URL with control in place of its first label)")
	f.StringVar(&b.AdminEmail, "admin-email", b.AdminEmail, "`address` of the tenant's administrator")
	f.StringVar(&b.OwnerEmail, "owner-email", b.OwnerEmail, "`address` of the organisation's owner")
	f.StringVar(&out, "out", "", "`file` for the credentials (default bootstrap.json in the data folder)")
	return cmd
}

func runBootstrap(cmd *cobra.Command, config Config, b beginning, out string) (err error) {
	m, err := openModules(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()

	tenant, err := m.tenants.FirstTenant(cmd.Context())
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "Nothing changed: the database already has the tenant %s (%s).\n", tenant.Slug, tenant.BaseURL)
		return nil
	}
	if !errors.Is(err, controlplane.ErrTenantNotFound) {
		return err
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bootstrap: %s exists; it may hold the credentials of another deployment", out)
	}
	c, err := m.bootstrap(cmd.Context(), b, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Created the tenant %s. The credentials are in %s.\n", c.BaseURL, out)
	return nil
}

// controlURL puts control in the place of the first label of a base URL's host.
func controlURL(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "" // creating the tenant will refuse the base URL
	}
	if _, rest, ok := strings.Cut(u.Host, "."); ok {
		u.Host = "control." + rest
	}
	return u.String()
}
