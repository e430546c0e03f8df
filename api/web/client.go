package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"stonetown/oauth/mtls"
)

// clientIP returns the address of the client: the peer or, if the peer is a trusted proxy, the
// last address in X-Forwarded-For that is not a trusted proxy. The client can forge all addresses
// before that.
func (s *Server) clientIP(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	ip := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.trusts(ip) {
			break
		}
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		ip = next.Unmap()
	}
	return ip
}

func (s *Server) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(s.trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// clientCertificates removes the header field with the certificate of the client from a request, and
// returns its values if the peer is a trusted proxy: anyone else can write any certificate into it.
func (s *Server) clientCertificates(r *http.Request) []string {
	if s.certs == "" {
		return nil
	}
	values := r.Header.Values(s.certs)
	r.Header.Del(s.certs)
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !s.trusts(peer.Addr().Unmap()) {
		return nil
	}
	return values
}

// ClientCertificate returns the certificate of the client (RFC 8705); nil: there is none. It fails if
// it is malformed or has expired.
func (info *RequestInfo) ClientCertificate() (*mtls.Certificate, error) {
	return mtls.Parse(info.certificates, time.Now())
}

// certificateThumbprint returns the thumbprint of the certificate; empty without a valid one.
func (info *RequestInfo) certificateThumbprint() string {
	c, err := info.ClientCertificate()
	if err != nil || c == nil {
		return ""
	}
	return c.Thumbprint
}
