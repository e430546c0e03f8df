package client

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// frameHost matches the hosts of frames: names and IPv4 addresses, with an optional port. It has no
// wildcard and no character that ends a directive of a content security policy.
var frameHost = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// validateFrontchannel refuses a frontchannel_logout_uri whose scheme, host and port are not those
// of a redirect URI (OIDC Front-Channel Logout §2).
func (a Application) validateFrontchannel() error {
	uri := a.FrontchannelLogoutURI
	if uri == "" {
		return nil
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || len(uri) > maxURI || !visible(uri) || strings.ContainsAny(uri, `#\`) || u.Opaque != "" || u.User != nil ||
		u.Scheme != "https" && u.Scheme != "http" || !frameHost.MatchString(u.Host):
		return &ValidationError{"frontchannel_logout_uri", "invalid", "must be an http or https URL without user information and fragment, whose host is a name in lower case or an IPv4 address, of at most 2,048 characters"}
	case !slices.Contains(originsOf(a.RedirectURIs), u.Scheme+"://"+u.Host):
		return &ValidationError{"frontchannel_logout_uri", "invalid", "must have the scheme, host and port of one of redirect_uris"}
	}
	return nil
}
