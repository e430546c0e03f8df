package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"stonetown/internal/masterkey"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func keysCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Replace the master key",
		Long: `Replaces the master key of a deployment. Each step takes effect when a process starts.

A key file may have several master keys, one on each line: the first one encrypts,
and all of them decrypt.`,
	}
	cmd.AddCommand(keysStatusCommand(environ), keysRotateCommand(environ))
	return cmd
}

func keysStatusCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the master keys, with the number of values that each one encrypts",
		Long: `Lists the keys in the key file and those that were replaced, with the number of
values in the database that are encrypted under each. It reads all of these values.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withKeys(cmd, environ, func(_ Config, _ *sqldb.DB, _ *seal.Key, uses []masterkey.Use) error {
				printKeys(cmd.OutOrStdout(), uses)
				return nil
			})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

func keysRotateCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Write the next step of a rotation to the key file",
		Long: `Writes the next step of the rotation of the master key to the key file, and says what
to do before the command is run again. It changes nothing else.

  1. On PostgreSQL: a new key is added as the second one. All processes must have read
     the file before the next step, so that they decrypt what others encrypt.
  2. The new key becomes the first one. The server encrypts all values again.
  3. When no value is left under the old key, it is removed from the file.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withKeys(cmd, environ, func(config Config, db *sqldb.DB, key *seal.Key, uses []masterkey.Use) error {
				keys, text, err := nextKeys(key, uses, db.Dialect() == sqldb.SQLite)
				if err != nil {
					return err
				}
				if err := seal.WriteKeyFile(config.MasterKeyFile, keys...); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", config.MasterKeyFile, text)
				return nil
			})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

// withKeys reads the key file and describes its keys.
func withKeys(cmd *cobra.Command, environ []string, run func(Config, *sqldb.DB, *seal.Key, []masterkey.Use) error) error {
	return withReader(cmd, environ, func(ctx context.Context, config Config, db *sqldb.DB) error {
		key, err := seal.ReadKeyFile(config.MasterKeyFile)
		if err != nil {
			return err
		}
		uses, err := masterkey.Status(ctx, db, key)
		if err != nil {
			return fmt.Errorf("%s: %w", config.MasterKeyFile, err)
		}
		return run(config, db, key, uses)
	})
}

func printKeys(w io.Writer, uses []masterkey.Use) {
	for i, u := range uses {
		state := "decrypts"
		switch {
		case u.Retired:
			state = "was replaced"
		case !u.InFile:
			state = "is not in the file"
		case i == 0 && !u.Known:
			state = "encrypts after a restart"
		case i == 0:
			state = "encrypts"
		}
		fmt.Fprintf(w, "%s %s: %d values\n", u.ID, state, u.Values)
	}
}

// nextKeys returns the keys of the file after the next step of a rotation, and what to do then.
func nextKeys(key *seal.Key, uses []masterkey.Use, oneProcess bool) (keys []*seal.Key, text string, err error) {
	for _, u := range uses {
		if !u.InFile && !u.Retired {
			return nil, "", fmt.Errorf("the file lacks the key %s, under which processes encrypt", u.ID)
		}
	}
	others := key.Others()
	if !uses[0].Known {
		return nil, "", errors.New("no process has been started with the first key of the file; restart all of them, then run this command again")
	}
	if len(others) == 0 {
		fresh, err := seal.GenerateKey()
		if err != nil {
			return nil, "", err
		}
		if oneProcess {
			return []*seal.Key{fresh, key}, fmt.Sprintf("the key %s was added and encrypts from now on. Restart the server, which encrypts all values again; then run this command again.", fresh.ID()), nil
		}
		return []*seal.Key{key, fresh}, fmt.Sprintf("the key %s was added. Give the file to all processes and restart them; then run this command again.", fresh.ID()), nil
	}
	for i, other := range others {
		if u := uses[i+1]; !u.Known {
			keys = append([]*seal.Key{other, key}, others[:i]...)
			return append(keys, others[i+1:]...), fmt.Sprintf("the key %s encrypts from now on. Give the file to all processes and restart them; they encrypt all values again. Then run this command again.", other.ID()), nil
		}
	}
	if !uses[0].Newest {
		return nil, "", errors.New("the first key of the file was replaced by another one of its keys, which must be the first one")
	}
	for i := range others {
		if u := uses[i+1]; u.Values > 0 {
			return nil, "", fmt.Errorf("%d values are still encrypted under the key %s; the server encrypts them again within minutes, if it was restarted since the last step", u.Values, u.ID)
		}
	}
	return []*seal.Key{key}, fmt.Sprintf("only the key %s is left. Give the file to all processes and restart them: the old key is refused from then on.", key.ID()), nil
}
