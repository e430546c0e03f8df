package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"stonetown/internal/ratelimit"
)

func resolve(t *testing.T, args, environ []string) (Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	configFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return resolveConfig(flags, environ)
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each source takes precedence over the one before it, for each setting.
func TestConfigPrecedence(t *testing.T) {
	file := writeFile(t, `
listen: file:1
admin_listen: file:2
data_dir: file
request_timeout: 10s
trusted_proxies: [10.0.0.0/8, "fd00::/8"]
rate_limits: {admin.caller: 1/s, token.ip: unlimited}
log_level: warn
`)
	got, err := resolve(t,
		[]string{"--config", file, "--listen", "flag:1", "--trusted-proxies", "192.0.2.0/24"},
		[]string{"STONETOWN_LISTEN=env:1", "STONETOWN_ADMIN_LISTEN=env:2", "STONETOWN_RESIDENT_MEMORY_MIB=7", "STONETOWN_LOG_LEVEL=debug", "LISTEN=other:1"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.Listen = "flag:1"
	want.AdminListen = "env:2"
	want.DataDir = "file"
	want.RequestTimeout = 10 * time.Second
	want.ResidentMemoryMiB = 7
	want.LogLevel = slog.LevelDebug
	if err := want.TrustedProxies.Set("192.0.2.0/24"); err != nil {
		t.Fatal(err)
	}
	want.RateLimits = rateLimits{"admin.caller": "1/s", "token.ip": "unlimited"}
	if err := want.complete(); err != nil {
		t.Fatal(err)
	}
	options := cmp.Options{cmpopts.IgnoreUnexported(Config{}), cmp.Transformer("text", func(p prefixes) string { return p.String() })}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Error(diff)
	}

	// A flag takes precedence also if it repeats the default.
	got, err = resolve(t, []string{"--listen", defaultConfig().Listen}, []string{"STONETOWN_CONFIG=" + file})
	if err != nil || got.Listen != defaultConfig().Listen || got.AdminListen != "file:2" || got.TrustedProxies.String() != "10.0.0.0/8,fd00::/8" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A list in the file can be a text with commas, as in a flag.
func TestConfigLists(t *testing.T) {
	for _, file := range []string{
		"trusted_proxies: 10.0.0.0/8, fd00::/8\ntext_countries: +49,+1", "trusted_proxies: [10.0.0.0/8, 'fd00::/8']\ntext_countries: ['+49', '+1']",
		"trusted_proxies: \"10.0.0.0/8,fd00::/8\"\ntext_countries: \"+49, +1\"",
	} {
		got, err := resolve(t, []string{"--config", writeFile(t, file)}, nil)
		if err != nil || got.TrustedProxies.String() != "10.0.0.0/8,fd00::/8" || got.TextCountries.String() != "+49,+1" {
			t.Errorf("%s: %v %v, %v", file, got.TrustedProxies, got.TextCountries, err)
		}
	}
	for _, file := range []string{"trusted_proxies: 10.0.0.0", "trusted_proxies: {a: b}", "trusted_proxies: 10.0.0.0/8;fd00::/8", "text_countries: 49"} {
		if _, err := resolve(t, []string{"--config", writeFile(t, file)}, nil); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
	got, err := resolve(t, nil, []string{"STONETOWN_TEXT_COUNTRIES=+49,+1", "STONETOWN_TRUSTED_PROXIES=10.0.0.0/8,fd00::/8"})
	if err != nil || got.TrustedProxies.String() != "10.0.0.0/8,fd00::/8" || got.TextCountries.String() != "+49,+1" {
		t.Errorf("environment: %v %v, %v", got.TrustedProxies, got.TextCountries, err)
	}
}

// The help text names all limits that can be set.
func TestConfigHelpNamesFamilies(t *testing.T) {
	out, err := command(t, "serve", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range ratelimit.FamilyNames() {
		if !regexp.MustCompile(`rate-limits .*\b` + family + `\b`).MatchString(out) {
			t.Errorf("the help of --rate-limits does not name %s", family)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		file    string
		args    []string
		environ []string
		want    string
	}{
		"unknown key":         {file: "lisen: x:1", want: "lisen"},
		"repeated key":        {file: "listen: x:1\nlisten: x:2", want: "listen"},
		"wrong kind":          {file: "request_timeout: soon", want: "soon"},
		"not a map":           {file: "- listen", want: "cannot unmarshal"},
		"missing file":        {args: []string{"--config", missing}, want: missing},
		"environment":         {environ: []string{"STONETOWN_REQUEST_TIMEOUT=soon"}, want: "soon"},
		"two databases":       {args: []string{"--database-url", "x:y", "--database-url-file", "z"}, want: "both set"},
		"missing URL file":    {args: []string{"--database-url-file", missing}, want: missing},
		"log format":          {args: []string{"--log-format", "xml"}, want: "xml"},
		"no time":             {args: []string{"--request-timeout", "0s"}, want: "positive"},
		"no memory":           {args: []string{"--resident-memory-mib", "0"}, want: "positive"},
		"malformed networks":  {environ: []string{"STONETOWN_TRUSTED_PROXIES=10.0.0.0"}, want: "10.0.0.0"},
		"no requests":         {file: "max_requests: 0", want: "max_requests"},
		"share above all":     {file: "tenant_share: 101", want: "tenant_share"},
		"short retention":     {args: []string{"--audit-retention", "167h59m"}, want: "audit_retention must be at least 168h"},
		"no time in memory":   {args: []string{"--idle-after", "0s"}, want: "idle_after"},
		"short lease":         {args: []string{"--lease-time", "99ms"}, want: "lease_time must be from 100ms to 10s"},
		"leases of one":       {args: []string{"--lease-listen", "127.0.0.1:0"}, want: "lease_listen needs a database"},
		"leases nowhere":      {args: []string{"--database-url", "postgres://x/y", "--lease-listen", ":7000"}, want: "lease_address must be set"},
		"leases anywhere":     {args: []string{"--database-url", "postgres://x/y", "--lease-listen", "[::]:7000"}, want: "lease_address must be set"},
		"an address only":     {args: []string{"--lease-address", "10.0.0.1:7000"}, want: "lease_address needs lease_listen"},
		"no history":          {args: []string{"--history-retention", "59m"}, want: "history_retention"},
		"malformed limit":     {args: []string{"--rate-limits", "admin.caller=6000"}, want: "requests/unit"},
		"not a limit":         {file: "rate_limits: admin.caller", want: "cannot unmarshal"},
		"no https":            {args: []string{"--breached-passwords-url", "http://example.com/range/"}, want: "breached_passwords_url"},
		"no trace URL":        {args: []string{"--trace-url", "localhost:4318"}, want: "trace_url"},
		"share of traces":     {file: "trace_sample: 1.1", want: "trace_sample"},
		"no share of traces":  {environ: []string{"STONETOWN_TRACE_SAMPLE=NaN"}, want: "trace_sample"},
		"unknown family":      {environ: []string{"STONETOWN_RATE_LIMITS=checks.ip=1/s"}, want: `"checks.ip"`},
		"no family":           {file: "rate_limits: {none.ip: 1/s}", want: `"none.ip"`},
		"unknown kind":        {file: "rate_limits: {admin.user: 1/s}", want: `"admin.user"`},
		"malformed log level": {file: "log_level: loud", want: "loud"},
	} {
		if test.file != "" {
			test.args = append(test.args, "--config", writeFile(t, test.file))
		}
		_, err := resolve(t, test.args, test.environ)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error about %q", name, err, test.want)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	got, err := resolve(t, []string{"--data-dir", "/srv/a b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.DatabaseURL != "sqlite:///srv/a%20b/stonetown.db" || got.MasterKeyFile != "/srv/a b/master.key" || got.LogFormat != "json" || got.AllowInsecureTargets {
		t.Errorf("%+v", got)
	}
	got, err = resolve(t, []string{"--dev", "--database-url-file", writeFile(t, "postgres://db/x\n")}, nil)
	if err != nil || got.LogFormat != "text" || got.DatabaseURL != "postgres://db/x" || !got.AllowInsecureTargets {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every setting can be set in all three ways, under one name.
func TestConfigNames(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	configFlags(flags)
	known := map[string]bool{"config": true}
	for field := range reflect.TypeFor[Config]().Fields() {
		if !field.IsExported() {
			continue
		}
		name := field.Tag.Get("yaml")
		flag := strings.ReplaceAll(name, "_", "-")
		known[flag] = true
		if name == "" || field.Tag.Get("env") != strings.ToUpper(name) || flags.Lookup(flag) == nil {
			t.Errorf("%s: yaml %q, env %q, flag %v", field.Name, name, field.Tag.Get("env"), flags.Lookup(flag))
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !known[f.Name] || f.Usage == "" {
			t.Errorf("flag %s has no setting or no description", f.Name)
		}
	})
}

func TestConfigIsLoggedWithoutSecrets(t *testing.T) {
	var out bytes.Buffer
	for _, url := range []string{
		"postgres://user:hunter2@db/x", "postgres://db/x?user=u&password=hunter2", "postgres://%zz:hunter2@db",
	} {
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", slog.Any("config", Config{DatabaseURL: url, Listen: "here:1"}))
	}
	if strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), "here:1") {
		t.Error(out.String())
	}
}

func TestConfigRateLimits(t *testing.T) {
	got, err := resolve(t, nil, []string{"STONETOWN_RATE_LIMITS=token.caller=5/min,authz.caller=1000/s"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := resolve(t, []string{"--rate-limits", got.RateLimits.String()}, []string{"STONETOWN_RATE_LIMITS=admin.ip=1/s"})
	if err != nil {
		t.Fatal(err)
	}
	want := rateLimits{"token.caller": "5/min", "authz.caller": "1000/s"}
	if diff := cmp.Diff(want, again.RateLimits); diff != "" {
		t.Error(diff)
	}
}
