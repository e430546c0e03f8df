// Package id makes the identifiers of the product: a prefix that names the
// kind of thing, an underscore, and 26 random lower-case characters, such as
// tnt_k3q7v2m5x4r6t2w7a2c3d4e5f6.
//
// The random part carries 130 bits, so ids need no coordination, cannot be
// guessed, and spread evenly over a database's key range: rows created at the
// same time do not crowd on one node. An id says nothing about when it was
// made. Ids are not secrets; nothing may be allowed because an id is known.
package id

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"
)

// The kinds of thing that have ids.
const (
	Organization = "org"
	Member       = "mem" // of an organisation
	Invitation   = "inv"
	Tenant       = "tnt"
	User         = "usr"
	Group        = "grp"
	Import       = "job"
	Application  = "app"
	Client       = "client" // the public name of an application in OAuth
	Token        = "tok"    // the jti of an access token
	Event        = "evt"
	Session      = "ses"
	Factor       = "factor" // a second factor
	Job          = "qjb"    // a job in the background
	EmailChange  = "pec"
	Grant        = "gnt" // the access that a user gives to an application

	WebhookSubscription = "whs"
	WebhookDelivery     = "whd"
	DeadLetter          = "dle" // a delivery of which all attempts failed

	TrustedIssuer  = "iss" // whose tokens workloads exchange
	Incident       = "brc"
	ThreatFeed     = "thf"
	Notification   = "ntf" // of users that an incident affects
	Connection     = "fed" // to an identity provider
	ConnectionTest = "tst"
	Report         = "rpt"
	ReportRun      = "run"
)

const (
	// alphabet is that of base32, in lower case: a character has 5 bits.
	alphabet  = "abcdefghijklmnopqrstuvwxyz234567"
	randomLen = 26
)

// New returns a fresh id of the given kind. It is safe for concurrent use and
// cannot fail: crypto/rand ends the process rather than return weak bytes.
func New(kind string) string {
	var random [randomLen]byte
	_, _ = rand.Read(random[:]) // never fails
	for i, bits := range random {
		random[i] = alphabet[bits&31]
	}
	return kind + "_" + string(random[:])
}

// Of returns an id of the given kind that is derived from parts: equal for equal parts, and
// otherwise as unlike others as those of [New].
func Of(kind string, parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return kind + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)))[:randomLen]
}

// The characters of the time in an id of [NewOrdered], in the order in which texts compare.
const ordered = "234567abcdefghijklmnopqrstuvwxyz"

// timeLen is the length of that time: 50 bits of milliseconds.
const timeLen = 10

// NewOrdered returns a fresh id that begins with a time, in milliseconds: ids compare as their
// times do, and random characters with 80 bits follow. It is for rows that are added
// to the end of a long list and read in the order of time.
func NewOrdered(kind string, at time.Time) string {
	return Earliest(kind, at) + strings.ToLower(rand.Text()[:randomLen-timeLen])
}

// Earliest returns a prefix that compares before the ids of [NewOrdered] of a time and later, and after
// all earlier ones.
func Earliest(kind string, at time.Time) string {
	var text [timeLen]byte
	ms := uint64(max(0, at.UnixMilli()))
	for i := range text {
		text[timeLen-1-i] = ordered[ms&31]
		ms >>= 5
	}
	return kind + "_" + string(text[:])
}

// OfRequest returns a fresh id of a request, req_…. There is one for every request
// and guessing one is of no use, so it comes from the runtime's generator, which is faster.
func OfRequest() string {
	text := [4 + randomLen]byte{'r', 'e', 'q', '_'}
	var bits uint64
	for i := range randomLen {
		if i%12 == 0 {
			bits = mathrand.Uint64()
		}
		text[4+i] = alphabet[bits&31]
		bits >>= 5
	}
	return string(text[:])
}
