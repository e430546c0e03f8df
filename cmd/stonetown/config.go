package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"stonetown/controlplane/management"
	"stonetown/internal/eventlog"
	"stonetown/tuplestore/leasenode"
	"stonetown/tuplestore/sqlstore"
)

//go:generate go test -run ^TestConfigurationPage$ -update

// Config has all settings. The value of a setting comes from the last of these that has one:
// its default, the YAML file of --config, the environment variable STONETOWN_ followed by its
// name in capitals, its flag. Unknown keys in the file are errors. Secrets are not settings;
// settings have the paths of files with secrets. The one exception is a password within
// database_url, which database_url_file avoids.
type Config struct {
	// Dev starts a development server. It creates the master key and, in an empty database, an
	// organisation, a tenant and an application, and prints instructions. The host localhost is
	// then the first tenant. Do not make such a server reachable from a network. Default false.
	Dev bool `yaml:"dev" env:"DEV"`

	// Listen is the host:port on which tenants are served, without TLS; a proxy must provide
	// TLS. With port 0 the system chooses a port. Default 127.0.0.1:8080.
	Listen string `yaml:"listen" env:"LISTEN"`

	// AdminListen is the host:port for health, readiness, metrics and profiles. It requires no
	// credentials and must not be reachable for clients. Default 127.0.0.1:9090.
	AdminListen string `yaml:"admin_listen" env:"ADMIN_LISTEN"`

	// DataDir is the folder of the embedded database, the master key and the first credentials,
	// if they have no other path. Default ./data.
	DataDir string `yaml:"data_dir" env:"DATA_DIR"`

	// DatabaseURL is postgres://user@host:port/database, for PostgreSQL and
	// CockroachDB, or sqlite:///path. One process at a time can use an SQLite
	// database. Default: SQLite in stonetown.db in DataDir.
	DatabaseURL string `yaml:"database_url" env:"DATABASE_URL"`

	// DatabaseURLFile is a file with the database URL. Default: none.
	DatabaseURLFile string `yaml:"database_url_file" env:"DATABASE_URL_FILE"`

	// DatabaseConns bounds the connections to the database; further requests are queued. 0, the
	// default: 4 per CPU, at least 8.
	DatabaseConns int `yaml:"database_conns" env:"DATABASE_CONNS"`

	// MasterKeyFile has the key that encrypts secrets in the database: 32 random bytes in
	// base64. Without it the secrets are lost. All processes need the same key. During a rotation
	// the file has a key on each line (stonetown keys). Default: master.key in DataDir.
	MasterKeyFile string `yaml:"master_key_file" env:"MASTER_KEY_FILE"`

	// LeaseListen is the host:port on which this process answers the other processes on the same
	// PostgreSQL, so that it can hold read leases and answer checks without a read of the database.
	// Requests are authenticated by a key that derives from the master key. Set it only when all
	// processes that use the database have a version with this setting. Default: no leases.
	LeaseListen string `yaml:"lease_listen" env:"LEASE_LISTEN"`

	// LeaseAddress is the host:port at which the other processes reach LeaseListen. Default: that
	// of LeaseListen, which then must have a host.
	LeaseAddress string `yaml:"lease_address" env:"LEASE_ADDRESS"`

	// LeaseTime is the longest time that a write waits for this process, if it does not answer;
	// from 100ms to 10s. Default 1s.
	LeaseTime time.Duration `yaml:"lease_time" env:"LEASE_TIME"`

	// TrustedProxies are the networks, such as 10.0.0.0/8, of proxies. The address of a client
	// is taken from their X-Forwarded-For, and is limited and logged. Default: none.
	TrustedProxies prefixes `yaml:"trusted_proxies" env:"TRUSTED_PROXIES"`

	// ClientCertHeader is the header field, such as Client-Cert, in which the proxies of
	// TrustedProxies pass the certificate that a client presented: as a byte sequence (RFC 9440), or
	// as a percent-encoded PEM block. With it, applications can authenticate by certificates and
	// have tokens bound to them (RFC 8705). The proxy must remove the field from requests of clients,
	// and verify the chains of certificates of tls_client_auth. Default: none.
	ClientCertHeader string `yaml:"client_cert_header" env:"CLIENT_CERT_HEADER"`

	// RateLimits are limits on requests by family and by address or caller: family.ip or
	// family.caller. The families are token (requests for tokens), sign-in, page (requests of
	// the hosted pages), self-service, admin (settings of a tenant), authz (checks, resources
	// and relations), client (other requests of clients) and provisioning (SCIM). A limit is
	// requests/unit, where the unit is s, min, h or d, or it is unlimited. Tenants can have limits of their own.
	// Default: token.ip=60/min, token.caller=600/h, sign-in.ip=30/min, page.ip=600/min,
	// self-service.caller=600/h, admin.caller=6000/h, client.caller=6000/h,
	// provisioning.caller=6000/min, and no others.
	RateLimits rateLimits `yaml:"rate_limits" env:"RATE_LIMITS" envKeyValSeparator:"="`

	// MailURL is the mail server: smtp://[user@]host[:port], which must support STARTTLS unless
	// it is on this machine, or smtps://. Default: none, and no mails are sent; with Dev, mails
	// are stored in the folder outbox in DataDir.
	MailURL string `yaml:"mail_url" env:"MAIL_URL"`

	// MailPasswordFile is a file with the password of the mail server. Default: none.
	MailPasswordFile string `yaml:"mail_password_file" env:"MAIL_PASSWORD_FILE"`

	// MailFrom is the sender of mails. Required with MailURL.
	MailFrom string `yaml:"mail_from" env:"MAIL_FROM"`

	// TextURL is the gateway for text messages, an http(s) URL that accepts POST of {"to":
	// "+49…", "text": "…"}. Default: none, and phones cannot be second factors; with Dev, text
	// messages are stored in the folder outbox in DataDir.
	TextURL string `yaml:"text_url" env:"TEXT_URL"`

	// TextTokenFile is a file with the bearer token of the gateway. Default: none.
	TextTokenFile string `yaml:"text_token_file" env:"TEXT_TOKEN_FILE"`

	// TextCountries are the country codes, such as +49, of the numbers that receive text
	// messages. Default: all.
	TextCountries words `yaml:"text_countries" env:"TEXT_COUNTRIES"`

	// ControlURL is the address of the control plane, such as https://control.example.com, where
	// organisations manage their tenants. A tenant that is created there has its slug in place of
	// the first label: https://acme.example.com. Default: there is no control plane; with Dev,
	// http://control.localhost with the port of Listen.
	ControlURL string `yaml:"control_url" env:"CONTROL_URL"`

	// OpenOrganizations lets everybody sign up at the control plane and create an organisation.
	// Otherwise only owners of an organisation create others. Default false; with Dev, always
	// true.
	OpenOrganizations bool `yaml:"open_organizations" env:"OPEN_ORGANIZATIONS"`

	// MaxTenants is how many tenants an organisation can have. Default 100.
	MaxTenants int `yaml:"max_tenants" env:"MAX_TENANTS"`

	// Regions are the names of the regions that tenants can have, the default first. Default:
	// tenants have none.
	Regions words `yaml:"regions" env:"REGIONS"`

	// ServeRegions and ServeTenants limit the tenants that this process serves, to those of the
	// regions and those with the slugs; requests for others get 421. Background work is not
	// limited. Default: all tenants.
	ServeRegions words `yaml:"serve_regions" env:"SERVE_REGIONS"`
	ServeTenants words `yaml:"serve_tenants" env:"SERVE_TENANTS"`

	// AllowInsecureTargets allows http URLs and addresses of private networks where tenants
	// name a URL that the server requests, such as the keys of their applications. Tenants then
	// reach every address that this machine reaches. For development only. Default false; with
	// Dev, always true.
	AllowInsecureTargets bool `yaml:"allow_insecure_targets" env:"ALLOW_INSECURE_TARGETS"`

	// BreachedPasswordsURL is a service for breached passwords in the form of Pwned Passwords,
	// which has the URL https://api.pwnedpasswords.com/range/. It receives 5 of the 40 digits
	// of a password's SHA-1 when the password is chosen, and every 30 days at a sign-in with
	// it. Default: none, and passwords are not compared.
	BreachedPasswordsURL string `yaml:"breached_passwords_url" env:"BREACHED_PASSWORDS_URL"`

	// GeoFile is a database in MaxMind's format (.mmdb) with the city or country of addresses,
	// which users see in the list of their sessions. Default: none.
	GeoFile string `yaml:"geo_file" env:"GEO_FILE"`

	// SecurityContact is the URI (mailto:, https:) for reports of vulnerabilities, which
	// /.well-known/security.txt contains. Default: none.
	SecurityContact string `yaml:"security_contact" env:"SECURITY_CONTACT"`

	// Docs serves the documentation of this version at /docs on each host, without credentials.
	// Default true.
	Docs bool `yaml:"docs" env:"DOCS"`

	// RequestTimeout bounds the work on one request; after it the response is an error. Default
	// 30s.
	RequestTimeout time.Duration `yaml:"request_timeout" env:"REQUEST_TIMEOUT"`

	// MaxRequests is the number of concurrent requests; others are queued for at most
	// RequestTimeout. Default 256.
	MaxRequests int `yaml:"max_requests" env:"MAX_REQUESTS"`

	// MaxStreams is the number of open watches; further ones are refused. Default 1000.
	MaxStreams int `yaml:"max_streams" env:"MAX_STREAMS"`

	// TenantShare and CallerShare are the parts, in percent, of MaxRequests, of MaxStreams and
	// of the memory for incomplete bodies that one tenant, and one caller of it, can hold at a
	// time. Default 50 and 25.
	TenantShare int `yaml:"tenant_share" env:"TENANT_SHARE"`
	CallerShare int `yaml:"caller_share" env:"CALLER_SHARE"`

	// ResidentMemoryMiB is the memory for the tuples of tenants, in MiB. Further tenants are in
	// mapped files or evaluated in the database, which is slower. Default 1024.
	ResidentMemoryMiB int64 `yaml:"resident_memory_mib" env:"RESIDENT_MEMORY_MIB"`

	// MappedMemoryMiB bounds the mapped files in GraphDir for tenants that do not fit into
	// ResidentMemoryMiB, in MiB; 0: there are none. Default 8192.
	MappedMemoryMiB int64 `yaml:"mapped_memory_mib" env:"MAPPED_MEMORY_MIB"`

	// AuditRetention is how long audit events are stored. Deliveries of webhooks, which can
	// take 5 days, read their events there: at least 168h. Default 2160h (90 days).
	AuditRetention time.Duration `yaml:"audit_retention" env:"AUDIT_RETENTION"`

	// GraphDir is a folder in which the tuples of tenants are saved as they are in memory, so that
	// after a restart they need not be loaded from the database; "none" turns that off. Default:
	// graphs in DataDir with the embedded database; none with another.
	GraphDir string `yaml:"graph_dir" env:"GRAPH_DIR"`

	// IdleAfter is how long a tenant without requests stays in memory. Default 15m.
	IdleAfter time.Duration `yaml:"idle_after" env:"IDLE_AFTER"`

	// HistoryRetention is how long the history of relations is stored, which bounds the age of
	// consistency tokens, of cursors of lists and of watches. Default 24h.
	HistoryRetention time.Duration `yaml:"history_retention" env:"HISTORY_RETENTION"`

	// DrainDelay is how long the server goes on accepting requests after it begins to stop and
	// reports that it is not ready, so that load balancers notice. Default 0s.
	DrainDelay time.Duration `yaml:"drain_delay" env:"DRAIN_DELAY"`

	// DrainTimeout is how long requests in progress can then take before they are aborted.
	// Default 30s.
	DrainTimeout time.Duration `yaml:"drain_timeout" env:"DRAIN_TIMEOUT"`

	// LogLevel is debug, info, warn or error; messages of lower levels are dropped. Default
	// info.
	LogLevel slog.Level `yaml:"log_level" env:"LOG_LEVEL"`

	// LogFormat is json, for machines, or text. Default json; text with Dev.
	LogFormat string `yaml:"log_format" env:"LOG_FORMAT"`

	// AccessLog logs each request at level info: method, route, status, duration, bytes, and
	// the ids of request, trace, tenant and caller. Default false, because a line costs about a
	// third of the time of a check without its connection.
	AccessLog bool `yaml:"access_log" env:"ACCESS_LOG"`

	// TraceURL is the receiver of traces, by OTLP over HTTP in protobuf, such as
	// http://localhost:4318/v1/traces. Header fields that the receiver requires come from the
	// variable OTEL_EXPORTER_OTLP_HEADERS. Default: none, and nothing is traced.
	TraceURL string `yaml:"trace_url" env:"TRACE_URL"`

	// TraceSample is the share of traces that is recorded, from 0 to 1. A request with a
	// traceparent is recorded if the span of its caller is. Default 1.
	TraceSample float64 `yaml:"trace_sample" env:"TRACE_SAMPLE"`

	embedded bool // the database is the one in DataDir
}

