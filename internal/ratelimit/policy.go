package ratelimit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Family is a group of operations that count against the same limits.
type Family string

const (
	None        Family = "none"         // what everyone may see, such as documents
	Token       Family = "token"        // getting tokens
	SignIn      Family = "sign-in"      // proving who one is
	SelfService Family = "self-service" // a user's own affairs
	Admin       Family = "admin"        // changing how a tenant is set up
	Authz       Family = "authz"        // decisions, and the resources and relations that they rest on
	Client      Family = "client"       // what clients do with tokens
)

// Limit is how many requests may come within a window. The zero value is no limit.
type Limit struct {
	Requests int
	Window   time.Duration
}

// Policy is what a family allows each IP address and each caller.
type Policy struct {
	IP     Limit
	Caller Limit // a user or, without one, a client
}

// Policies are the policies of families.
type Policies map[Family]Policy

// Defaults are the policies of a deployment that says nothing else.
func Defaults() Policies {
	return Policies{
		None:        {},
		Token:       {IP: Limit{60, time.Minute}, Caller: Limit{600, time.Hour}},
		SignIn:      {IP: Limit{30, time.Minute}},
		SelfService: {Caller: Limit{600, time.Hour}},
		Admin:       {Caller: Limit{6000, time.Hour}},
		Authz:       {},
		Client:      {Caller: Limit{6000, time.Hour}},
	}
}

// Known reports whether there is such a family.
func (f Family) Known() bool {
	_, ok := Defaults()[f]
	return ok
}

// units are the windows that a limit can be written with.
var units = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// ParseLimit reads requests/unit, such as 6000/h, or unlimited. The units are s,
// min, h and d.
func ParseLimit(text string) (Limit, error) {
	if text == "unlimited" {
		return Limit{}, nil
	}
	requests, unit, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(requests)
	l := Limit{n, units[unit]}
	if err != nil || l.Window == 0 {
		return Limit{}, fmt.Errorf("limit %q is neither requests/unit, with unit one of %s, nor unlimited", text, strings.Join(slices.Sorted(maps.Keys(units)), ", "))
	}
	return l, l.Validate()
}

// MaxRequests is the largest limit that can be told from none.
const MaxRequests = 10_000_000

// Validate refuses limits that cannot be kept.
func (l Limit) Validate() error {
	if l == (Limit{}) {
		return nil
	}
	if l.Requests < 1 || l.Requests > MaxRequests || l.Window < time.Second || l.Window > 24*time.Hour || l.Window%time.Second != 0 {
		return fmt.Errorf("a limit is 1 to %d requests within 1 second to 1 day", MaxRequests)
	}
	return nil
}
