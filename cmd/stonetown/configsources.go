package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"stonetown/internal/ratelimit"
)

// bind registers a flag for every setting. The values of c are the defaults in the help text.
func (c *Config) bind(f *pflag.FlagSet) {
	f.BoolVar(&c.Dev, "dev", c.Dev, "run a development server, with a tenant to try things on")
	f.StringVar(&c.Listen, "listen", c.Listen, "`host:port` to serve tenants on")
	f.StringVar(&c.AdminListen, "admin-listen", c.AdminListen, "`host:port` for health, metrics and profiles")
	f.StringVar(&c.DataDir, "data-dir", c.DataDir, "`folder` of the embedded database and keys")
	f.StringVar(&c.DatabaseURL, "database-url", c.DatabaseURL, "postgres:// or sqlite: `URL` (default SQLite in the data folder)")
	f.StringVar(&c.DatabaseURLFile, "database-url-file", c.DatabaseURLFile, "`file` that holds the database URL")
	f.IntVar(&c.DatabaseConns, "database-conns", c.DatabaseConns, "limit on database connections (default 4 per CPU)")
	f.StringVar(&c.MasterKeyFile, "master-key-file", c.MasterKeyFile, "`file` of the key that encrypts secrets (default master.key in the data folder)")
	f.StringVar(&c.LeaseListen, "lease-listen", c.LeaseListen, "`host:port` to answer the other processes on the database on, so that checks are answered without a read of it")
	f.StringVar(&c.LeaseAddress, "lease-address", c.LeaseAddress, "`host:port` at which other processes reach lease-listen (default lease-listen)")
	f.DurationVar(&c.LeaseTime, "lease-time", c.LeaseTime, "longest time that a write waits for this process if it does not answer")
	f.Var(&c.TrustedProxies, "trusted-proxies", "`networks` of proxies whose X-Forwarded-For is trusted, separated by commas")
	f.StringVar(&c.ClientCertHeader, "client-cert-header", c.ClientCertHeader, "header `field` in which trusted proxies pass the certificates of clients")
	f.Var(&c.RateLimits, "rate-limits", "`limits` on requests by family.ip or family.caller, such as token.ip=60/min,authz.caller=1000/s (families: "+strings.Join(ratelimit.FamilyNames(), ", ")+"; units: s, min, h, d)")
	f.StringVar(&c.MailURL, "mail-url", c.MailURL, "smtp:// or smtps:// `URL` of the mail server")
	f.StringVar(&c.MailPasswordFile, "mail-password-file", c.MailPasswordFile, "`file` that holds the password for the mail server")
	f.StringVar(&c.MailFrom, "mail-from", c.MailFrom, "sender `address` of mails")
	f.StringVar(&c.TextURL, "text-url", c.TextURL, "http(s) `URL` of the gateway for text messages")
	f.StringVar(&c.TextTokenFile, "text-token-file", c.TextTokenFile, "`file` that holds the token for the text gateway")
	f.Var(&c.TextCountries, "text-countries", "country `codes` that text messages may be sent to, such as +49,+1")
	f.StringVar(&c.ControlURL, "control-url", c.ControlURL, "`URL` of the control plane; tenants that are created there have their slug in place of its first label")
	f.BoolVar(&c.OpenOrganizations, "open-organizations", c.OpenOrganizations, "let everybody create an organisation at the control plane (always with --dev)")
	f.IntVar(&c.MaxTenants, "max-tenants", c.MaxTenants, "limit on the tenants of one organisation")
	f.Var(&c.Regions, "regions", "`names` of the regions of tenants, the default first, such as eu,us")
	f.Var(&c.ServeRegions, "serve-regions", "serve only the tenants of these `regions`, and of serve-tenants")
	f.Var(&c.ServeTenants, "serve-tenants", "serve only the tenants with these `slugs`, and of serve-regions")
	f.BoolVar(&c.AllowInsecureTargets, "allow-insecure-targets", c.AllowInsecureTargets, "let tenants set http URLs and private addresses to fetch from (always with --dev)")
	f.StringVar(&c.BreachedPasswordsURL, "breached-passwords-url", c.BreachedPasswordsURL, "https `URL` of a service that checks for breached passwords")
	f.StringVar(&c.SecurityContact, "security-contact", c.SecurityContact, "contact `URI` for vulnerability reports, in /.well-known/security.txt")
	f.BoolVar(&c.Docs, "docs", c.Docs, "serve the documentation at /docs")
	f.StringVar(&c.GeoFile, "geo-file", c.GeoFile, "MaxMind GeoIP database `file`, to show where sign-ins came from")
	f.DurationVar(&c.RequestTimeout, "request-timeout", c.RequestTimeout, "time limit for one request")
	f.IntVar(&c.MaxRequests, "max-requests", c.MaxRequests, "limit on concurrent requests")
	f.IntVar(&c.MaxStreams, "max-streams", c.MaxStreams, "limit on concurrent watches")
	f.IntVar(&c.TenantShare, "tenant-share", c.TenantShare, "share of max-requests and max-streams that one tenant may use, in percent")
	f.IntVar(&c.CallerShare, "caller-share", c.CallerShare, "share of max-requests and max-streams that one caller may use, in percent")
	f.Int64Var(&c.MappedMemoryMiB, "mapped-memory-mib", c.MappedMemoryMiB, "limit for mapped files of tenants that do not fit into memory, in `MiB`; 0: none")
	f.Int64Var(&c.ResidentMemoryMiB, "resident-memory-mib", c.ResidentMemoryMiB, "memory limit for tenants' tuples, in `MiB`")
	f.StringVar(&c.GraphDir, "graph-dir", c.GraphDir, "`folder` in which tenants in memory are saved for the next start, or none (default: graphs in data-dir with the embedded database)")
	f.DurationVar(&c.AuditRetention, "audit-retention", c.AuditRetention, "how long audit events are kept")
	f.DurationVar(&c.IdleAfter, "idle-after", c.IdleAfter, "time without requests after which a tenant leaves memory")
	f.DurationVar(&c.HistoryRetention, "history-retention", c.HistoryRetention, "how long the history of relations is kept")
	f.DurationVar(&c.DrainDelay, "drain-delay", c.DrainDelay, "time from the moment /readyz fails until the server stops accepting requests")
	f.DurationVar(&c.DrainTimeout, "drain-timeout", c.DrainTimeout, "time for requests in progress to finish")
	f.TextVar(&c.LogLevel, "log-level", c.LogLevel, "lowest log `level`: debug, info, warn or error")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "json or text (default json; text with --dev)")
	f.BoolVar(&c.AccessLog, "access-log", c.AccessLog, "log each request at level info")
	f.StringVar(&c.TraceURL, "trace-url", c.TraceURL, "http(s) `URL` that traces are sent to, by OTLP")
	f.Float64Var(&c.TraceSample, "trace-sample", c.TraceSample, "`share` of traces that is recorded, from 0 to 1")
}

