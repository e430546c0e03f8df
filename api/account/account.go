// Package account has the operations of sign-in and of the user's own account.
//
// They accept access tokens of users and the opaque tokens of sessions; the tenant's own pages
// send the token of a session as a cookie.
package account

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/geo"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Service is the part of [authn.Service] that the operations use.
type Service interface {
	ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)

	Identify(ctx context.Context, t authn.Tenant, email string) []string
	SignUp(ctx context.Context, t authn.Tenant, n authn.NewAccount) error
	SignIn(ctx context.Context, t authn.Tenant, email, password string, d authn.Device) (authn.Result, error)
	Challenge(ctx context.Context, t authn.Tenant, mfaToken, factorID string, kind factor.Kind) (authn.Challenge, error)
	VerifyFactor(ctx context.Context, t authn.Tenant, mfaToken string, a authn.Answer, d authn.Device) (authn.Result, error)
	BeginPasskey(ctx context.Context, t authn.Tenant, email string) (authn.PasskeyRequest, error)
	CompletePasskey(ctx context.Context, t authn.Tenant, ceremonyID string, credential []byte, d authn.Device) (authn.Result, error)
	LinkWithPassword(ctx context.Context, t authn.Tenant, token, password string, d authn.Device) (authn.Result, error)
	LinkWithPasskey(ctx context.Context, t authn.Tenant, token, ceremonyID string, credential []byte, d authn.Device) (authn.Result, error)
	BeginStepUp(ctx context.Context, t authn.Tenant, current session.Session, factorID string, kind factor.Kind) (authn.Challenge, error)
	CompleteStepUp(ctx context.Context, t authn.Tenant, current session.Session, a authn.Answer) (session.Session, string, error)
	SteppedUp(secondFactor time.Time) bool
	WayToAAL2(ctx context.Context, tenantID, userID string) (authn.Way, error)
	SignOut(ctx context.Context, current session.Session, all bool) error

	ReadLink(ctx context.Context, t authn.Tenant, token string) (authn.Link, error)
	Forgot(ctx context.Context, t authn.Tenant, email, next string) error
	ResetPassword(ctx context.Context, t authn.Tenant, token, password string, d authn.Device) (authn.Result, error)
	ChangePassword(ctx context.Context, t authn.Tenant, current session.Session, present, next string) error
	VerifyEmail(ctx context.Context, t authn.Tenant, token string) (email string, err error)
	RevertEmail(ctx context.Context, t authn.Tenant, token string) (email string, err error)
	ResendTo(ctx context.Context, t authn.Tenant, email, next string) error
	ResendVerification(ctx context.Context, t authn.Tenant, userID string) (time.Duration, error)
	ChangeEmail(ctx context.Context, t authn.Tenant, current session.Session, email string) (authn.EmailChange, error)
	EmailChange(ctx context.Context, tenantID, userID, changeID string) (authn.EmailChange, error)
	CancelEmailChange(ctx context.Context, tenantID, userID, changeID string) error

	Sessions(ctx context.Context, tenantID, userID string) ([]session.Session, error)
	EndSession(ctx context.Context, tenantID, userID, sessionID, reason string) error
	EndSessions(ctx context.Context, tenantID, userID, except, reason string) error

	Factors(ctx context.Context, tenantID, userID string) ([]factor.Factor, error)
	MayAddFactor(ctx context.Context, current session.Session) error
	BeginFactor(ctx context.Context, t authn.Tenant, current session.Session, n authn.NewFactor) (authn.Enrolment, error)
	CompleteFactor(ctx context.Context, t authn.Tenant, current session.Session, kind factor.Kind, ceremonyID string, p authn.FactorProof) (factor.Factor, error)
	RenameFactor(ctx context.Context, tenantID, userID, factorID, label string) (factor.Factor, error)
	RemoveFactor(ctx context.Context, tenantID, userID, factorID string) error
	NewBackupCodes(ctx context.Context, tenantID, userID string) ([]string, error)

	Identities(ctx context.Context, tenantID, userID string) ([]external.Identity, error)
	Unlink(ctx context.Context, tenantID, userID, connectionID string) error
}

// Users is the part of [identity.Directory] that the operations use.
type Users interface {
	User(ctx context.Context, tenantID, userID string) (identity.User, error)
	Settings(ctx context.Context, tenantID string) (identity.Settings, error)
	Update(ctx context.Context, tenantID, userID string, change func(*identity.User)) (identity.User, error)
}

// Tokens is the part of [token.Service] that the operations use.
type Tokens interface {
	IssueToUser(ctx context.Context, tenant protocol.Tenant, t token.UserToken) (token.Response, error)
	GroupScopesOf(ctx context.Context, t protocol.Tenant, app client.Application, asked []string, userID string) ([]string, error)
}

