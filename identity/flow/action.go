package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	strict "github.com/go-json-experiment/json"

	"stonetown/internal/document"
	"stonetown/internal/fair"
	"stonetown/internal/id"
	"stonetown/internal/outbound"
	"stonetown/internal/text"
)

// The bounds of the request of an action.
const (
	// CallTime is the time from the lookup of the name to the end of the response.
	CallTime = 2 * time.Second
	// Patience is the time that a request waits for a place.
	Patience = 2 * time.Second
	// MaxResponse is the size of a response, in bytes.
	MaxResponse = 16 << 10
	// MaxClaimsBytes is the size of all claims of a session, in bytes of JSON.
	MaxClaimsBytes = 2 << 10
)

// newGate returns the places of requests in progress. A tenant whose service is slow waits for its own
// places, and refuses its own sign-ins when too many wait.
func newGate() *fair.Gate {
	return fair.NewGate("requests of sign-in actions", fair.Limits{Service: 128, Tenant: 16},
		fair.Queue{Waiting: 512, WaitingOfTenant: 64, Patience: Patience})
}

// Outbound is the part of [outbound.Client] that actions use.
type Outbound interface {
	CheckURL(text string) error
	Post(ctx context.Context, to string, header http.Header, body []byte, limit int64) (outbound.Answer, error)
}

// Signer makes signing secrets, and signs requests with them as webhooks are signed.
type Signer interface {
	NewSecret() string
	// Sign sets the headers of the signature of a body. previous is empty unless a rotation is in
	// progress.
	Sign(h http.Header, id string, at time.Time, body []byte, current, previous string) error
}

// Result is the result of an action.
type Result struct {
	RequireFactor bool                       `json:"require_factor,omitzero"`
	Claims        map[string]json.RawMessage `json:"claims,omitzero"`

	denied  bool
	message string
}

// Reason is the reason for which an action failed: one of these, or an [outbound.Class].
type Reason string

// The reasons.
const (
	ResponseInvalid  Reason = "response_invalid"  // not JSON of the expected form
	EffectUndeclared Reason = "effect_undeclared" // the action does not declare an effect of the response
	ClaimRefused     Reason = "claim_refused"     // a reserved or malformed name, or too large
	Overloaded       Reason = "overloaded"        // too many requests of the tenant are in progress
	SecretMissing    Reason = "secret_missing"
)

// failure is the failure of an action, which is not that of the server.
type failure struct {
	Reason Reason
	Status int // of the response; 0: there is none
}

func (f *failure) Error() string { return "sign-in action failed: " + string(f.Reason) }

// actionRequest is the body of the request of an action. It has the envelope of webhook events.
type actionRequest struct {
	EventID   string             `json:"event_id"`
	EventType string             `json:"event_type"`
	CreatedAt document.Timestamp `json:"created_at"`
	Tenant    struct {
		ID string `json:"id"`
	} `json:"tenant"`
	Data actionData `json:"data"`
}

// ActionEvent is the event_type of the requests of actions.
const ActionEvent = "sign_in_flow.action"

type actionData struct {
	Point        Point      `json:"point"`
	Action       string     `json:"action"`
	Step         string     `json:"step"`
	Test         bool       `json:"test"`
	User         actionUser `json:"user"`
	Connection   *string    `json:"connection"`
	Methods      []string   `json:"amr"`
	SecondFactor bool       `json:"second_factor"`
	IP           string     `json:"ip"`
	Country      *string    `json:"country"`
	UserAgent    string     `json:"user_agent"`
	NewDevice    bool       `json:"new_device"`
}

type actionUser struct {
	ID            *string             `json:"id"` // null at a sign-up
	Email         string              `json:"email"`
	EmailVerified bool                `json:"email_verified"`
	Name          string              `json:"name"`
	Attributes    json.RawMessage     `json:"attributes"`
	CreatedAt     *document.Timestamp `json:"created_at"`
}

func (in Input) data(p Point, s Step) actionData {
	d := actionData{
		Point: p, Action: s.Action, Step: s.Name, Test: in.Test, Connection: document.OrNull(in.Connection), Methods: append([]string{}, in.Methods...),
		SecondFactor: in.SecondFactor, IP: in.IP, Country: document.OrNull(in.Country), UserAgent: in.UserAgent, NewDevice: in.NewDevice,
		User: actionUser{
			ID: document.OrNull(in.User.ID), Email: in.User.Email, EmailVerified: in.User.EmailVerified, Name: in.User.Name,
			Attributes: json.RawMessage(in.User.Attributes), CreatedAt: document.TimeOrNull(in.User.CreatedAt),
		},
	}
	if len(d.User.Attributes) == 0 {
		d.User.Attributes = json.RawMessage("{}")
	}
	return d
}

