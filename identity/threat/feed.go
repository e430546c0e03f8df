package threat

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the kind of the entries of a feed.
type Kind string

// The kinds of entries.
const (
	Address    Kind = "address"
	MailDomain Kind = "mail_domain"
)

// Source is where the entries of a feed come from.
type Source string

// The sources of entries.
const (
	FromURL    Source = "url"
	FromUpload Source = "upload"
)

// Mode is the effect of a match.
type Mode string

// The modes of a feed.
const (
	Log    Mode = "log"    // an event
	Refuse Mode = "refuse" // an event, and the sign-in or sign-up is refused
)

// Settings are the properties of a feed that can be changed.
type Settings struct {
	Name     string
	URL      string // of a feed from a URL; otherwise empty
	Mode     Mode
	Enabled  bool
	RefreshS int // seconds between fetches of a feed from a URL; otherwise 0
}

// Feed is a threat feed.
type Feed struct {
	ID       string // in the order of time
	TenantID string
	Kind     Kind
	Source   Source
	Settings
	State

	CreatedAt, UpdatedAt time.Time // UTC, as the others

	version int64 // of the list; 0: there was none yet
	chunks  int   // the number of rows of the list
	digest  string
	// The validators of the list at the URL (RFC 9110 §8.8).
	etag, lastModified string

	requestedAt time.Time // the last request to fetch at once
}

// State is the state of the list of a feed.
type State struct {
	Entries   int
	BadLines  int       // lines that are no entries
	FirstBad  []int     // the numbers of the first of them
	ListedAt  time.Time // the last successful fetch or upload; zero: there was none
	CheckedAt time.Time // the last fetch
	FailingAt time.Time // the first of the fetches that have failed since; zero: the last succeeded
	Failure   string    // of the last fetch; empty: it succeeded
}

// The bounds of feeds.
const (
	MaxFeeds   = 10      // of a tenant
	MaxEntries = 200_000 // of a feed
	MaxBytes   = 8 << 20 // of a list as it is fetched or uploaded

	LeastRefreshS   = 15 * 60
	MostRefreshS    = 7 * 24 * 60 * 60
	DefaultRefreshS = 6 * 60 * 60

	// RefreshPause is the minimum time between two requests to fetch a list at once.
	RefreshPause = time.Minute
)

var (
	// ErrNotFound is returned for a feed that does not exist.
	ErrNotFound = errors.New("threat feed not found")
	// ErrTooMany is returned for a feed beyond [MaxFeeds].
	ErrTooMany = fmt.Errorf("a tenant has at most %d threat feeds", MaxFeeds)
	// ErrSource is returned for an upload to a feed from a URL, and for fetching an uploaded one.
	ErrSource = errors.New("the entries of the threat feed have another source")
	// ErrTooSoon is returned for a request to fetch within [RefreshPause] of another one.
	ErrTooSoon = fmt.Errorf("a list is fetched at most once every %d seconds on request", int(RefreshPause.Seconds()))
	// ErrDisabled is returned for a request to fetch the list of a disabled feed.
	ErrDisabled = errors.New("the threat feed is disabled")
	// ErrValue is returned for a value that no feed of a kind can have.
	ErrValue = errors.New("not a value of the kind of the threat feed")

	errEmpty   = errors.New("the list has no valid entries")
	errTooLong = fmt.Errorf("the list has more than %d entries", MaxEntries)
)

// ListError is returned for an uploaded list that cannot replace the present one.
type ListError struct{ err error }

func (e *ListError) Error() string { return e.err.Error() }

// URLError is returned for a URL that can never be fetched.
type URLError struct{ err error }

func (e *URLError) Error() string {
	return "must be the address of a document on the public Internet, with https"
}

// Unwrap returns the error of [outbound.Client.CheckURL].
func (e *URLError) Unwrap() error { return e.err }
