package outbound

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxURL bounds a URL, in bytes.
const maxURL = 2048

// CheckURL refuses a URL whose text shows that it can never be fetched; it resolves no names.
// It is for the time when a URL is set: [Client.Do] checks again, with the addresses. It
// fails with an [*Error] of the class [Invalid] or [BlockedAddress].
func (c *Client) CheckURL(text string) error {
	invalid := func(part, reason string) error { return &Error{Class: Invalid, Part: part, err: errors.New(reason)} }
	if len(text) > maxURL {
		return invalid("url", "longer than 2048 bytes")
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || text[i] == '\\' {
			return invalid("url", "a character that must be percent-encoded")
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "":
		return invalid("url", "not an absolute URL")
	case u.Scheme != "https" && (u.Scheme != "http" || !c.insecure):
		return invalid("scheme", "not https")
	case u.User != nil:
		return invalid("url", "user information in a URL")
	case strings.Contains(text, "#"):
		return invalid("url", "a fragment")
	case strings.HasSuffix(u.Host, ":"):
		return invalid("port", "an empty port")
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || slices.Contains(badPorts, uint16(n)) {
			return invalid("port", "a port that is not allowed")
		}
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		if !c.insecure && guard.SafeAddr(ip) != nil {
			return &Error{Class: BlockedAddress, err: errors.New("an address that is not on the public Internet")}
		}
		return nil
	}
	switch {
	case !isName(host):
		return invalid("host", "not a host name")
	case !c.insecure && isLocal(host):
		return &Error{Class: BlockedAddress, err: errors.New("a name that is not on the public Internet")}
	}
	return nil
}

// isName reports whether a text is the name of a host (RFC 1123 §2.1; underscores occur). A
// text with a number as its last label is not a name: resolvers read 127.1, 0x7f.1 and
// 2130706433 as addresses (WHATWG URL, "ends in a number").
func isName(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(strings.ToLower(host), ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// isLocal reports whether a name is local to a network: one without a domain, or below a
// domain for local use (RFC 6761, RFC 6762, RFC 8375). Clouds serve metadata below internal.
func isLocal(host string) bool {
	host = "." + strings.ToLower(host)
	return strings.Count(host, ".") == 1 || slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".home.arpa"}, func(suffix string) bool {
		return strings.HasSuffix(host, suffix)
	})
}

// badPorts are the ports of the Fetch Standard §2.9, whose services could misread an HTTP
// request, and those of Redis and memcached, which execute commands in any text.
var badPorts = []uint16{
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115,
	117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601,
	636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
	6697, 10080, 11211,
}
