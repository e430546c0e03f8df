package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stonetown/controlplane/transfer"
	"stonetown/internal/eventlog"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

func tenantsExportCommand(environ []string) *cobra.Command {
	var out string
	var secret archiveSecret
	cmd := &cobra.Command{
		Use:   "export SLUG",
		Short: "Write a tenant with everything it has to an encrypted archive",
		Long: `Writes a tenant with everything it has, as of one instant, to a new file, encrypted
for a passphrase or a public key (age-encryption.org). The server may be running.
Suspend the tenant first to move it: what changes later is not in the archive.

The archive contains the key with which the secrets of the tenant are encrypted.
Keep it as you keep the master key.`,
		Example: `  openssl rand -base64 24 > passphrase
  stonetown tenants suspend acme --reason "moves"
  stonetown tenants export acme --passphrase-file passphrase --out acme.archive`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			recipients, err := secret.recipients()
			if err != nil {
				return err
			}
			return withReader(cmd, environ, func(ctx context.Context, config Config, db *sqldb.DB) error {
				key, err := seal.ReadKeyFile(config.MasterKeyFile)
				if err != nil {
					return err
				}
				t, err := findTenant(ctx, db, args[0])
				if err != nil {
					return err
				}
				if out == "" {
					out = filepath.Join(config.DataDir, t.Slug+".archive")
				}
				from := transfer.Deployment{DB: db, MasterKey: key, Product: version()}
				done, err := exportFile(ctx, from, t.ID, out, recipients)
				if errors.Is(err, seal.ErrWrongKey) {
					return fmt.Errorf("%s is not the master key of this database: %w", config.MasterKeyFile, err)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Exported the tenant %s to %s: %d rows of %d tables.\n", t.Slug, out, done.Rows, done.Tables)
				return nil
			})
		},
	}
	configFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "new `file` (default SLUG.archive in the data folder)")
	secret.passphraseFlag(f)
	f.StringArrayVar(&secret.publicKeys, "recipient", nil, "public `key` of age (age1…) that can open the archive; may be repeated")
	cmd.MarkFlagsOneRequired("passphrase-file", "recipient")
	cmd.MarkFlagsMutuallyExclusive("passphrase-file", "recipient")
	return cmd
}

// exportFile writes an archive to a new file that only its owner can read. After an error there
// is no file.
func exportFile(ctx context.Context, from transfer.Deployment, tenantID, path string, recipients []age.Recipient) (done transfer.Summary, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return done, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if done, err = transfer.Export(ctx, from, tenantID, w, recipients...); err != nil {
		return done, err
	}
	return done, errors.Join(w.Flush(), f.Sync())
}

func tenantsImportCommand(environ []string) *cobra.Command {
	var organization string
	var suspended bool
	var at transfer.Address
	var secret archiveSecret
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Add a tenant from an archive of another deployment",
		Long: `Adds a tenant from an archive that tenants export has written, in one transaction:
what was written is read back and compared with the archive first, and an import
that fails or is interrupted leaves nothing. Both deployments must have the same
version, but may have different databases and master keys.

With another base URL, tokens that were issued before do not verify; with another
host, passkeys cannot be used, and connections and SAML applications must be
configured for the new address.`,
		Example: `  stonetown tenants import acme.archive --passphrase-file passphrase
  stonetown tenants import acme.archive --identity key.txt --base-url https://acme.example.org --suspended`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			identities, err := secret.identities()
			if err != nil {
				return err
			}
			return withServer(cmd, environ, func(ctx context.Context, config Config, s *server.Server) error {
				key, err := openMasterKey(config)
				if err != nil {
					return err
				}
				if at.OrgID, err = organizationOf(ctx, s, organization); err != nil {
					return err
				}
				switch {
				case at.Region == "" && len(config.Regions) > 0:
					at.Region = config.Regions[0]
				case at.Region != "" && !slices.Contains(config.Regions, at.Region):
					return fmt.Errorf("the deployment has the regions %q", config.Regions)
				}
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				to := transfer.Deployment{DB: s.DB, MasterKey: key, Product: version()}
				t, done, err := transfer.Import(ctx, to, s.Organizations, f, at, identities...)
				if unknown := new(sqldb.AmbiguousCommitError); errors.As(err, &unknown) {
					return fmt.Errorf("%w; if tenants list shows the tenant, all of it is imported, and suspended", err)
				}
				if err != nil {
					return err
				}
				if !suspended {
					if t, err = s.Organizations.Resume(ctx, t.ID, eventlog.Origin{}); err != nil {
						return fmt.Errorf("the tenant is imported, but suspended: %w", err)
					}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Imported the tenant %s: %d rows of %d tables, verified. It is %s.\n", t.BaseURL, done.Rows, done.Tables, t.State)
				return nil
			})
		},
	}
	configFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&at.Slug, "slug", "", "`slug` of the tenant (default the one it had)")
	f.StringVar(&at.BaseURL, "base-url", "", "`URL` at which clients reach the tenant (default the one it had)")
	f.StringVar(&at.Region, "region", "", "`name` of the region of the tenant (default the first of the deployment)")
	f.StringVar(&organization, "organization", "", "`slug` of the organisation (default that of the first tenant)")
	f.BoolVar(&suspended, "suspended", false, "leave the tenant suspended, until tenants resume")
	secret.passphraseFlag(f)
	f.StringVar(&secret.identityFile, "identity", "", "`file` with a private key of age")
	cmd.MarkFlagsOneRequired("passphrase-file", "identity")
	cmd.MarkFlagsMutuallyExclusive("passphrase-file", "identity")
	return cmd
}

// archiveSecret says with what an archive is encrypted.
type archiveSecret struct {
	passphraseFile string
	publicKeys     []string
	identityFile   string
}

// minPassphrase is the length of the shortest passphrase, in bytes.
const minPassphrase = 16

func (s *archiveSecret) passphraseFlag(f *pflag.FlagSet) {
	f.StringVar(&s.passphraseFile, "passphrase-file", "", fmt.Sprintf("`file` with the passphrase of the archive, of at least %d characters", minPassphrase))
}

func (s *archiveSecret) passphrase() (string, error) {
	text, err := os.ReadFile(s.passphraseFile)
	passphrase := strings.TrimRight(string(text), "\r\n")
	if err == nil && len(passphrase) < minPassphrase {
		err = fmt.Errorf("the passphrase in %s has fewer than %d characters", s.passphraseFile, minPassphrase)
	}
	return passphrase, err
}

func (s *archiveSecret) recipients() (list []age.Recipient, err error) {
	if s.passphraseFile != "" {
		passphrase, err := s.passphrase()
		if err != nil {
			return nil, err
		}
		recipient, err := age.NewScryptRecipient(passphrase)
		return []age.Recipient{recipient}, err
	}
	return age.ParseRecipients(strings.NewReader(strings.Join(s.publicKeys, "\n")))
}

func (s *archiveSecret) identities() ([]age.Identity, error) {
	if s.passphraseFile != "" {
		passphrase, err := s.passphrase()
		if err != nil {
			return nil, err
		}
		identity, err := age.NewScryptIdentity(passphrase)
		return []age.Identity{identity}, err
	}
	f, err := os.Open(s.identityFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("%s does not hold a private key of age", s.identityFile) // the error would quote the file
	}
	return list, nil
}