// configFlags registers the flags of the settings for a command.
func configFlags(f *pflag.FlagSet) {
	c := defaultConfig()
	c.bind(f)
	f.String("config", "", "YAML `file` with settings; keys are flag names with underscores")
}

// resolveConfig combines all sources of settings. flags have been parsed after configFlags;
// environ is as os.Environ returns it.
func resolveConfig(flags *pflag.FlagSet, environ []string) (Config, error) {
	c := defaultConfig()
	environment := env.ToMap(environ)
	path, err := flags.GetString("config")
	if err != nil {
		return Config{}, err
	}
	if path == "" {
		path = environment["STONETOWN_CONFIG"]
	}
	if path != "" {
		if err := c.readFile(path); err != nil {
			return Config{}, fmt.Errorf("configuration file %s: %w", path, err)
		}
	}
	if err := env.ParseWithOptions(&c, env.Options{Environment: environment, Prefix: "STONETOWN_"}); err != nil {
		return Config{}, fmt.Errorf("environment: %w", err)
	}
	// Flags that were given are set again, after the file and the environment have changed the
	// values.
	final := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.bind(final)
	flags.Visit(func(f *pflag.Flag) {
		if final.Lookup(f.Name) != nil {
			err = errors.Join(err, final.Set(f.Name, f.Value.String()))
		}
	})
	return c, errors.Join(err, c.complete())
}

func (c *Config) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) { // an empty file is valid
		return err
	}
	return nil
}
