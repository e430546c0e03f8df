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
	None        Family = "none"         // public documents
	Token       Family = "token"        // issuing tokens
	SignIn      Family = "sign-in"      // authentication
	Page        Family = "page"         // ceremonies that a page begins when it is shown
	SelfService Family = "self-service" // the user's own account
	Admin       Family = "admin"        // the configuration of a tenant
	Authz       Family = "authz"        // decisions, resources and relations
	Client      Family = "client"       // introspection and revocation

	Provisioning Family = "provisioning" // users and groups that a directory keeps, by SCIM
)

var families = []Family{Token, SignIn, Page, SelfService, Admin, Authz, Client, Provisioning}

// FamilyNames lists the families that limits can be set for.
func FamilyNames() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = string(f)
	}
	return names
}

// Known reports whether there is such a family.
func (f Family) Known() bool { return f == None || slices.Contains(families, f) }

// By is the party whose requests are counted together.
type By string

const (
	IP     By = "ip"     // those from an address
	Caller By = "caller" // those of a user or, without one, of a client
)

// Counted is what a limit counts. Its text form is family.by, such as token.ip.
type Counted struct {
	Family Family
	By     By
}

func (c Counted) String() string { return string(c.Family) + "." + string(c.By) }

// All is everything that a limit can count.
func All() []Counted {
	var all []Counted
	for _, f := range families {
		all = append(all, Counted{f, IP}, Counted{f, Caller})
	}
	return all
}

// ParseCounted reads the text form.
func ParseCounted(text string) (Counted, error) {
	family, by, _ := strings.Cut(text, ".")
	c := Counted{Family(family), By(by)}
	if !slices.Contains(families, c.Family) || c.By != IP && c.By != Caller {
		return Counted{}, fmt.Errorf("%q is not family.%s or family.%s with one of the families %q", text, IP, Caller, families)
	}
	return c, nil
}

// Limit is how many requests may come within a window. The zero value is no limit. Its
// text form is requests/unit, the unit being one of s, min, h and d, or unlimited; other
// windows are for limits in code.
type Limit struct {
	Requests int
	Window   time.Duration
}

// MaxRequests is the largest limit; more would be equal to none.
const MaxRequests = 10_000_000

var units = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

func (l Limit) String() string {
	for unit, window := range units {
		if window == l.Window {
			return strconv.Itoa(l.Requests) + "/" + unit
		}
	}
	if l == (Limit{}) {
		return "unlimited"
	}
	return strconv.Itoa(l.Requests) + "/" + l.Window.String()
}

// ParseLimit reads the text form.
func ParseLimit(text string) (Limit, error) {
	if text == "unlimited" {
		return Limit{}, nil
	}
	requests, unit, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(requests)
	l := Limit{n, units[unit]}
	if err != nil || l.validate() != nil {
		return Limit{}, fmt.Errorf("%q is neither unlimited nor requests/unit with 1 to %d requests and one of the units s, min, h, d", text, MaxRequests)
	}
	return l, nil
}

// validate refuses limits that have no text form.
func (l Limit) validate() error {
	if l == (Limit{}) {
		return nil
	}
	for _, window := range units {
		if window == l.Window && l.Requests >= 1 && l.Requests <= MaxRequests {
			return nil
		}
	}
	return fmt.Errorf("%d requests in %v is not a limit", l.Requests, l.Window)
}

// Limits are limits by the requests that they count. A missing one is not overridden.
type Limits map[Counted]Limit

// Defaults are the limits of a deployment without limits of its own.
func Defaults() Limits {
	return Limits{
		{Token, IP}:            {60, time.Minute},
		{Token, Caller}:        {600, time.Hour},
		{SignIn, IP}:           {30, time.Minute},
		{SignIn, Caller}:       {30, time.Minute}, // the codes of devices must not be guessed from many addresses
		{Page, IP}:             {600, time.Minute},
		{SelfService, Caller}:  {600, time.Hour},
		{Admin, Caller}:        {6000, time.Hour},
		{Client, Caller}:       {6000, time.Hour},
		{Provisioning, Caller}: {6000, time.Minute}, // Entra ID sends 25 requests in a second
	}
}

// ParseLimits reads limits in their text form.
func ParseLimits(text map[string]string) (Limits, error) {
	limits := Limits{}
	for _, name := range slices.Sorted(maps.Keys(text)) {
		counted, err := ParseCounted(name)
		if err != nil {
			return nil, err
		}
		if limits[counted], err = ParseLimit(text[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return limits, nil
}

// Text is the text form.
func (l Limits) Text() map[string]string {
	text := make(map[string]string, len(l))
	for counted, limit := range l {
		text[counted.String()] = limit.String()
	}
	return text
}
