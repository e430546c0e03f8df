package threat

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// List is a set of entries of one kind. It is immutable.
type List struct {
	kind Kind
	// text has the entries in ascending order, each followed by a line feed, and starts where each
	// of them begins.
	text   string
	starts []uint32
	// bits are the lengths of the prefixes of networks in the list, the longest first.
	bits4, bits6 []int
}

// maxFirstBad bounds [State.FirstBad].
const maxFirstBad = 10

// Parse reads a list with an entry on each line. Comments begin with # or ;, as in the lists of FireHOL
// and Spamhaus. It fails if there is no entry, or if more than [MaxEntries] lines are not only a comment.
func Parse(kind Kind, text []byte) (l *List, bad int, firstBad []int, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var entries []string
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if i := bytes.IndexAny(line, "#;"); i >= 0 {
			line = line[:i]
		}
		field := string(bytes.TrimSpace(line))
		if field == "" {
			continue
		}
		if len(entries)+bad == MaxEntries {
			return nil, bad, firstBad, errTooLong
		}
		entry, ok := canonical(kind, field)
		if !ok {
			if bad++; len(firstBad) < maxFirstBad {
				firstBad = append(firstBad, number)
			}
			continue
		}
		entries = append(entries, entry)
	}
	slices.Sort(entries)
	entries = slices.Compact(entries)
	if len(entries) == 0 {
		return nil, bad, firstBad, errEmpty
	}
	return newList(kind, strings.Join(entries, "\n")+"\n"), bad, firstBad, nil
}

// newList returns the list with a sorted text.
func newList(kind Kind, text string) *List {
	l := &List{kind: kind, text: text, starts: make([]uint32, 0, strings.Count(text, "\n"))}
	for at := 0; at < len(text); {
		l.starts = append(l.starts, uint32(at))
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	if kind == Address {
		var seen4 [33]bool
		var seen6 [129]bool
		for i := range l.starts {
			if p, err := netip.ParsePrefix(l.entry(i)); err == nil && p.Addr().Is4() {
				seen4[p.Bits()] = true
			} else if err == nil {
				seen6[p.Bits()] = true
			}
		}
		l.bits4, l.bits6 = descending(seen4[:]), descending(seen6[:])
	}
	return l
}

func descending(seen []bool) (bits []int) {
	for n := len(seen) - 1; n >= 0; n-- {
		if seen[n] {
			bits = append(bits, n)
		}
	}
	return bits
}

// Len returns the number of entries.
func (l *List) Len() int { return len(l.starts) }

// size returns about how many bytes of memory the list takes.
func (l *List) size() int { return len(l.text) + 4*cap(l.starts) + 512 }

func (l *List) entry(i int) string {
	end := len(l.text)
	if i+1 < len(l.starts) {
		end = int(l.starts[i+1])
	}
	return l.text[l.starts[i] : end-1]
}

func (l *List) has(entry string) bool {
	i, j := 0, len(l.starts)
	for i < j {
		middle := int(uint(i+j) >> 1)
		switch c := strings.Compare(l.entry(middle), entry); {
		case c == 0:
			return true
		case c < 0:
			i = middle + 1
		default:
			j = middle
		}
	}
	return false
}

// Match returns the most specific entry that matches a value: an IP address, or the domain of an
// e-mail address. An address is matched by the networks that contain it, a domain by itself and the
// domains above it.
func (l *List) Match(value string) (entry string, ok bool) {
	if l.kind == MailDomain {
		// A label that no list can have does not keep the domains above it from matching.
		domain, _ := toASCII(value)
		for ok := true; ok; _, domain, ok = strings.Cut(domain, ".") {
			if l.has(domain) {
				return domain, true
			}
		}
		return "", false
	}
	a, err := netip.ParseAddr(value)
	if err != nil {
		return "", false
	}
	a = a.Unmap().WithZone("")
	bits := l.bits6
	if a.Is4() {
		bits = l.bits4
	}
	for _, n := range bits {
		p, err := a.Prefix(n)
		if entry = p.String(); err == nil && l.has(entry) {
			return entry, true
		}
	}
	return "", false
}

// canonical returns the form in which an entry is stored and compared.
func canonical(kind Kind, entry string) (string, bool) {
	if kind == MailDomain {
		entry = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(entry, "*"), "@"), ".")
		domain, ok := canonicalDomain(entry)
		// A top-level domain would match nearly everyone.
		return domain, ok && strings.Contains(domain, ".")
	}
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		a, err := netip.ParseAddr(entry)
		if err != nil || a.Zone() != "" {
			return "", false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 { // an IPv4 address in IPv6 (RFC 4291 §2.5.5.2)
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	// A network of all addresses is a mistake that would keep everyone out.
	return p.Masked().String(), p.Bits() > 0
}

// profile maps domains as mail and browsers do (UTS 46), without its rules for registration: the owner
// of a domain can use any name below it.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.CheckJoiners(false))

// toASCII returns the ASCII form of a domain, in lower case. With an error, only the labels without a
// fault are in that form.
func toASCII(domain string) (string, error) { return profile.ToASCII(strings.TrimSuffix(domain, ".")) }

// notOfDomain matches what no domain of a list has.
var notOfDomain = regexp.MustCompile(`[^a-z0-9._-]|\.\.`)

// canonicalDomain returns the form in which a domain is stored and compared.
func canonicalDomain(domain string) (string, bool) {
	ascii, err := toASCII(domain)
	if err != nil || ascii == "" || len(ascii) > 253 || notOfDomain.MatchString(ascii) {
		return "", false
	}
	_, err = netip.ParseAddr(ascii)
	return ascii, err != nil
}

// DomainOf returns the domain of an e-mail address; empty if it has none.
func DomainOf(email string) string {
	if at := strings.LastIndexByte(email, '@'); at >= 0 {
		return email[at+1:]
	}
	return ""
}

// chunkSize is the maximum size of a row of a list, in bytes.
const chunkSize = 256 << 10

// pack returns the rows of a list.
func (l *List) pack() (chunks [][]byte) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, l.text)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic("threat: " + err.Error()) // a buffer does not fail
	}
	return slices.Collect(slices.Chunk(b.Bytes(), chunkSize))
}

// unpack returns the list of some rows.
func unpack(kind Kind, chunks [][]byte) (*List, error) {
	z, err := gzip.NewReader(bytes.NewReader(bytes.Join(chunks, nil)))
	if err != nil {
		return nil, fmt.Errorf("read list: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("read list: %w", err)
	}
	return newList(kind, string(text)), nil
}
