package subscription

import (
	"errors"
	"strings"
	"testing"

	"stonetown/internal/outbound"
)

// URLs that lead to the inside of a network are refused when they are set.
func TestURLs(t *testing.T) {
	client := outbound.New(outbound.Config{})
	for text, reason := range map[string]string{
		"http://example.com/":                  "scheme",
		"HTTP://example.com/":                  "scheme",
		"ftp://example.com/":                   "scheme",
		"file:///etc/passwd":                   "url",
		"javascript:alert(1)":                  "url",
		"//example.com/":                       "scheme",
		"example.com":                          "url",
		"":                                     "url",
		"https://":                             "url",
		"https://user@example.com/":            "url",
		"https://user:password@example.com/":   "url",
		"https://example.com@169.254.169.254/": "url",
		"https://example.com/#fragment":        "url",
		"https://example.com\\@127.0.0.1/":     "url",
		"https://exam ple.com/":                "url",
		"https://example.com/\n":               "url",
		"https://b\u00fccher.example/":         "url",
		"https://example.com/" + strings.Repeat("x", 2048): "url",
		"https://example.com:22/":                          "port",
		"https://example.com:25/":                          "port",
		"https://example.com:6379/":                        "port",
		"https://example.com:/":                            "port",
		"https://example.com:0/":                           "port",
		"https://example.com:65536/":                       "port",
		"https://127.0.0.1/":                               "blocked_address",
		"https://127.9.9.9/":                               "blocked_address",
		"https://0.0.0.0/":                                 "blocked_address",
		"https://10.1.2.3/":                                "blocked_address",
		"https://172.16.0.1/":                              "blocked_address",
		"https://192.168.1.1/":                             "blocked_address",
		"https://100.64.0.1/":                              "blocked_address",
		"https://169.254.169.254/latest/meta-data":         "blocked_address",
		"https://[::1]/":                                   "blocked_address",
		"https://[::]/":                                    "blocked_address",
		"https://[::ffff:127.0.0.1]/":                      "blocked_address",
		"https://[::ffff:a00:1]/":                          "blocked_address",
		"https://[fd00:ec2::254]/":                         "blocked_address",
		"https://[fe80::1%25eth0]/":                        "blocked_address",
		"https://[64:ff9b::7f00:1]/":                       "blocked_address",
		"https://[2002:7f00:1::]/":                         "blocked_address",
		"https://localhost/":                               "blocked_address",
		"https://LOCALHOST:8443/":                          "blocked_address",
		"https://api.localhost/":                           "blocked_address",
		"https://printer.local/":                           "blocked_address",
		"https://metadata.google.internal/":                "blocked_address",
		"https://metadata/":                                "blocked_address",
		"https://0x7f.1/":                                  "host",
		"https://127.1/":                                   "host",
		"https://2130706433/":                              "host",
		"https://0177.0.0.1/":                              "host",
		"https://0x7f000001/":                              "host",
		"https://example.com./":                            "host",
		"https://example.com/hooks?a=b":                    "",
		"https://example.com:8443/":                        "",
		"https://8.8.8.8/":                                 "",
		"https://[2606:4700::1111]/":                       "",
	} {
		err := checkURL(client, text)
		var refused *URLError
		if errors.As(err, &refused) != (reason != "") || refused != nil && refused.Reason != reason {
			t.Errorf("%s: %v, want the reason %q", text, err, reason)
		}
		if refused != nil && (refused.Message == "" || strings.Contains(refused.Message, "password")) {
			t.Errorf("%s: %s", text, refused.Message)
		}
	}
}

// A group that is named as a subject is its members, and is represented as a group.
func TestGroups(t *testing.T) {
	s := Subscription{
		Owners: []Subject{{Type: "group", ID: "g"}}, Viewers: []Subject{{Type: "user", ID: "u"}},
		VisibleTo: &Visibility{Subject{Type: "group", ID: "g"}, "view"},
	}
	s.normalize()
	members := Subject{"group", "g", "member"}
	if s.Owners[0] != members || s.VisibleTo.Subject != members || s.Viewers[0].Relation != "" {
		t.Errorf("%+v, visible to %+v", s, s.VisibleTo)
	}
	d := s.Document()
	if group := (Subject{"group", "g", ""}); d.Owners[0] != group || d.VisibleTo.Subject != group || s.VisibleTo.Subject != members {
		t.Errorf("%+v, visible to %+v", d, d.VisibleTo)
	}
}
