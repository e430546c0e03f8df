package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stonetown/controlplane"
	"stonetown/identity/password/breached"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/leasenode"
)

// complete sets settings that follow from others, so that later code need not test for them,
// and refuses contradictions.
func (c *Config) complete() error { return errors.Join(c.setDefaults(), c.validate()) }

// setDefaults fills in settings that follow from others.
func (c *Config) setDefaults() error {
	var problems []error
	if c.DatabaseURLFile != "" {
		text, err := os.ReadFile(c.DatabaseURLFile)
		if err != nil {
			problems = append(problems, fmt.Errorf("database_url_file: %w", err))
		}
		if c.DatabaseURL != "" {
			problems = append(problems, errors.New("database_url and database_url_file are both set"))
		}
		c.DatabaseURL = strings.TrimSpace(string(text))
	}
	if c.DatabaseURL == "" {
		path, err := filepath.Abs(filepath.Join(c.DataDir, "stonetown.db"))
		if err != nil {
			problems = append(problems, fmt.Errorf("data_dir: %w", err))
		}
		c.DatabaseURL = sqldb.SQLiteURL(path)
		c.embedded = true
		if c.GraphDir == "" {
			c.GraphDir = filepath.Join(c.DataDir, "graphs")
		}
	}
	if c.GraphDir == "" {
		c.GraphDir = noGraphDir
	}
	if c.MasterKeyFile == "" {
		c.MasterKeyFile = filepath.Join(c.DataDir, "master.key")
	}
	c.AllowInsecureTargets = c.AllowInsecureTargets || c.Dev
	c.OpenOrganizations = c.OpenOrganizations || c.Dev
	if c.LogFormat == "" {
		c.LogFormat = "json"
		if c.Dev {
			c.LogFormat = "text"
		}
	}
	return errors.Join(problems...)
}

// noGraphDir is the graph_dir with which nothing is saved.
const noGraphDir = "none"

// validate reports all settings that are not valid.
func (c *Config) validate() error {
	var problems []error
	for _, rule := range []struct {
		holds   bool
		problem string
	}{
		{c.LogFormat == "json" || c.LogFormat == "text", fmt.Sprintf("log_format is %q; it must be json or text", c.LogFormat)},
		{c.SecurityContact == "" || isURI(c.SecurityContact), fmt.Sprintf("security_contact %q is not a URI; use for example mailto:security@example.com", c.SecurityContact)},
		{c.ControlURL == "" || isControlURL(c.ControlURL), fmt.Sprintf("control_url %q is not http(s)://host in lower case, with a host of two labels or more, such as https://control.example.com", c.ControlURL)},
		{c.ClientCertHeader == "" || isField(c.ClientCertHeader), "client_cert_header is not the name of a header field, such as Client-Cert"},
		{c.ClientCertHeader == "" || len(c.TrustedProxies) > 0, "client_cert_header needs trusted_proxies, because only they can pass certificates"},
		{c.MaxTenants > 0, "max_tenants must be positive"},
		{c.MailURL == "" || c.MailFrom != "", "mail_url needs mail_from"},
		{c.TextURL == "" || isHTTP(c.TextURL), "text_url is not an http(s) URL"},
		{c.TraceURL == "" || isHTTP(c.TraceURL), "trace_url is not an http(s) URL"},
		{c.TraceSample >= 0 && c.TraceSample <= 1, "trace_sample must be from 0 to 1"}, // false for NaN
		{c.RequestTimeout > 0 && c.DrainTimeout > 0 && c.DrainDelay >= 0, "request_timeout and drain_timeout must be positive and drain_delay not negative"},
		{c.AuditRetention >= minAuditRetention, "audit_retention must be at least 168h, because webhook deliveries that are retried read their events"},
		{c.IdleAfter >= time.Second, "idle_after must be at least 1s"},
		{c.HistoryRetention >= time.Hour, "history_retention must be at least 1h"},
		{c.LeaseTime >= leasenode.MinLease && c.LeaseTime <= leasenode.MaxLease, fmt.Sprintf("lease_time must be from %v to %v", leasenode.MinLease, leasenode.MaxLease)},
		{c.LeaseListen == "" || strings.HasPrefix(c.DatabaseURL, "postgres"), "lease_listen needs a database that several processes share; the embedded database does not need leases"},
		{c.LeaseAddress == "" || c.LeaseListen != "", "lease_address needs lease_listen"},
		{c.LeaseListen == "" || c.LeaseAddress != "" || hasHost(c.LeaseListen), "lease_listen has no host, so lease_address must be set: the host:port at which other processes reach this one"},
		{c.MaxRequests > 0 && c.MaxStreams > 0, "max_requests and max_streams must be positive"},
		{isPercentage(c.TenantShare) && isPercentage(c.CallerShare), "tenant_share and caller_share must be percentages from 1 to 100"},
		{c.ResidentMemoryMiB > 0 && c.MappedMemoryMiB >= 0 && c.DatabaseConns >= 0, "resident_memory_mib must be positive, mapped_memory_mib and database_conns not negative"},
	} {
		if !rule.holds {
			problems = append(problems, errors.New(rule.problem))
		}
	}
	if _, err := ratelimit.ParseLimits(c.RateLimits); err != nil {
		problems = append(problems, fmt.Errorf("rate_limits: %w", err))
	}
	if _, err := breached.New(breached.Config{URL: c.BreachedPasswordsURL}); c.BreachedPasswordsURL != "" && err != nil {
		problems = append(problems, fmt.Errorf("breached_passwords_url is %w", err))
	}
	for _, code := range c.TextCountries {
		if !strings.HasPrefix(code, "+") {
			problems = append(problems, fmt.Errorf("text_countries: %q does not begin with +", code))
		}
	}
	return errors.Join(problems...)
}

// hasHost reports whether others can use the address of a listener.
func hasHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsUnspecified()
}

// isField reports whether a text is the name of a header field (RFC 9110 §5.1) that can only be
// that of a proxy.
func isField(text string) bool {
	name := textproto.CanonicalMIMEHeaderKey(text)
	return strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" && !slices.Contains([]string{"Authorization", "Cookie", "Host", "Dpop", "Content-Type", "X-Forwarded-For"}, name)
}

func isPercentage(n int) bool { return n >= 1 && n <= 100 }

func isURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.IsAbs()
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// isControlURL reports whether tenants can have addresses beside that of a control plane.
func isControlURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	_, domain, _ := strings.Cut(u.Hostname(), ".")
	return domain != "" && controlplane.ValidBaseURL(text) == nil
}
