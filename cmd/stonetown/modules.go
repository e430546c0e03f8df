package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
)

// modules are the domain modules on their database.
type modules struct {
	db      *sqldb.DB
	key     *seal.Key
	tenants *controlplane.Directory
	users   *identity.Directory
	keys    *keys.Service
}

// openModules opens the configured database, with its tables up to date, and
// the modules on it.
func openModules(ctx context.Context, config Config) (_ *modules, err error) {
	db, err := openDatabase(ctx, config)
	if err != nil {
		return nil, err
	}
	m := &modules{db: db}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.key, err = openMasterKey(config); err != nil {
		return nil, err
	}
	if m.tenants, err = controlplane.New(controlplane.Config{DB: db}); err != nil {
		return nil, err
	}
	if m.users, err = identity.New(identity.Config{DB: db}); err != nil {
		return nil, err
	}
	m.keys = keys.New(db, m.key, time.Now, revocation.New(db, time.Now))
	return m, m.checkMasterKey(ctx, config)
}

func (m *modules) close() error { return m.db.Close() }

func openMasterKey(config Config) (*seal.Key, error) {
	if config.Dev {
		return seal.OpenKeyFile(config.MasterKeyFile)
	}
	key, err := seal.ReadKeyFile(config.MasterKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; make one with: (umask 077; mkdir -p %s && head -c 32 /dev/urandom | base64 > %s)",
			err, shellWord(filepath.Dir(config.MasterKeyFile)), shellWord(config.MasterKeyFile))
	}
	return key, err
}

// checkMasterKey finds out at start, rather than at the first token, that the
// database was sealed under another key.
func (m *modules) checkMasterKey(ctx context.Context, config Config) error {
	tenant, err := m.tenants.FirstTenant(ctx)
	if errors.Is(err, controlplane.ErrTenantNotFound) {
		return nil
	}
	if err == nil {
		_, err = m.keys.JWKS(ctx, protocol.Tenant{ID: tenant.ID, BaseURL: tenant.BaseURL})
	}
	if errors.Is(err, seal.ErrWrongKey) {
		return fmt.Errorf("%s is not the master key of this database: %w", config.MasterKeyFile, err)
	}
	return err
}
