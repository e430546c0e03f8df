package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"stonetown/controlplane"
	"stonetown/engine/resources"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/idempotency"
	"stonetown/internal/jobs"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/tuplestore/sqlstore"
)

func migrateCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Update the database's tables",
		Long: `Updates the database's tables to this version and exits. serve does the same when it
starts; use this command to do it before a rollout. It is safe to run at any time,
and by several processes at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			db, err := openDatabase(cmd.Context(), config)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The tables (%s) are up to date.\n", db.Dialect())
			return db.Close()
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

// openDatabase opens the configured database with its tables up to date.
func openDatabase(ctx context.Context, config Config) (*sqldb.DB, error) {
	if err := config.makeDataDir(); err != nil {
		return nil, err
	}
	db, err := sqldb.Open(ctx, sqldb.Config{URL: config.DatabaseURL, MaxConns: config.DatabaseConns})
	if err != nil {
		return nil, err
	}
	err = db.Migrate(ctx,
		sqlstore.Migrations(),
		resources.Migrations(),
		controlplane.Migrations(),
		identity.Migrations(),
		session.Migrations(),
		onetime.Migrations(),
		factor.Migrations(),
		external.Migrations(),
		authn.Migrations(),
		oauth.Migrations(),
		eventlog.Migrations(),
		idempotency.Migrations(),
		jobs.Migrations(),
		ratelimit.Migrations(),
	)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