// minAuditRetention is longer than the life of a webhook delivery: 14 h 36 min, or 5 days if the
// receiver asks for the longest pauses.
const minAuditRetention = 7 * 24 * time.Hour

func defaultConfig() Config {
	return Config{
		Listen:            "127.0.0.1:8080",
		AdminListen:       "127.0.0.1:9090",
		DataDir:           "./data",
		Docs:              true,
		RequestTimeout:    30 * time.Second,
		MaxRequests:       256,
		MaxStreams:        1000,
		MaxTenants:        management.MaxTenants,
		TenantShare:       50,
		CallerShare:       25,
		ResidentMemoryMiB: 1024,
		MappedMemoryMiB:   8192,
		AuditRetention:    eventlog.Retention,
		IdleAfter:         15 * time.Minute,
		HistoryRetention:  sqlstore.Retention,
		DrainTimeout:      30 * time.Second,
		TraceSample:       1,
		LeaseTime:         leasenode.DefaultLease,
	}
}

// bootstrapFile is the path of the credentials of the first start.
func (c Config) bootstrapFile() string { return filepath.Join(c.DataDir, "bootstrap.json") }

// makeDataDir creates the data folder, readable by its owner only, unless it exists.
func (c Config) makeDataDir() error {
	if !c.Dev && !c.embedded {
		return nil
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	return nil
}

// LogValue has the settings without secrets.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Bool("dev", c.Dev),
		slog.String("listen", c.Listen),
		slog.String("admin_listen", c.AdminListen),
		slog.String("data_dir", c.DataDir),
		slog.String("database_url", redacted(c.DatabaseURL)),
		slog.Int("database_conns", c.DatabaseConns),
		slog.String("master_key_file", c.MasterKeyFile),
		slog.String("lease_listen", c.LeaseListen),
		slog.String("lease_address", c.LeaseAddress),
		slog.Duration("lease_time", c.LeaseTime),
		slog.String("trusted_proxies", c.TrustedProxies.String()),
		slog.String("client_cert_header", c.ClientCertHeader),
		slog.String("rate_limits", c.RateLimits.String()),
		slog.String("mail_url", redacted(c.MailURL)),
		slog.String("mail_from", c.MailFrom),
		slog.String("text_url", redacted(c.TextURL)),
		slog.String("text_countries", c.TextCountries.String()),
		slog.String("control_url", c.ControlURL),
		slog.Bool("open_organizations", c.OpenOrganizations),
		slog.Int("max_tenants", c.MaxTenants),
		slog.String("regions", c.Regions.String()),
		slog.String("serve_regions", c.ServeRegions.String()),
		slog.String("serve_tenants", c.ServeTenants.String()),
		slog.Bool("allow_insecure_targets", c.AllowInsecureTargets),
		slog.String("breached_passwords_url", redacted(c.BreachedPasswordsURL)),
		slog.String("geo_file", c.GeoFile),
		slog.String("security_contact", c.SecurityContact),
		slog.Bool("docs", c.Docs),
		slog.Duration("request_timeout", c.RequestTimeout),
		slog.Int("max_requests", c.MaxRequests),
		slog.Int("tenant_share", c.TenantShare),
		slog.Int("caller_share", c.CallerShare),
		slog.Int("max_streams", c.MaxStreams),
		slog.Int64("resident_memory_mib", c.ResidentMemoryMiB),
		slog.Int64("mapped_memory_mib", c.MappedMemoryMiB),
		slog.String("graph_dir", c.GraphDir),
		slog.Duration("audit_retention", c.AuditRetention),
		slog.Duration("idle_after", c.IdleAfter),
		slog.Duration("history_retention", c.HistoryRetention),
		slog.Duration("drain_delay", c.DrainDelay),
		slog.Duration("drain_timeout", c.DrainTimeout),
		slog.String("log_level", c.LogLevel.String()),
		slog.String("log_format", c.LogFormat),
		slog.Bool("access_log", c.AccessLog),
		slog.String("trace_url", redacted(c.TraceURL)),
		slog.Float64("trace_sample", c.TraceSample),
	)
}

// redacted is a URL without its secrets.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "malformed"
	}
	if u.RawQuery != "" { // parameters can hold a password too
		u.RawQuery = "redacted"
	}
	return u.Redacted()
}
