package flow

import (
	"slices"
	"time"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Document is the definition of a flow, as it is stored and as clients see it.
type Document struct {
	SignUp  []Step   `json:"sign_up"`
	SignIn  []Step   `json:"sign_in"`
	Actions []Action `json:"actions"`
}

// Step is one step of a flow.
type Step struct {
	Name    string `json:"name"`    // for administrators
	Kind    Kind   `json:"kind"`    //
	When    string `json:"when"`    // CEL; empty: always
	Message string `json:"message"` // of a denial; empty: a general one
	Action  string `json:"action"`  // the name of the action of the kind [CallAction]
}

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	Deny                 Kind = "deny"
	RequireFactor        Kind = "require_factor"
	RequireVerifiedEmail Kind = "require_verified_email"
	CallAction           Kind = "action"
)

// Kinds are the kinds of the steps of a list.
var Kinds = map[Point][]Kind{
	SignUp: {Deny, CallAction},
	SignIn: {Deny, RequireFactor, RequireVerifiedEmail, CallAction},
}

// Point is the moment at which a list of steps runs.
type Point string

// The points.
const (
	SignUp Point = "sign_up" // before an account is created by its user, or by the first sign-in at a connection
	SignIn Point = "sign_in" // before a session begins
)

// Action is a service of the tenant that decides about sign-ins.
type Action struct {
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Effects []Effect `json:"effects"`  // that its responses can have
	OnError OnError  `json:"on_error"` // empty: [DenyOnError]
}

// Effect is an effect of the response of an action.
type Effect string

// The effects.
const (
	EffectDeny          Effect = "deny"
	EffectRequireFactor Effect = "require_factor"
	EffectAddClaims     Effect = "add_claims"
)

// Effects are all effects.
var Effects = []Effect{EffectDeny, EffectRequireFactor, EffectAddClaims}

// OnError is the consequence of an action that fails.
type OnError string

// The consequences of a failure.
const (
	DenyOnError     OnError = "deny"
	ContinueOnError OnError = "continue"
)

// steps returns the steps of a point.
func (d Document) steps(p Point) []Step {
	if p == SignUp {
		return d.SignUp
	}
	return d.SignIn
}

// action returns the action with a name.
func (d Document) action(name string) (Action, bool) {
	n := slices.IndexFunc(d.Actions, func(a Action) bool { return a.Name == name })
	if n < 0 {
		return Action{}, false
	}
	return d.Actions[n], true
}

// normal returns the document with its defaults, and without absent lists.
func (d Document) normal() Document {
	d.SignUp, d.SignIn = append([]Step{}, d.SignUp...), append([]Step{}, d.SignIn...)
	d.Actions = append([]Action{}, d.Actions...)
	for i := range d.Actions {
		a := &d.Actions[i]
		a.Effects = append([]Effect{}, a.Effects...)
		if a.OnError == "" {
			a.OnError = DenyOnError
		}
	}
	return d
}

// Draft is the draft of a tenant.
type Draft struct {
	Document
	Revision  string // of this content: another one after every change
	UpdatedAt time.Time
	UpdatedBy eventlog.Actor
}

// Version is a published flow.
type Version struct {
	Document
	Number       int // 0: none was published
	Note         string
	RestoredFrom int // the number of the version that was rolled back to; 0: none
	PublishedAt  time.Time
	PublishedBy  eventlog.Actor
}

// DraftDocument is the public representation of a draft.
type DraftDocument struct {
	Document
	Revision  string             `json:"revision"`
	UpdatedAt document.Timestamp `json:"updated_at"`
	UpdatedBy *eventlog.Actor    `json:"updated_by"` // null: the product
}

// Public returns the public representation of the draft.
func (d Draft) Public() DraftDocument {
	return DraftDocument{d.normal(), d.Revision, document.Timestamp(d.UpdatedAt), actorOrNull(d.UpdatedBy)}
}

// Summary is the public representation of a version without its document.
type Summary struct {
	Version      int                 `json:"version"`
	Note         string              `json:"note"`
	RestoredFrom *int                `json:"restored_from"`
	PublishedAt  *document.Timestamp `json:"published_at"` // null: none was published
	PublishedBy  *eventlog.Actor     `json:"published_by"` // null: the product
}

// Summary returns the public representation of the version without its document.
func (v Version) Summary() Summary {
	s := Summary{Version: v.Number, Note: v.Note, PublishedAt: document.TimeOrNull(v.PublishedAt), PublishedBy: actorOrNull(v.PublishedBy)}
	if v.RestoredFrom != 0 {
		s.RestoredFrom = &v.RestoredFrom
	}
	return s
}

// VersionDocument is the public representation of a version.
type VersionDocument struct {
	Document
	Summary
}

// Public returns the public representation of the version.
func (v Version) Public() VersionDocument { return VersionDocument{v.normal(), v.Summary()} }

func actorOrNull(a eventlog.Actor) *eventlog.Actor {
	if a == (eventlog.Actor{}) {
		return nil
	}
	return &a
}
