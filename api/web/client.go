package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
