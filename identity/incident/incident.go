package incident

import (
	"errors"
	"fmt"
	"time"

	"stonetown/internal/eventlog"
)

// Severity is the severity of an incident.
type Severity string

// The severities.
const (
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
)

// Incident is a breach incident.
type Incident struct {
	ID       string // in the order of time
	TenantID string
	Settings
	Resolution string // of a closed one
	Affected   int    // users of the list

	OpenedAt  time.Time // UTC, as the others
	OpenedBy  eventlog.Actor
	UpdatedAt time.Time
	ClosedAt  time.Time // zero: it is open
}

// Settings are the properties of an incident that can be changed.
type Settings struct {
	Title       string
	Description string
	Severity    Severity
	AssigneeID  string // of a user; empty: nobody
	AllUsers    bool   // all users of the tenant are affected, not only those of the list
}

// Notification is a message to the affected users of an incident.
type Notification struct {
	ID         string // in the order of time
	TenantID   string
	IncidentID string
	Subject    string
	Message    string // paragraphs, separated by blank lines
	CreatedAt  time.Time
	CreatedBy  eventlog.Actor
	FinishedAt time.Time // zero: users are still being notified
	Mails      int       // so far

	after string // the last user that was notified
}

// AffectedUser is a user of the list of an incident.
type AffectedUser struct {
	UserID  string
	AddedAt time.Time
}

// The bounds of incidents.
const (
	MaxOpen          = 1000    // incidents of a tenant
	MaxAffected      = 100_000 // users of a list
	MaxNotifications = 20      // of an incident
	// MaxAtOnce is the number of users that one call adds.
	MaxAtOnce = 1000
)

var (
	// ErrNotFound is returned for an incident that does not exist.
	ErrNotFound = errors.New("breach incident not found")
	// ErrClosed is returned for a change of a closed incident.
	ErrClosed = errors.New("the breach incident is closed")
	// ErrTooMany is returned for an incident beyond [MaxOpen].
	ErrTooMany = fmt.Errorf("a tenant has at most %d open breach incidents", MaxOpen)
	// ErrTooManyAffected is returned for users beyond [MaxAffected].
	ErrTooManyAffected = fmt.Errorf("an incident has at most %d affected users, unless all users are", MaxAffected)
	// ErrNobodyAffected is returned for a notification of nobody.
	ErrNobodyAffected = errors.New("the breach incident has no affected users")
	// ErrTooManyNotifications is returned for a notification beyond [MaxNotifications].
	ErrTooManyNotifications = fmt.Errorf("an incident has at most %d notifications", MaxNotifications)
	// ErrAssigneeNotFound is returned for an assignee that is no user.
	ErrAssigneeNotFound = errors.New("the assignee is not a user of the tenant")
)
