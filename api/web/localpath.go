package web

import (
	"net/url"
	"strings"
)

// IsLocalPath reports whether a text is a path of the tenant's own host, with an optional query.
// Browsers resolve some such texts to another host: //host, /\host, and texts with tabs or line
// breaks, which they remove (WHATWG URL §4.4).
func IsLocalPath(text string) bool {
	if strings.HasPrefix(text, "//") || strings.Contains(text, "\\") || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && !u.IsAbs() && u.Host == "" && strings.HasPrefix(u.Path, "/")
}