// Requests is the part of [authorization.Service] that the operations use.
type Requests interface {
	Pending(ctx context.Context, t protocol.Tenant, id string) (authorization.PendingRequest, error)
	Consented(ctx context.Context, t protocol.Tenant, r authorization.Request, said authorization.Answer, userID string) (authorization.Request, error)
	Consent(ctx context.Context, t protocol.Tenant, requestID, userID string, scopes, claims []string) error
	Choose(ctx context.Context, t protocol.Tenant, requestID, sessionID string) error
	Device(ctx context.Context, t protocol.Tenant, userCode string) (authorization.DeviceRequest, error)
	AnswerDevice(ctx context.Context, t protocol.Tenant, userCode string, by access.Authentication, allow bool) error
	LogoutFrames(ctx context.Context, t protocol.Tenant, sessionID string) ([]string, error)
}

// Clients is the part of [client.Registry] that the operations use.
type Clients interface {
	ByClientID(ctx context.Context, tenantID, clientID string) (client.Application, error)
}

// Access is the part of [access.Store] that the operations use.
type Access interface {
	Authorizations(ctx context.Context, tenantID, userID string) ([]access.Authorization, error)
	EndAuthorization(ctx context.Context, t protocol.Tenant, userID, applicationID string) error
}

// Scopes is the part of [stonetown/oauth/scope.Registry] that the operations use.
type Scopes interface {
	Descriptions(ctx context.Context, tenantID string, scopes []string) (map[string]string, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Service    Service
	Federation Federation
	SAML       SAML
	Users      Users
	Tokens     Tokens
	Requests   Requests
	Clients    Clients
	Access     Access
	Scopes     Scopes
	Cursors    *web.Cursors
	// GeoIP locates the addresses of sessions.
	GeoIP geo.Locator
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

func tenant(info *web.RequestInfo) authn.Tenant {
	return authn.Tenant{ID: info.Tenant.ID, Name: info.Tenant.Name, BaseURL: info.Tenant.BaseURL}
}

// deviceOf returns the device of a request.
func deviceOf(info *web.RequestInfo) authn.Device {
	return authn.Device{
		Device: session.Device{IP: info.ClientIP.String(), UserAgent: info.UserAgent}, Token: info.Cookie(deviceCookie),
	}
}

// deviceCookie is the cookie with the token of a remembered device.
const deviceCookie = "__Host-dev"

func meta(info *web.RequestInfo) Meta { return Meta{RequestID: info.RequestID} }

// self returns the user of a request, also if an application sends it on behalf of the user, which
// is possible after the session has ended. It fails for an application that acts for itself.
func self(info *web.RequestInfo) (userID string, err error) {
	if info.Principal.IsApplication() {
		return "", notSignedIn()
	}
	return info.Principal.Subject, nil
}

func notSignedIn() error {
	return &web.Error{
		Status: http.StatusForbidden, Code: "permission_denied", Message: "this operation requires a signed-in user", Details: web.Details{"required_scope": nil},
	}
}

// person returns the session of a request. It fails for an application that acts for itself, and
// for one whose user's session has ended.
func (h *Handlers) person(ctx context.Context, info *web.RequestInfo) (session.Session, error) {
	if info.Principal.SessionID == "" {
		return session.Session{}, notSignedIn()
	}
	current, err := h.Service.ByID(ctx, info.Tenant.ID, info.Principal.SessionID)
	if err != nil {
		return session.Session{}, err
	}
	// The claims of the access token count, not later authentications in the session.
	current.AuthTime, current.SecondFactor = info.Principal.AuthTime, info.Principal.SecondFactor
	return current, nil
}

// steppedUp is person for operations that require a recent second factor.
func (h *Handlers) steppedUp(ctx context.Context, info *web.RequestInfo) (session.Session, error) {
	current, err := h.person(ctx, info)
	if err == nil && !h.Service.SteppedUp(current.SecondFactor) {
		err = h.stepUp(ctx, info, current)
	}
	return current, err
}

// stepUp returns the error that requires a second factor. A user without one must add one, and must
// sign in again first if the last sign-in is too old.
func (h *Handlers) stepUp(ctx context.Context, info *web.RequestInfo, current session.Session) error {
	factors, err := h.Service.Factors(ctx, info.Tenant.ID, current.UserID)
	if err != nil {
		return err
	}
	e := web.StepUpRequired(info, authn.StepUpFor, len(factors) == 0)
	if len(factors) == 0 {
		err := h.Service.MayAddFactor(ctx, current)
		if err != nil && !errors.Is(err, authn.ErrStepUp) {
			return err
		}
		e.Details["sign_in_required"] = err != nil
	}
	return e
}