// call requests an action of a step. It fails with [*failure].
func (r *Registry) call(ctx context.Context, tenantID string, p Point, s Step, a Action, in Input) (Result, error) {
	current, previous, err := r.secrets(ctx, tenantID, a.Name)
	if err != nil {
		return Result{}, err
	}
	now := r.now()
	message := actionRequest{EventID: id.New(id.Event), EventType: ActionEvent, CreatedAt: document.Timestamp(now), Data: in.data(p, s)}
	message.Tenant.ID = tenantID
	body, err := json.Marshal(message)
	if err != nil {
		return Result{}, fmt.Errorf("request of action %s: %w", a.Name, err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if err := r.signer.Sign(header, message.EventID, now, body, current, previous); err != nil {
		return Result{}, fmt.Errorf("sign request of action %s: %w", a.Name, err)
	}
	var answer outbound.Answer
	var failed error
	// The request of the user holds no place among the requests in progress meanwhile.
	err = fair.Aside(ctx, func() error {
		answer, failed = r.send(ctx, tenantID, a.URL, header, body)
		return nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return Result{}, err
	}
	return r.read(a, answer)
}

// send sends a request in one of the places of the tenant. It fails with [*failure].
func (r *Registry) send(ctx context.Context, tenantID, to string, header http.Header, body []byte) (outbound.Answer, error) {
	place, err := r.gate.Enter(ctx, fair.Caller{Tenant: tenantID, ID: fair.From(ctx).Caller.ID})
	if _, busy := errors.AsType[*fair.ExhaustedError](err); busy {
		return outbound.Answer{}, &failure{Reason: Overloaded}
	}
	if err != nil {
		return outbound.Answer{}, err
	}
	defer place.Leave()
	limited, cancel := context.WithTimeout(ctx, r.callTime)
	defer cancel()
	answer, err := r.outbound.Post(limited, to, header, body, MaxResponse)
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		return answer, &failure{Reason: Reason(e.Class), Status: e.Status}
	}
	if err == nil && answer.Truncated {
		reason := Reason(outbound.TooLarge)
		if limited.Err() != nil {
			reason = Reason(outbound.Timeout)
		}
		return answer, &failure{Reason: reason, Status: answer.Status}
	}
	return answer, err
}

// answer is the body of the response of an action.
type answer struct {
	Deny *struct {
		Message string `json:"message"`
	} `json:"deny"`
	RequireFactor bool                       `json:"require_factor"`
	AddClaims     map[string]json.RawMessage `json:"add_claims"`
}

// read returns the result of a response. It fails with [*failure].
func (r *Registry) read(a Action, response outbound.Answer) (Result, error) {
	refuse := func(reason Reason) (Result, error) {
		return Result{}, &failure{Reason: reason, Status: response.Status}
	}
	said := &answer{} // nil for the body null
	if response.Status != http.StatusNoContent && strict.Unmarshal(response.Body, &said, strict.RejectUnknownMembers(true)) != nil || said == nil {
		return refuse(ResponseInvalid)
	}
	if said.Deny != nil && slices.Contains(a.Effects, EffectDeny) { // it holds, whatever else is wrong with the response
		result := Result{denied: true}
		if m := said.Deny.Message; text.IsLine(m) && len(m) <= MaxMessage {
			result.message = m
		}
		return result, nil
	}
	for effect, has := range map[Effect]bool{EffectDeny: said.Deny != nil, EffectRequireFactor: said.RequireFactor, EffectAddClaims: len(said.AddClaims) > 0} {
		if has && !slices.Contains(a.Effects, effect) {
			return refuse(EffectUndeclared)
		}
	}
	result := Result{RequireFactor: said.RequireFactor, Claims: said.AddClaims}
	for name, value := range said.AddClaims {
		if !r.mayClaim(name) || string(value) == "null" {
			return refuse(ClaimRefused)
		}
	}
	if sizeOf(said.AddClaims) > MaxClaimsBytes {
		return refuse(ClaimRefused)
	}
	return result, nil
}

// sizeOf returns the size of claims, in bytes of JSON.
func sizeOf(claims map[string]json.RawMessage) (size int) {
	for name, value := range claims {
		size += len(name) + len(value) + len(`"":,`)
	}
	return size
}
