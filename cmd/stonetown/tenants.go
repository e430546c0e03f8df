package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/scope"
	"stonetown/server"
)

func tenantsCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenants",
		Short: "List, create, suspend, decommission and move tenants",
		Long: `Manages the tenants of a deployment. The commands use the database directly.
Servers on PostgreSQL may be running, and know of a change when the command ends;
a server on the embedded database must be stopped before a change.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tenantsListCommand(environ), tenantsCreateCommand(environ), tenantsSuspendCommand(environ),
		tenantsResumeCommand(environ), tenantsDecommissionCommand(environ),
		tenantsExportCommand(environ), tenantsImportCommand(environ))
	return cmd
}

// withServer runs a command on the composed product.
func withServer(cmd *cobra.Command, environ []string, run func(context.Context, Config, *server.Server) error) (err error) {
	config, err := resolveConfig(cmd.Flags(), environ)
	if err != nil {
		return err
	}
	s, err := openForCommand(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return run(cmd.Context(), config, s)
}

// withReader runs a command on the database, which a server may use.
func withReader(cmd *cobra.Command, environ []string, run func(context.Context, Config, *sqldb.DB) error) (err error) {
	config, err := resolveConfig(cmd.Flags(), environ)
	if err != nil {
		return err
	}
	db, err := sqldb.Open(cmd.Context(), sqldb.Config{URL: config.DatabaseURL, MaxConns: 1, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return run(cmd.Context(), config, db)
}

func tenantsListCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tenants, by slug",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withReader(cmd, environ, func(ctx context.Context, _ Config, db *sqldb.DB) error {
				directory, err := controlplane.New(controlplane.Config{DB: db})
				if err != nil {
					return err
				}
				return listTenants(ctx, directory, cmd.OutOrStdout())
			})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

func listTenants(ctx context.Context, d *controlplane.Directory, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SLUG\tSTATE\tBASE URL\tCREATED\tNOTE")
	for after := ""; ; {
		tenants, err := d.Tenants(ctx, after, controlplane.MaxPage)
		if err != nil {
			return err
		}
		for _, t := range tenants {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Slug, t.State, t.BaseURL, t.CreatedAt.Format(time.RFC3339), tenantNote(t))
			after = t.Slug
		}
		if len(tenants) < controlplane.MaxPage {
			return w.Flush()
		}
	}
}

// tenantNote says what a list shows of a state.
func tenantNote(t controlplane.Tenant) string {
	switch {
	case t.State == controlplane.TenantSuspended && t.SuspendReason != "":
		return t.SuspendReason
	case t.State == controlplane.TenantDecommissioned && !t.PurgeAt.IsZero():
		return "data is deleted at " + t.PurgeAt.Format(time.RFC3339)
	case t.State == controlplane.TenantDecommissioned:
		return "data is deleted"
	}
	return ""
}

func tenantsCreateCommand(environ []string) *cobra.Command {
	n := newTenant{}
	var organization, out string
	cmd := &cobra.Command{
		Use:   "create SLUG",
		Short: "Create a tenant, its administrator and an application",
		Long: `Creates a tenant, an administrator, and an application with all built-in scopes.
