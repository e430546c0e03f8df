package outbound

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func class(err error) Class {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Class
	}
	return ""
}

// notGlobal are addresses of this machine, of local networks, and unassigned ones.
var notGlobal = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", // this machine, private
	"169.254.169.254", "100.64.0.1", "100.127.255.255", "100.100.100.200", // link-local, CGNAT and the metadata that are there
	"192.0.0.1", "192.0.0.192", "192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.88.99.1", // documentation, benchmarks, relays
	"224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", // embedded
	"64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "64:ff9b:1:fffe::7f00:1", "2002:7f00:1::", "2002:808:808::1", // NAT64, 6to4
	"2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", // Teredo, ORCHID, documentation
	"100::1", "fc00::1", "fd00:ec2::254", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1", "2620:4f:8000::1",
}

// global are addresses beside those.
var global = []string{
	"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1", "169.253.1.1",
	"172.15.255.255", "172.32.0.1", "192.167.1.1", "192.169.1.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860::8888",
}

func TestCheckURL(t *testing.T) {
	c := New(Config{})
	for _, ip := range notGlobal {
		host := ip
		if strings.Contains(ip, ":") {
			host = "[" + strings.Replace(ip, "%", "%25", 1) + "]"
		}
		if err := c.CheckURL("https://" + host + "/x"); class(err) != BlockedAddress {
			t.Errorf("%s: %v", ip, err)
		}
	}
	for _, ip := range global {
		host := ip
		if strings.Contains(ip, ":") {
			host = "[" + ip + "]"
		}
		if err := c.CheckURL("https://" + host); err != nil {
			t.Errorf("%s: %v", ip, err)
		}
	}
	for want, texts := range map[Class][]string{
		"": {
			"https://example.com",
			"https://example.com:8443/a/b?c=d%20e",
			"https://EXAMPLE.com/",
			"https://xn--bcher-kva.example/",
			"https://a_b.example.com/",
			"https://3.example.com3/",
		},
		Invalid: {
			"http://example.com",
			"ftp://example.com",
			"file:///etc/passwd",
			"gopher://example.com",
			"//example.com",
			"/x",
			"",
			"https:",
			"https:example.com",
			"https:///x",
			"https://user@example.com",
			"https://user:pass@example.com",
			"https://@example.com",
			"https://example.com@10.0.0.1",
			"https://example.com\\@10.0.0.1",
			"https://example.com#x",
			"https://example.com#",
			"https://example.com/ x",
			"https://example.com/\r\nx",
			"https://bücher.example",
			"https://ex%61mple.com",
			"https://127.0.0.1%00.example.com",
			"https://example.com:",
			"https://example.com:0",
			"https://example.com:22",
			"https://example.com:022",
			"https://example.com:6379",
			"https://example.com:10080",
			"https://example.com:65536",
			"https://example.com:99999999999999999999",
			"https://2130706433",
			"https://0x7f.1",
			"https://0x7f000001",
			"https://0177.0.0.1",
			"https://127.1",
			"https://127.0.0.1.",
			"https://1.2.3.4.5",
			"https://example.com.",
			"https://.example.com",
			"https://a..b",
			"https://-a.example.com",
			"https://[::1",
			"https://[example.com]",
			"https://" + strings.Repeat("a", 64) + ".com",
			"https://" + strings.Repeat("a.", 130) + "com",
			"https://example.com/" + strings.Repeat("a", 2048),
		},
		BlockedAddress: {
			"https://localhost",
			"https://LOCALHOST",
			"https://a.localhost",
			"https://metadata",
			"https://metadata.google.internal/computeMetadata/",
			"https://printer.local",
		},
	} {
		for _, text := range texts {
			if err := c.CheckURL(text); class(err) != want {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
		}
	}

	if !slices.IsSorted(badPorts) {
		t.Error("ports are not in order")
	}

	// In development, the rest of the rules stays.
	c = New(Config{AllowInsecure: true})
	for text, want := range map[string]Class{
		"http://localhost:8080/x": "", "http://127.0.0.1:8080": "", "https://10.0.0.1": "", "http://[::1]:8080": "",
		"http://user@localhost": Invalid, "http://localhost:22": Invalid, "ftp://localhost": Invalid, "http://2130706433": Invalid,
	} {
		if err := c.CheckURL(text); class(err) != want {
			t.Errorf("insecure %q: %v, want %q", text, err, want)
		}
	}
}

// Addresses that the guard accepts are global by the predicates of package netip.
func FuzzGuard(f *testing.F) {
	for _, ip := range slices.Concat(notGlobal, global) {
		f.Add(netip.MustParseAddr(ip).AsSlice())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ip, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		allowed := guard.SafeAddr(ip) == nil
		if dialed := guard.Safe("tcp4", netip.AddrPortFrom(ip, 443).String(), nil) == nil; dialed != allowed {
			t.Errorf("%s: dialed %v, allowed %v", ip, dialed, allowed)
		}
		if !allowed {
			return
		}
		if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.Is4In6() || ip.Zone() != "" {
			t.Errorf("%s is allowed", ip)
		}
		if ip.Is6() && ip.As16()[0]>>5 != 1 { // 2000::/3
			t.Errorf("%s is allowed", ip)
		}
		if guard.SafeAddr(netip.AddrFrom16(ip.As16())) == nil && ip.Is4() {
			t.Errorf("%s is allowed within IPv6", ip)
		}
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, text := range []string{"https://example.com:8443/a?b=c", "https://[::1]/", "https://0x7f.1", "https://a@b", "https://%31%32%37.0.0.1/", "https://[2606:4700::1111]:443/%zz", "https://a:022"} {
		f.Add(text)
	}
	c := New(Config{})
	f.Fuzz(func(t *testing.T, text string) {
		if c.CheckURL(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Hostname() == "" || u.Fragment != "" || len(text) > maxURL {
			t.Fatalf("%q is accepted: %v", text, err)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && guard.SafeAddr(ip) != nil {
			t.Errorf("%q is accepted", text)
		}
		if err := c.CheckURL(u.String()); err != nil && len(u.String()) <= maxURL {
			t.Errorf("%q is accepted and %q is not: %v", text, u, err)
		}
	})
}
