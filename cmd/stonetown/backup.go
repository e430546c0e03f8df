package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func backupCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the embedded database to a file",
		Long: `Writes the current state of the embedded database to a new file that only you can
read. The server may be running. Back up the master key too, in another place:
without it the secrets in a backup cannot be decrypted.

PostgreSQL and CockroachDB are backed up with their own tools.`,
		Example: `  stonetown backup /backups/stonetown-$(date +%F).db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withReader(cmd, environ, func(ctx context.Context, _ Config, db *sqldb.DB) error {
				return db.Backup(ctx, args[0])
			})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

func restoreCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore [FILE]",
		Short: "Restore the database from a backup",
		Long: `Checks a backup of the embedded database and restores it. Stop the server and move
the old database files away first: restore does not overwrite them.

PostgreSQL and CockroachDB are restored with their own tools; run this command
without FILE afterwards, before any server starts.

In both cases a new line of history begins. Consistency tokens that were issued
after the backup was made then select the newest state, because the state that
they named no longer exists. Watches must start again.`,
		Example: `  mv data/stonetown.db* /tmp && stonetown restore /backups/stonetown-2026-11-20.db
  pg_restore ... && stonetown restore --database-url postgres://...`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			place, embedded, err := sqldb.SQLitePath(config.DatabaseURL)
			if err != nil {
				return err
			}
			switch {
			case embedded && len(args) == 1:
				err = restoreFile(cmd.Context(), config, args[0], place)
			case embedded:
				err = errors.New("FILE is required to restore the embedded database")
			case len(args) == 1:
				err = fmt.Errorf("restore the database with its own tools, then run this command without FILE: %w", sqldb.ErrNotEmbedded)
			default:
				err = beginEpoch(cmd.Context(), config)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "The database is restored. A new line of history has begun.")
			return err
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

// restoreFile prepares the backup beside the place of the database, and moves it there last, so
// that a server never starts with a part of it.
func restoreFile(ctx context.Context, config Config, backup, place string) (err error) {
	if err := config.makeDataDir(); err != nil {
		return err
	}
	for _, name := range []string{place, place + "-wal"} {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s exists: stop the server and move it away first", name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(place), ".restore-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied := filepath.Join(dir, "stonetown.db")
	if err := copyFile(backup, copied); err != nil {
		return err
	}
	config.DatabaseURL = sqldb.SQLiteURL(copied)
	if err := checkFile(ctx, config.DatabaseURL); err != nil {
		return fmt.Errorf("%s: %w", backup, err)
	}
	if err := beginEpoch(ctx, config); err != nil {
		return fmt.Errorf("%s: %w", backup, err)
	}
	// A link, unlike a rename, never replaces a file that was created meanwhile.
	return os.Link(copied, place)
}

// beginEpoch prepares a restored database for servers.
func beginEpoch(ctx context.Context, config Config) (err error) {
	s, err := openForCommand(ctx, config) // fails with a wrong master key
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return sqlstore.BeginEpoch(ctx, s.DB)
}

// checkFile refuses a file that is damaged or not a database of this product, before the file
// is changed.
func checkFile(ctx context.Context, databaseURL string) (err error) {
	db, err := sqldb.Open(ctx, sqldb.Config{URL: databaseURL, MaxConns: 1, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.CheckIntegrity(ctx); err != nil {
		return err
	}
	var tenants int64
	if err := db.QueryRow(ctx, `SELECT COUNT(*) FROM tenant_heads`).Scan(&tenants); err != nil {
		return fmt.Errorf("not a backup of Stonetown: %w", err)
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