The credentials are written to a file that only you can read.`,
		Example: `  stonetown tenants create acme --base-url https://acme.example.com --admin-email ann@acme.example`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.Slug = args[0]
			return withServer(cmd, environ, func(ctx context.Context, config Config, s *server.Server) (err error) {
				if out == "" {
					out = filepath.Join(config.DataDir, n.Slug+".json")
				}
				if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("%s exists; it may hold the credentials of another tenant", out)
				}
				if n.OrgID, err = organizationOf(ctx, s, organization); err != nil {
					return err
				}
				if n.Region, err = s.Management.Region(n.Region); err != nil {
					return err
				}
				c, err := createTenant(ctx, s, n, out)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Created the tenant %s. The credentials are in %s.\n", c.BaseURL, out)
				return nil
			})
		},
	}
	configFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&n.BaseURL, "base-url", "", "`URL` at which clients reach the tenant")
	f.StringVar(&n.AdminEmail, "admin-email", "", "`address` of the tenant's administrator")
	f.StringVar(&n.Name, "name", "", "`name` of the tenant (default its slug)")
	f.StringVar(&n.Region, "region", "", "`name` of the region (default the first one of the setting regions)")
	f.StringVar(&organization, "organization", "", "`slug` of the organisation (default that of the first tenant)")
	f.StringVar(&out, "out", "", "`file` for the credentials (default SLUG.json in the data folder)")
	for _, required := range []string{"base-url", "admin-email"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// organizationOf returns the id of an organisation; without a slug, of that of the first tenant.
func organizationOf(ctx context.Context, s *server.Server, slug string) (string, error) {
	if slug == "" {
		t, err := s.Organizations.FirstTenant(ctx)
		if errors.Is(err, controlplane.ErrTenantNotFound) {
			err = errors.New("the database has no tenant; run stonetown bootstrap first")
		}
		return t.OrgID, err
	}
	o, err := s.Organizations.OrganizationBySlug(ctx, slug)
	return o.ID, err
}

// newTenant describes a tenant with its first administrator.
type newTenant struct {
	controlplane.NewTenant
	AdminEmail string
}

// createTenant creates a tenant, its administrator and its application in one transaction, and
// writes the credentials to a new file.
func createTenant(ctx context.Context, s *server.Server, n newTenant, file string) (credentials, error) {
	if n.Name == "" {
		n.Name = n.Slug
	}
	c := credentials{BaseURL: n.BaseURL, OrgID: n.OrgID, Admin: account{n.AdminEmail, rand.Text()}}
	hash, err := password.NewHash(ctx, c.Admin.Password)
	if err != nil {
		return credentials{}, err
	}
	err = c.commit(ctx, s, file, func(tx *sqldb.Tx) error { return c.create(ctx, s, tx, n.NewTenant, hash) })
	return c, err
}

// create creates a tenant, to be provisioned, with the administrator of c and an application that has
// all built-in scopes, and adds their credentials to c.
func (c *credentials) create(ctx context.Context, s *server.Server, tx *sqldb.Tx, n controlplane.NewTenant, adminHash password.Hash) error {
	n.Provisioning = true
	tenant, err := s.Organizations.CreateTenant(ctx, tx, n)
	if err != nil {
		return err
	}
	_, err = s.Users.CreateUser(ctx, tx, tenant.ID, identity.NewUser{
		Email: c.Admin.Email, EmailVerified: true, Profile: identity.Profile{Name: "Administrator"}, PasswordHash: adminHash,
	})
	if err != nil {
		return err
	}
	app, secret, err := s.OAuth.Clients.CreateIn(ctx, tx, tenant.ID, client.Application{
		Name: "bootstrap", Type: client.Machine, AllowedScopes: scope.Builtin,
	})
	c.OrgID, c.TenantID, c.ClientID, c.ClientSecret = n.OrgID, tenant.ID, app.ClientID, secret
	return err
}

func tenantsSuspendCommand(environ []string) *cobra.Command {
	var reason string
	cmd := stateCommand(environ, "suspend SLUG", "Refuse the requests of a tenant until it is resumed",
		func(ctx context.Context, d *controlplane.Directory, t controlplane.Tenant) (controlplane.Tenant, error) {
			return d.Suspend(ctx, t.ID, reason, eventlog.Origin{})
		})
	cmd.Long = `Refuses the requests of a tenant: users cannot sign in, and applications get no
tokens and no answers. Its keys stay published, and the deliveries of its webhooks
wait. Nothing is deleted.`
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for the list of tenants and the audit log")
	return cmd
}

func tenantsResumeCommand(environ []string) *cobra.Command {
	return stateCommand(environ, "resume SLUG", "Serve a suspended tenant again",
		func(ctx context.Context, d *controlplane.Directory, t controlplane.Tenant) (controlplane.Tenant, error) {
			return d.Resume(ctx, t.ID, eventlog.Origin{})
		})
}

func tenantsDecommissionCommand(environ []string) *cobra.Command {
	var confirm string
	cmd := stateCommand(environ, "decommission SLUG", "End a tenant for good, and delete its data later",
		func(ctx context.Context, d *controlplane.Directory, t controlplane.Tenant) (controlplane.Tenant, error) {
			if confirm != t.Slug {
				return t, fmt.Errorf("this cannot be undone; repeat the slug to confirm it: --confirm %s", t.Slug)
			}
			return d.Decommission(ctx, t.ID, eventlog.Origin{})
		})
	cmd.Long = `Ends a tenant for good. Its requests are refused at once, a server deletes its data
30 days later, and its slug is never used again.`
	cmd.Flags().StringVar(&confirm, "confirm", "", "the `slug` again")
	return cmd
}

// stateCommand returns a command that changes the state of a tenant.
func stateCommand(environ []string, use, short string, change func(context.Context, *controlplane.Directory, controlplane.Tenant) (controlplane.Tenant, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withServer(cmd, environ, func(ctx context.Context, _ Config, s *server.Server) error {
				t, err := findTenant(ctx, s.DB, args[0])
				if err == nil {
					t, err = change(ctx, s.Organizations, t)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "The tenant %s is %s.\n", t.Slug, t.State)
				return nil
			})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}
