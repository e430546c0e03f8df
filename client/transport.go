package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// attemptTimeout bounds one request: the timeout of the server, and the time to transfer a
// large page.
const attemptTimeout = time.Minute

// NewHTTP returns the default HTTP client. Names under localhost lead to this machine, without
// the resolver and without a proxy (RFC 6761 §6.3), because development servers distinguish
// tenants by such names, and many resolvers do not have them.
func NewHTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if isLocalhost(r.URL.Hostname()) {
			return nil, nil
		}
		return http.ProxyFromEnvironment(r)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil || !isLocalhost(host) {
			return dialer.DialContext(ctx, network, address)
		}
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn, nil
		}
		conn, err6 := dialer.DialContext(ctx, network, net.JoinHostPort("::1", port))
		if err6 == nil {
			return conn, nil
		}
		return nil, errors.Join(err, err6)
	}
	transport.MaxIdleConnsPerHost = 16 // for concurrent calls
	return &http.Client{
		Transport: transport,
		Timeout:   attemptTimeout,
		// The API does not redirect, and a redirect would send tokens elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func isLocalhost(host string) bool {
	host = "." + strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasSuffix(host, ".localhost")
}
