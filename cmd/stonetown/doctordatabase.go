package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"stonetown/controlplane"
	"stonetown/controlplane/transfer"
	"stonetown/internal/masterkey"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// Bounds beyond which there is a warning.
const (
	slowTrip   = 5 * time.Millisecond
	clockDrift = time.Second
)

// examineDatabase examines the database and the master key.
func examineDatabase(ctx context.Context, config Config, f *findings) {
	db, err := openReader(ctx, config)
	if err != nil {
		f.problem("check database_url, and that the database runs and is reached from here", "the database cannot be opened: %v", err)
		return
	}
	defer db.Close()
	h, err := db.Health(ctx)
	if err != nil {
		f.problem("see the log of the database", "the database does not answer: %v", err)
		return
	}
	f.fine("%s answers in %s", firstWords(h.Version), h.RoundTrip.Round(time.Microsecond))
	if h.RoundTrip > slowTrip {
		f.warn("run the server near the database; with several processes, use read leases (lease_listen)", "a round trip takes %s, and most requests need several", h.RoundTrip.Round(100*time.Microsecond))
	}
	if len(h.Volatile) > 0 {
		f.problem("turn it on", "commits that were acknowledged can be lost: %s is off", strings.Join(h.Volatile, " and "))
	}
	if conns := int64(databaseConfig(config).Conns()); h.MaxConns > 0 && conns*2 > h.MaxConns {
		f.warn("raise max_connections, or set database_conns", "one process takes up to %d of the %d connections of the database", conns, h.MaxConns)
	}
	if h.Clock.Abs() > clockDrift {
		f.warn("synchronise the clocks of both machines (NTP)", "the clock of the database is %s from that of this machine", h.Clock.Round(100*time.Millisecond))
	}
	examineKey(ctx, config, db, f)
}

func openReader(ctx context.Context, config Config) (*sqldb.DB, error) {
	return sqldb.Open(ctx, sqldb.Config{URL: config.DatabaseURL, MaxConns: 1, ReadOnly: true})
}

// firstWords returns the product and the version of what a database says about itself.
func firstWords(version string) string {
	words := strings.Fields(version)
	return strings.Join(words[:min(2, len(words))], " ")
}

func examineKey(ctx context.Context, config Config, db *sqldb.DB, f *findings) {
	key, err := seal.ReadKeyFile(config.MasterKeyFile)
	if err != nil {
		f.problem("put the key of this database there, or set master_key_file", "the master key cannot be read: %v", err)
		return
	}
	if info, err := os.Stat(config.MasterKeyFile); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		f.warn("chmod 600 "+shellWord(config.MasterKeyFile), "others on this machine can read the master key")
	}
	tenants, err := tenantsOf(ctx, db, 1)
	switch {
	case err != nil:
		f.problem("start the server, or run stonetown migrate", "the tables cannot be read: %v", err)
	case len(tenants) == 0:
		f.warn("run stonetown bootstrap", "there is no tenant yet")
	default:
		if len(key.Others()) > 0 {
			f.warn("run stonetown keys status", "%s has %d master keys: a rotation is not finished", config.MasterKeyFile, len(key.Others())+1)
		}
		_, loaded := masterkey.Load(ctx, db, key)
		if loaded == nil {
			err = transfer.CheckKey(ctx, db, key, tenants[0].ID)
		}
		switch {
		case errors.Is(errors.Join(loaded, err), seal.ErrWrongKey):
			f.problem("use the key that was there when the database was made", "%s is not the master key of this database", config.MasterKeyFile)
		case errors.Is(loaded, masterkey.ErrRetired):
			f.problem("use the key that replaced it", "%s: %v", config.MasterKeyFile, loaded)
		case errors.Is(loaded, masterkey.ErrMissing):
			f.problem("put the key back, or restart the server if its rotation is finished", "%s: %v", config.MasterKeyFile, loaded)
		case loaded != nil:
			f.problem("start the server, or run stonetown migrate", "the tables cannot be read: %v", loaded)
		case err != nil:
			f.problem("restore the database from a backup", "a signing key cannot be read: %v", err)
		default:
			f.fine("the master key is that of this database")
		}
	}
}

// tenantsOf returns the first tenants by slug.
func tenantsOf(ctx context.Context, db *sqldb.DB, n int) ([]controlplane.Tenant, error) {
	directory, err := controlplane.New(controlplane.Config{DB: db})
	if err != nil {
		return nil, err
	}
	return directory.Tenants(ctx, "", n)
}

// examineFolders examines the folders that the server writes to.
func examineFolders(_ context.Context, config Config, f *findings) {
	var folders []string
	if path, embedded, err := sqldb.SQLitePath(config.DatabaseURL); err == nil && embedded {
		folders = append(folders, filepath.Dir(path))
	}
	if config.GraphDir == noGraphDir {
		f.warn("set graph_dir to a folder on a fast local disk", "graph_dir is not set: tenants are loaded anew after a start, and those that do not fit into memory are answered from the database")
	} else {
		folders = append(folders, config.GraphDir)
	}
	for _, folder := range folders {
		switch err := canWrite(folder); {
		case errors.Is(err, fs.ErrNotExist):
			f.warn("it is created when the server starts, if its parent allows that", "%s does not exist", folder)
		case err != nil:
			f.problem("let the user of the server write there", "%s: %v", folder, err)
		default:
			f.fine("%s can be written to", folder)
		}
	}
}

// canWrite creates a file in a folder, and removes it.
func canWrite(folder string) error {
	file, err := os.CreateTemp(folder, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
