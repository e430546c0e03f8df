package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"stonetown/identity/password/breached"
	"stonetown/internal/geo"
	"stonetown/internal/masterkey"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/server"
	"stonetown/tuplestore/readlease"
)

// leaseClock measures the terms of read leases. The tests have processes with clocks that drift.
var leaseClock readlease.Clock = readlease.Machine{}

// serverConfig returns the configuration of a server that sends no messages, for commands
// that change the database; serve completes it.
func serverConfig(config Config, log *slog.Logger) (server.Config, error) {
	if err := config.makeDataDir(); err != nil {
		return server.Config{}, err
	}
	key, err := openMasterKey(config)
	if err != nil {
		return server.Config{}, err
	}
	return server.Config{
		Database:  databaseConfig(config),
		MasterKey: key,
		Mail:      notify.None{},
		Texts:     notify.None{},
		Logger:    log,

		BreachedPasswords: breached.None{},
		GeoIP:             geo.None{},
		Outbound: outbound.New(outbound.Config{
			AllowInsecure: config.AllowInsecureTargets, KeepAlive: true, UserAgent: "stonetown/" + version(),
		}),

		ResidentBytes:    config.ResidentMemoryMiB << 20,
		MappedBytes:      cmp.Or(config.MappedMemoryMiB<<20, -1),
		IdleAfter:        config.IdleAfter,
		Lease:            config.LeaseTime,
		LeaseClock:       leaseClock,
		HistoryRetention: config.HistoryRetention,
		AuditRetention:   config.AuditRetention,

		RequestTimeout: config.RequestTimeout,
		MaxRequests:    config.MaxRequests,
		MaxStreams:     config.MaxStreams,
		TenantShare:    config.TenantShare,
		CallerShare:    config.CallerShare,
		TrustedProxies: config.TrustedProxies,

		ClientCertHeader: config.ClientCertHeader,

		ControlURL:        config.ControlURL,
		OpenOrganizations: config.OpenOrganizations,
		MaxTenants:        config.MaxTenants,
		Regions:           config.Regions,
		ServeRegions:      config.ServeRegions,
		ServeTenants:      config.ServeTenants,

		SecurityContact: config.SecurityContact,
		Docs:            config.Docs,
		Dev:             config.Dev,
		AccessLog:       config.AccessLog,
	}, nil
}

func databaseConfig(config Config) sqldb.Config {
	return sqldb.Config{URL: config.DatabaseURL, MaxConns: config.DatabaseConns}
}

// openServer opens a server, and names the file of a wrong master key.
func openServer(ctx context.Context, config Config, c server.Config) (*server.Server, error) {
	s, err := server.Open(ctx, c)
	if errors.Is(err, seal.ErrWrongKey) {
		return nil, fmt.Errorf("%s is not the master key of this database: %w", config.MasterKeyFile, err)
	}
	if errors.Is(err, masterkey.ErrRetired) || errors.Is(err, masterkey.ErrMissing) {
		return nil, fmt.Errorf("%s: %w", config.MasterKeyFile, err)
	}
	return s, err
}

// openForCommand opens the server for a command that changes the database.
func openForCommand(ctx context.Context, config Config) (*server.Server, error) {
	c, err := serverConfig(config, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return openServer(ctx, config, c)
}

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
