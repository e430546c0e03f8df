package reporting

import (
	"errors"
	"fmt"
	"time"

	"stonetown/internal/eventlog"
)

// Kind is what a report is about.
type Kind string

// The kinds.
const (
	// SignInsByMethod counts sign-ins and failures for each day and method.
	SignInsByMethod Kind = "sign_ins_by_method"
	// MFACoverage lists users without a second factor.
	MFACoverage Kind = "mfa_coverage"
	// UnusedApplications lists applications that got no token for some time.
	UnusedApplications Kind = "unused_applications"
	// AccessReview lists the subjects that may do something to resources, and their direct relations.
	AccessReview Kind = "access_review"
)

// Kinds are all kinds.
var Kinds = []Kind{SignInsByMethod, MFACoverage, UnusedApplications, AccessReview}

// columns are the names of the columns of each kind.
var columns = map[Kind][]string{
	SignInsByMethod:    {"date", "method", "sign_ins", "failures", "users"},
	MFACoverage:        {"user_id", "email", "name", "state", "factors", "groups", "last_signed_in_at"},
	UnusedApplications: {"application_id", "client_id", "name", "type", "state", "created_at", "last_used_at"},
	AccessReview:       {"resource_type", "resource_id", "subject_type", "subject_id", "email", "access", "direct_relation", "granted_by", "granted_at", "expires_at"},
}

// Columns returns the names of the columns of a kind, in the order of the values of a row.
func Columns(k Kind) []string { return columns[k] }

// Scopes returns the scopes without which nobody may save, run or read a report, or get its mails.
func Scopes(k Kind, p Parameters) []string {
	scopes := []string{"audit:read"}
	switch k {
	case MFACoverage:
		scopes = append(scopes, "users:read")
	case UnusedApplications:
		scopes = append(scopes, "applications:read")
	case AccessReview:
		if scopes = append(scopes, "resources:read"); p.SubjectType == userType { // rows have addresses
			scopes = append(scopes, "users:read")
		}
	}
	return scopes
}

// Parameters restrict a report. Each kind has some of them; the others are zero.
type Parameters struct {
	// Days is the period of sign-ins, or how long applications were not used.
	Days int `json:"days,omitzero"`
	// IncludeCovered lists users with a second factor, too.
	IncludeCovered bool `json:"include_covered,omitzero"`
	// ResourceType and Action are the question of a review: who may do this to resources of the type?
	ResourceType string `json:"resource_type,omitzero"`
	Action       string `json:"action,omitzero"`
	// ResourceIDs are the resources; empty: all of the type.
	ResourceIDs []string `json:"resource_ids,omitempty"`
	// SubjectType is the type of the subjects.
	SubjectType string `json:"subject_type,omitzero"`
}

const userType = "user"

// WithDefaults returns the parameters with the defaults of a kind for those that are absent.
func (p Parameters) WithDefaults(k Kind) Parameters {
	switch {
	case k == SignInsByMethod && p.Days == 0:
		p.Days = 30
	case k == UnusedApplications && p.Days == 0:
		p.Days = 90
	case k == AccessReview && p.SubjectType == "":
		p.SubjectType = userType
	}
	return p
}

// Settings are the properties of a report that can be changed.
type Settings struct {
	Name       string
	Parameters Parameters
	Schedule   *Schedule // nil: it runs on request only
}

// Report is a saved report.
type Report struct {
	ID       string // in the order of time
	TenantID string
	Kind     Kind
	Settings
	NextRunAt time.Time // zero: it has no schedule

	CreatedAt time.Time // UTC, as the others
	CreatedBy eventlog.Actor
	UpdatedAt time.Time
}

// State is the state of a run.
type State string

// The states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// Run is one execution of a report, with the parameters that it had then.
type Run struct {
	ID         string // in the order of time
	TenantID   string
	ReportID   string
	Name       string // of the report
	Kind       Kind
	Parameters Parameters
	State      State
	Scheduled  bool // by the schedule, not on request
	Recipients []string

	CreatedAt  time.Time
	CreatedBy  eventlog.Actor
	StartedAt  time.Time // zero: not yet
	FinishedAt time.Time // zero: not yet

	Rows      int  // so far
	Truncated bool // there would be more rows
	Figures   []Figure
	Failure   *Failure // of a failed run
}

// ExpiresAt is when the run is deleted at the latest.
func (r Run) ExpiresAt() time.Time { return r.CreatedAt.Add(KeptFor) }

// Figure is a number of the summary of a run.
type Figure struct {
	Name  string  `json:"name"`
	Label *string `json:"label"` // of what, such as a method; nil: of all
	Value int     `json:"value"`
}

// Failure is why a run failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Mail is what became of a scheduled mail to a recipient.
type Mail struct {
	UserID string `json:"user_id"`
	State  string `json:"state"`  // queued, sent or skipped
	Reason string `json:"reason"` // of one that was skipped
}

// The bounds of reports.
const (
	MaxReports    = 100 // of a tenant
	MaxRecipients = 20  // of a schedule
	MaxRows       = 50_000
	MaxTime       = 4 * time.Minute
	KeptRuns      = 10 // of a report
	KeptFor       = 30 * 24 * time.Hour

	MaxDays          = 90      // of sign-ins
	MaxUnusedDays    = 3650    // of applications
	MaxEvents        = 200_000 // that a report reads
	MaxUsers         = 100_000 // that a report reads
	MaxGroups        = 1000    // that a report reads
	MaxMemberships   = 500_000 // that a report reads
	MaxResources     = 1000    // of a review
	MaxDirect        = 10_000  // relations of a resource that a review reads
	maxGroupFigures  = 200
	chunkRows        = 500
	dueAtOnce        = 100
	lookForDue       = 30 * time.Second
	removeOldResults = time.Hour
)

var (
	// ErrNotFound is returned for a report that does not exist.
	ErrNotFound = errors.New("report not found")
	// ErrRunNotFound is returned for a run that does not exist, or is no longer kept.
	ErrRunNotFound = errors.New("run of the report not found")
	// ErrTooMany is returned for a report beyond [MaxReports].
	ErrTooMany = fmt.Errorf("a tenant has at most %d reports", MaxReports)
	// ErrUnderway is returned for a run of a report that has one that did not end.
	ErrUnderway = errors.New("a run of the report is underway")
	// ErrNoRecipient is returned for a mail to a user that does not exist.
	ErrNoRecipient = errors.New("the recipient does not exist")
	// ErrUnfinished is returned for the rows of a run that did not complete.
	ErrUnfinished = errors.New("the run of the report did not complete")
)

// UnknownRecipientError is returned for a recipient that is not a user.
type UnknownRecipientError struct{ Index int }

func (e *UnknownRecipientError) Error() string { return "the recipient is not a user of the tenant" }
