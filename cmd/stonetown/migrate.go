package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"stonetown/internal/sqldb"
	"stonetown/server"
)

func migrateCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Update the database's tables",
		Long: `Updates the database's tables to this version and exits. serve does the same when it
starts; use this command to do it before a rollout. It is safe to run at any time,
and by several processes at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			if err := config.makeDataDir(); err != nil {
				return err
			}
			db, err := sqldb.Open(cmd.Context(), databaseConfig(config))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if err := server.Migrate(cmd.Context(), db); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The tables (%s) are up to date.\n", db.Dialect())
			return nil
		},
	}
	configFlags(cmd.Flags())
	return cmd
}
