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

	"github.com/spf13/cobra"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/internal/sqldb"
	"stonetown/oauth/protocol"
	"stonetown/server"
)

// bootstrapOptions describe the first organisation and tenant.
type bootstrapOptions struct {
	Organization string // slug; the name is the same
	Tenant       string // slug; the name is the same
	BaseURL      string
	ControlURL   string
	AdminEmail   string // administrator of the tenant
	OwnerEmail   string // owner of the organisation, a user of the system tenant
}

// developmentOptions returns the options of a development server on a port.
func developmentOptions(port string) bootstrapOptions {
	return bootstrapOptions{
		Organization: "dev", Tenant: "dev",
		BaseURL: "http://dev.localhost:" + port, ControlURL: "http://control.localhost:" + port,
		AdminEmail: "admin@dev.localhost", OwnerEmail: "owner@dev.localhost",
	}
}

// credentials are the content of bootstrap.json: the credentials of the users and of the
// application that bootstrap created.
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

// errHasTenant is returned if the database has a tenant.
var errHasTenant = errors.New("the database already has a tenant")

// bootstrap creates the organisation, the tenant, the users and the application in one
// transaction, and writes the credentials to a file, replacing it. If the database has a
// tenant, it changes nothing and returns errHasTenant.
func bootstrap(ctx context.Context, s *server.Server, b bootstrapOptions, file string) (credentials, error) {
	c := credentials{
		BaseURL: b.BaseURL, ControlURL: b.ControlURL,
		Admin: account{b.AdminEmail, rand.Text()}, Owner: account{b.OwnerEmail, rand.Text()},
	}
	// The transaction below decides. This saves the time of the hashes.
	if _, err := s.Organizations.FirstTenant(ctx); err == nil {
		return credentials{}, errHasTenant
	} else if !errors.Is(err, controlplane.ErrTenantNotFound) {
		return credentials{}, err
	}
	adminHash, err := password.NewHash(ctx, c.Admin.Password)
	if err != nil {
		return credentials{}, err
	}
	ownerHash, err := password.NewHash(ctx, c.Owner.Password)
	if err != nil {
		return credentials{}, err
	}
	region, err := s.Management.Region("")
	if err != nil {
		return credentials{}, err
	}
	err = c.commit(ctx, s, file, func(tx *sqldb.Tx) error {
		if empty, err := s.Organizations.Empty(ctx, tx); err != nil {
			return err
		} else if !empty {
			return errHasTenant
		}
		org, err := s.Organizations.CreateOrganization(ctx, tx, b.Organization, b.Organization)
		if err != nil {
			return err
		}
		err = c.create(ctx, s, tx, controlplane.NewTenant{OrgID: org.ID, Slug: b.Tenant, Name: b.Tenant, BaseURL: b.BaseURL, Region: region}, adminHash)
		if err != nil {
			return err
		}
		_, err = s.Users.CreateUser(ctx, tx, controlplane.SystemTenant, identity.NewUser{
			Email: b.OwnerEmail, EmailVerified: true, Profile: identity.Profile{Name: "Owner"}, PasswordHash: ownerHash,
		})
		return err
	})
	return c, err
}

// commit commits what create adds to the database and to c, and writes c to a file. Then it
// provisions the tenant; if the process dies before the end, a server does.
func (c *credentials) commit(ctx context.Context, s *server.Server, file string, create func(*sqldb.Tx) error) error {
	written := false
	err := s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := create(tx); err != nil {
			return err
		}
		// The file is written before the commit. If the process dies in between, the
		// next start replaces the file. After the commit, the secrets would be lost.
		written = true
		return c.write(file)
	})
	if _, ambiguous := errors.AsType[*sqldb.AmbiguousCommitError](err); err != nil && written && !ambiguous {
		err = errors.Join(err, os.Remove(file)) // its credentials do not exist
	}
	if err == nil {
		// This creates the signing keys of the tenant, so that every later start finds
		// a wrong master key.
		_, err = s.OAuth.Keys.JWKS(ctx, protocol.Tenant{ID: c.TenantID, BaseURL: c.BaseURL})
	}
	if err == nil {
		_, err = s.Management.Provision(ctx, c.TenantID)
	}
	if err != nil {
		*c = credentials{}
		return fmt.Errorf("create tenant: %w", err)
	}
	return nil
}

// write replaces the file atomically. Only the owner can read it.
func (c credentials) write(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".bootstrap-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readCredentials reads the file of a tenant that write wrote. It returns fs.ErrNotExist if
// the file is missing or belongs to another tenant.
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

// bootstrapDevelopment creates the tenant of a development server at the first start, and
// later adapts its address to the port. It returns credentials without a client id, and no
// error, if they are lost.
func bootstrapDevelopment(ctx context.Context, s *server.Server, b bootstrapOptions, file string) (credentials, error) {
	c, err := bootstrap(ctx, s, b, file)
	if !errors.Is(err, errHasTenant) {
		return c, err
	}
	tenant, err := s.Organizations.FirstTenant(ctx)
	if err != nil {
		return credentials{}, err
	}
	c, err = readCredentials(file, tenant.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials{BaseURL: tenant.BaseURL, ControlURL: b.ControlURL}, nil
	}
	if err != nil || c.BaseURL == b.BaseURL && tenant.BaseURL == b.BaseURL {
		return c, err
	}
	if !isLocal(tenant.BaseURL) {
		return c, nil // a development server did not create the tenant, and does not change its address
	}
	// Another server may be running on this database, and a new address would invalidate its
	// tokens. An SQLite database has one server.
	if s.DB.Dialect() != sqldb.SQLite {
		return credentials{}, fmt.Errorf("the tenant of this database has the address %s, and other servers may be using it: "+
			"start on the same port (--listen), or with another database", tenant.BaseURL)
	}
	c.BaseURL, c.ControlURL = b.BaseURL, b.ControlURL
	err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := s.Organizations.MoveTenant(ctx, tx, tenant.ID, c.BaseURL); err != nil {
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
	b := developmentOptions("8080")
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
			if b.ControlURL = config.ControlURL; b.ControlURL == "" {
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
	f.StringVar(&b.AdminEmail, "admin-email", b.AdminEmail, "`address` of the tenant's administrator")
	f.StringVar(&b.OwnerEmail, "owner-email", b.OwnerEmail, "`address` of the organisation's owner")
	f.StringVar(&out, "out", "", "`file` for the credentials (default bootstrap.json in the data folder)")
	return cmd
}

func runBootstrap(cmd *cobra.Command, config Config, b bootstrapOptions, out string) (err error) {
	s, err := openForCommand(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	tenant, err := s.Organizations.FirstTenant(cmd.Context())
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
	c, err := bootstrap(cmd.Context(), s, b, out)
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
