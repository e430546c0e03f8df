package api

import (
	"net/http"
	"net/url"
	"strings"

	"stonetown/api/web"
)

// servedByControl reports whether an operation of tenants is also served at the address of the
// control plane: those by which its users sign in and look after their accounts, and those by which
// applications get tokens. The system tenant is not administered there, has no connections to
// identity providers, and registers no clients.
func servedByControl(op web.Operation) bool {
	if strings.HasPrefix(op.Path, "/saml/") {
		return false
	}
	switch op.Tag {
	case "auth", "me", "authorization", "oauth2", "userinfo", "discovery":
		return true
	}
	return false
}

// isProtocol reports whether a path belongs to OAuth 2.0 and OpenID Connect, whose clients do not
// know the error format of the control plane.
func isProtocol(path string) bool {
	return strings.HasPrefix(path, "/oauth2/") || strings.HasPrefix(path, "/.well-known/")
}

// hosts routes requests by their host: at the address of the control plane is its own interface, and
// at all others that of tenants.
type hosts struct {
	control          string // the host of the control plane; empty: there is none
	tenants, managed *router
}

// at returns the router of a request.
func (h *hosts) at(r *http.Request) *router {
	if h.control != "" && strings.EqualFold(strings.TrimSuffix(web.Host(r), "."), h.control) {
		return h.managed
	}
	return h.tenants
}

func (h *hosts) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.at(r).ServeHTTP(w, r) }

// Has implements [web.Paths].
func (h *hosts) Has(r *http.Request) bool { return h.at(r).Has(r) }

// hostOf returns the host of an address, without port.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return u.Hostname(), nil
}
