package reporting

import (
	"context"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
)

// Events is the part of [eventlog.Log] that reports read.
type Events interface {
	Before(ctx context.Context, tenantID string, before int64, limit int) ([]eventlog.Event, error)
}

// Engine is the part of [engine.Engine] that reviews read.
type Engine interface {
	Newest(ctx context.Context, tenantID string) (token string, err error)
	RecordsAt(ctx context.Context, tenantID, token string, f tuplestore.Filter, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error)
	ListSubjects(ctx context.Context, tenantID string, req engine.ListSubjectsRequest) (*engine.SubjectList, error)
}

// User is a user of the tenant.
type User struct {
	ID, Email, Name, State string
	Factors                []string  // the kinds of second factors, sorted
	LastSignedInAt         time.Time // zero: never
}

// Group is a group of users.
type Group struct{ ID, Slug string }

// People reads users and groups.
type People interface {
	// EnabledUsers returns the users that are not disabled, in the order of their ids: at most limit,
	// and those after one.
	EnabledUsers(ctx context.Context, tenantID, after string, limit int) ([]User, error)
	// Addresses returns the addresses of users; those that do not exist are left out.
	Addresses(ctx context.Context, tenantID string, userIDs []string) (map[string]string, error)
	// Groups returns at most limit groups.
	Groups(ctx context.Context, tenantID string, limit int) ([]Group, error)
	// MemberIDs returns the ids of the members of a group, after one, at most limit.
	MemberIDs(ctx context.Context, tenantID, groupID, after string, limit int) ([]string, error)
	// MayReceive reports whether a user exists, may sign in, has a verified address and holds scopes.
	// reason says why not.
	MayReceive(ctx context.Context, tenantID, userID string, scopes []string) (reason string, err error)
}

// Application is an application of the tenant.
type Application struct {
	ID, ClientID, Name, Type, State string
	CreatedAt                       time.Time
	LastUsedAt                      time.Time // zero: never
}

// Applications reads applications.
type Applications interface {
	// Page returns applications, newest first, after one (the zero value: from the start).
	Page(ctx context.Context, tenantID string, after Application, limit int) ([]Application, error)
}

// Sender sends the mail about a scheduled run to a user. It fails with [ErrNoRecipient].
type Sender interface {
	SendReport(ctx context.Context, tenantID, userID string, m Message) error
}

// Message is a mail about a run. It has no rows.
type Message struct {
	Report  string // the name
	At      time.Time
	Figures []string // lines
	Path    string   // of the page of the run
}
