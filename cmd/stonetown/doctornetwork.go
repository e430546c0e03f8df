package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stonetown/client"
	"stonetown/controlplane"
	"stonetown/internal/notify"
)

const (
	examinedHosts   = 20 // tenants whose hosts are examined
	certificateLeft = 14 * 24 * time.Hour
	largestExamined = 1 << 20 // bytes of a response
)

// get requests a URL.
func get(ctx context.Context, address string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	c := client.NewHTTP()
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestExamined))
	return resp, body, err
}

// examineServer asks the server of this machine whether it is ready.
func examineServer(ctx context.Context, config Config, f *findings) {
	resp, body, err := get(ctx, "http://"+localAddress(config.AdminListen)+"/readyz")
	switch {
	case err != nil:
		f.warn("start it, or run this command where it runs", "no server answers at admin_listen (%s)", config.AdminListen)
	case resp.StatusCode != http.StatusOK:
		f.problem("see its log", "the server is not ready: %s", strings.TrimSpace(string(body)))
	default:
		f.fine("the server is ready")
	}
}

// examineHosts requests the addresses of tenants and of the control plane, as clients do.
func examineHosts(ctx context.Context, config Config, f *findings) {
	var tenants []controlplane.Tenant
	db, err := openReader(ctx, config)
	if err == nil {
		defer db.Close()
		tenants, err = tenantsOf(ctx, db, examinedHosts)
	}
	if err != nil {
		f.warn("see the findings about the database", "the hosts of tenants are not known")
	}
	for _, t := range tenants {
		if t.State == controlplane.TenantActive {
			examineHost(ctx, f, t.BaseURL)
		}
	}
	if config.ControlURL != "" {
		examineAddress(ctx, f, config.ControlURL, config.ControlURL+"/")
	}
}

// examineHost examines the host of a tenant, which has to answer under its own name.
func examineHost(ctx context.Context, f *findings, base string) {
	resp, body := examineAddress(ctx, f, base, base+"/.well-known/openid-configuration")
	if resp == nil {
		return
	}
	var discovery struct{ Issuer string }
	switch {
	case resp.StatusCode == http.StatusMisdirectedRequest || resp.StatusCode == http.StatusNotFound:
		f.problem("let the proxy pass the header Host on unchanged", "%s answers with status %d: the request reaches a server that does not know the host", base, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		f.problem("see the logs of the proxy and of the server", "%s answers with status %d", base, resp.StatusCode)
	case json.Unmarshal(body, &discovery) != nil || discovery.Issuer != base:
		f.problem("point the host to this deployment", "another program answers at %s, or one with the issuer %q", base, discovery.Issuer)
	default:
		f.fine("%s answers", base)
	}
}

// examineAddress examines name, connection and certificate of an address. The response is nil if there
// is none.
func examineAddress(ctx context.Context, f *findings, base, address string) (*http.Response, []byte) {
	u, err := url.Parse(base)
	if err != nil {
		f.problem("correct it", "%q is not a URL", base)
		return nil, nil
	}
	local := u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost")
	if _, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil && !local {
		f.problem("create a record in the DNS that leads to the proxy", "the name %s is not found: %v", u.Hostname(), err)
		return nil, nil
	}
	if u.Scheme == "http" && !local {
		f.warn("use https, which a proxy provides", "%s is not encrypted", base)
	}
	resp, body, err := get(ctx, address)
	if err != nil {
		f.problem("check the proxy, its certificate, and that it is reached from here", "%s does not answer: %v", base, err)
		return nil, nil
	}
	if resp.TLS != nil {
		if left := time.Until(resp.TLS.PeerCertificates[0].NotAfter); left < certificateLeft {
			f.warn("renew it", "the certificate of %s ends in %.0f days", base, left.Hours()/24)
		}
	}
	return resp, body
}

// examineProxy examines whether the addresses of clients are known.
func examineProxy(_ context.Context, config Config, f *findings) {
	switch {
	case len(config.TrustedProxies) > 0:
		f.fine("addresses of clients come from the proxies in trusted_proxies")
	case config.Dev:
		f.fine("a development server needs no proxy")
	default:
		f.warn("set trusted_proxies to the addresses of the proxy", "trusted_proxies is not set: behind a proxy all clients have its address, and share its limits")
	}
}

// examineMail connects to the mail server.
func examineMail(ctx context.Context, config Config, f *findings) {
	if config.MailURL == "" {
		if config.Dev {
			f.fine("a development server stores mails in its folder")
		} else {
			f.warn("set mail_url and mail_from", "no mails are sent: users cannot confirm addresses or replace forgotten passwords")
		}
		return
	}
	password, err := readSecret(config.MailPasswordFile)
	if err != nil {
		f.problem("correct mail_password_file", "the password of the mail server cannot be read: %v", err)
		return
	}
	mailer, err := notify.NewSMTP(config.MailURL, password, config.MailFrom)
	if err == nil {
		err = mailer.Check(ctx)
	}
	if err != nil {
		f.problem("check mail_url, its password, and that the mail server is reached from here", "%v", err)
		return
	}
	f.fine("the mail server accepts connections")
}

// examineServices examines the services that are optional.
func examineServices(ctx context.Context, config Config, f *findings) {
	if config.BreachedPasswordsURL == "" {
		if !config.Dev {
			f.warn("set breached_passwords_url", "passwords that are known from breaches are accepted")
		}
		return
	}
	resp, _, err := get(ctx, config.BreachedPasswordsURL+"00000")
	if err != nil || resp.StatusCode != http.StatusOK {
		f.problem("check breached_passwords_url, and that it is reached from here", "the service for breached passwords does not answer")
		return
	}
	f.fine("the service for breached passwords answers")
}
