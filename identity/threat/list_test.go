package threat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseAndMatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    Kind
		text    string
		entries int
		bad     []int
		match   map[string]string // value to entry; empty: none
	}{
		{
			"addresses and networks", Address,
			"\ufeff# FireHOL\n; Spamhaus\r\n\n203.0.113.0/24 ; SBL1\n203.0.113.7\n198.51.100.9 # one\n2001:db8::/32\n2001:db8::1\n::ffff:192.0.2.0/120\n203.0.113.255/24\n",
			6, nil,
			map[string]string{
				"203.0.113.7": "203.0.113.7/32", "203.0.113.8": "203.0.113.0/24", "203.0.114.0": "", "198.51.100.9": "198.51.100.9/32", "198.51.100.8": "",
				"2001:db8::1": "2001:db8::1/128", "2001:db8:ffff::": "2001:db8::/32", "2001:db9::": "", "::ffff:203.0.113.8": "203.0.113.0/24", "192.0.2.200": "192.0.2.0/24",
				"2001:db8::1%eth0": "2001:db8::1/128", "": "", "invalid": "", "203.0.113.0/24": "",
			},
		},
		{
			"bad addresses", Address, "203.0.113.7\n0.0.0.0/0\n::/0\n1.2.3\n1.2.3.4/33\nfe80::1%eth0\nexample.com\n1.2.3.4 5.6.7.8\n1.2.3.4-1.2.3.9\n\xff\n",
			1,
			[]int{2, 3, 4, 5, 6, 7, 8, 9, 10},
			map[string]string{"1.2.3.4": "", "203.0.113.7": "203.0.113.7/32"},
		},
		{
			"domains", MailDomain, "Example.COM\n*.wild.example\n@at.example\n.dot.example.\nmünchen.example\nsub.example.com\nunder_score.example\n",
			7, nil,
			map[string]string{
				"example.com": "example.com", "EXAMPLE.com": "example.com", "a.b.example.com": "example.com", "sub.example.com": "sub.example.com", "x.sub.example.com": "sub.example.com",
				"badexample.com": "", "example.com.evil.test": "", "com": "", "wild.example": "wild.example", "a.at.example": "at.example", "dot.example": "dot.example",
				"xn--mnchen-3ya.example": "xn--mnchen-3ya.example", "MÜNCHEN.example": "xn--mnchen-3ya.example", "example.com.": "example.com", "": "", "..": "",
				// The owner of a domain can use any name below it.
				"a_b.example.com": "example.com", "ab--cd.example.com": "example.com", "-a-.example.com": "example.com", "xn--a.example.com": "example.com",
				"x\u200d.example.com": "example.com", "x\u200d。example。com": "example.com", "a b.EXAMPLE.com": "example.com", strings.Repeat("a.", 200) + "example.com": "example.com",
			},
		},
		{
			"bad domains", MailDomain, "example.com\ncom\nlocalhost\n203.0.113.7\nhttp://example.org/\na b.example\nann@example.org\n..\n<html>\nx..y.example\n||example.org^\n",
			1,
			[]int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
			map[string]string{"example.com": "example.com", "example.org": ""},
		},
	} {
		l, bad, first, err := Parse(c.kind, []byte(c.text))
		if err != nil || l.Len() != c.entries || bad != len(c.bad) || !slices.Equal(first, c.bad) {
			t.Errorf("%s: %v, bad %d %v, %v", c.name, l, bad, first, err)
			continue
		}
		stored, err := unpack(c.kind, l.pack())
		if err != nil || stored.text != l.text || !slices.Equal(stored.starts, l.starts) {
			t.Errorf("%s: stored as %+v, %v", c.name, stored, err)
		}
		for value, want := range c.match {
			for _, l := range []*List{l, stored} {
				if entry, ok := l.Match(value); entry != want && ok || ok != (want != "") {
					t.Errorf("%s: %q matches %q, %v; want %q", c.name, value, entry, ok, want)
				}
			}
		}
	}
}

func TestParseLimits(t *testing.T) {
	for text, want := range map[string]error{"": errEmpty, "# nothing\n;\n": errEmpty, "<html>\nnothing\n": errEmpty} {
		if _, _, _, err := Parse(Address, []byte(text)); err != want {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	var b bytes.Buffer
	for n := range MaxEntries {
		fmt.Fprintf(&b, "10.%d.%d.%d\n", n>>16, n>>8&255, n&255)
	}
	l, _, _, err := Parse(Address, b.Bytes())
	if err != nil || l.Len() != MaxEntries {
		t.Fatalf("the longest list: %v", err)
	}
	if chunks := l.pack(); slices.ContainsFunc(chunks, func(c []byte) bool { return len(c) > chunkSize }) || len(chunks) < 2 {
		t.Errorf("%d rows", len(chunks))
	}
	if entry, ok := l.Match("10.3.13.63"); !ok || entry != "10.3.13.63/32" {
		t.Errorf("the last entry: %q, %v", entry, ok)
	}
	for _, more := range []string{"192.0.2.1\n", "bad\n"} {
		if _, _, _, err := Parse(Address, []byte(b.String()+more)); err != errTooLong {
			t.Errorf("%q more: %v", more, err)
		}
	}
	if _, _, _, err := Parse(Address, []byte(strings.Repeat("bad\n", MaxEntries)+"192.0.2.1\n")); err != errTooLong {
		t.Errorf("too many bad lines: %v", err)
	}
	if _, bad, first, _ := Parse(Address, []byte("192.0.2.1\n"+strings.Repeat("bad\n", 20))); bad != 20 || len(first) != maxFirstBad {
		t.Errorf("%d bad lines, first %v", bad, first)
	}
}

// The lists in memory are those of the tenants that were used last.
func TestMemory(t *testing.T) {
	m := newMemory(100)
	m.put("a", &lists{revision: 1, bytes: 60})
	m.put("a", &lists{revision: 2, bytes: 50})
	m.put("a", &lists{revision: 1, bytes: 60}) // older
	m.put("b", &lists{revision: 1, bytes: 50})
	if a := m.get("a"); a == nil || a.revision != 2 || m.bytes != 100 {
		t.Fatalf("%+v, %d bytes", a, m.bytes)
	}
	m.put("c", &lists{revision: 1, bytes: 10})
	if m.get("b") != nil || m.get("a") == nil || m.get("c") == nil || m.bytes != 60 {
		t.Errorf("the wrong lists were removed: %d bytes", m.bytes)
	}
	m.put("d", &lists{revision: 1, bytes: 200})
	if m.get("d") == nil || m.bytes != 200 || m.byID.Len() != 1 {
		t.Errorf("%d bytes of %d tenants", m.bytes, m.byID.Len())
	}
}
