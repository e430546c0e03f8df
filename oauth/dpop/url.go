package dpop

import (
	"cmp"
	"net/url"
	"strings"
)

// normalize returns the normal form of an absolute http or https URL, without query and
// fragment (RFC 3986 §6.2.2 and §6.2.3): lower case of scheme and host, no default port, no
// unnecessary escapes and the others in upper case, no dot segments. It reports whether the
// URL is one.
func normalize(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User != nil || u.Hostname() == "" {
		return "", false
	}
	host, port := strings.ToLower(u.Host), u.Port()
	if port == "" || u.Scheme+":"+port == "http:80" || u.Scheme+":"+port == "https:443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	path, ok := normalizePath(cmp.Or(u.RawPath, u.EscapedPath()))
	return u.Scheme + "://" + host + path, ok && (u.Scheme == "http" || u.Scheme == "https")
}

// normalizePath returns the normal form of a path. Characters that a URL must escape are
// escaped, because browsers do not escape all of them.
func normalizePath(raw string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			octet, err := url.PathUnescape(raw[i:min(i+3, len(raw))])
			if err != nil {
				return "", false
			}
			i += 2
			if c = octet[0]; !unreserved(c) {
				escape(&b, c)
				continue
			}
		} else if !unreserved(c) && strings.IndexByte("/:@!$&'()*+,;=", c) < 0 {
			escape(&b, c)
			continue
		}
		b.WriteByte(c)
	}
	return removeDots(b.String()), true
}

func escape(b *strings.Builder, c byte) {
	const hex = "0123456789ABCDEF"
	b.Write([]byte{'%', hex[c>>4], hex[c&15]})
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// removeDots resolves the segments . and .. of an absolute path (RFC 3986 §5.2.4). All others
// stay, also empty ones.
func removeDots(path string) string {
	var kept []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments {
		dots := segment == "." || segment == ".."
		if segment == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if !dots {
			kept = append(kept, segment)
		} else if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
