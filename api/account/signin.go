package account

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/document"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// maxInput is the maximum length of an address, a password or a token, in bytes.
const maxInput = 2048

// need validates required members.
func need(members ...string) error {
	var v web.Validation
	for i := 0; i < len(members); i += 2 {
		if name, value := members[i], members[i+1]; v.Text("", name, value) && len(value) > maxInput {
			v.Add(name, "too_long", "must have at most 2,048 bytes")
		}
	}
	return v.Err()
}

// localPath validates the member redirect_to.
func localPath(v *web.Validation, path LocalPath) string {
	switch {
	case len(path) > maxInput:
		v.Add("redirect_to", "too_long", "must have at most 2,048 bytes")
	case path != "" && !web.IsLocalPath(path):
		v.Add("redirect_to", "invalid", "must be a path on this host")
	}
	return path
}

// GetAuthPolicy returns the settings of sign-in and sign-up.
func (h *Handlers) GetAuthPolicy(ctx context.Context, _ GetAuthPolicyRequestObject) (GetAuthPolicyResponseObject, error) {
	info := web.InfoOf(ctx)
	settings, err := h.Users.Settings(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	body := AuthPolicyRead{Meta: meta(info)}
	d := &body.Data
	d.SignUp, d.Methods = string(settings.SignUp), h.Service.Identify(ctx, tenant(info), "")
	if d.Connections, err = h.connections(ctx, info); err != nil {
		return nil, err
	}
	d.PasswordPolicy = PasswordPolicy{MinLength: settings.PasswordPolicy.MinLength, MaxLength: settings.PasswordPolicy.MaxLength}
	d.MfaPolicy = MfaPolicy{Mode: string(settings.MFA.Mode), Kinds: []string{}}
	for _, kind := range settings.MFA.Kinds {
		d.MfaPolicy.Kinds = append(d.MfaPolicy.Kinds, string(kind))
	}
	return GetAuthPolicy200JSONResponse{Body: body}, nil
}

// Identify returns the methods of signing in.
func (h *Handlers) Identify(ctx context.Context, request IdentifyRequestObject) (IdentifyResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := need("email", request.Body.Email); err != nil {
		return nil, err
	}
	body := Identified{Meta: meta(info)}
	body.Data.Methods = h.Service.Identify(ctx, tenant(info), request.Body.Email)
	slug, err := h.Federation.HomeRealm(ctx, info.Tenant.ID, request.Body.Email)
	if err != nil {
		return nil, err
	}
	body.Data.Connection = document.OrNull(slug)
	return Identify200JSONResponse{Body: body}, nil
}

// SignUp creates an account.
func (h *Handlers) SignUp(ctx context.Context, request SignUpRequestObject) (SignUpResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	n := authn.NewAccount{Email: form.Email, Password: form.Password, Device: deviceOf(info)}
	var v profile.Validation
	v.Text("", "email", form.Email)
	v.Text("", "password", form.Password)
	n.Next = localPath(&v.Validation, form.RedirectTo)
	v.Profile(&n.Profile, form.Name, form.GivenName, form.FamilyName, nil, form.Locale, form.Attributes)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := h.Service.SignUp(ctx, tenant(info), n); err != nil {
		return nil, err
	}
	body := SignedUp{Meta: meta(info)}
	body.Data.Status = string(authn.EmailRequired)
	return SignUp202JSONResponse{Body: body}, nil
}

// SignIn signs in with a password.
func (h *Handlers) SignIn(ctx context.Context, request SignInRequestObject) (SignInResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("email", form.Email, "password", form.Password); err != nil {
		return nil, err
	}
	r, err := h.Service.SignIn(ctx, tenant(info), form.Email, form.Password, deviceOf(info))
	if err != nil {
		return nil, err
	}
	body, err := h.result(ctx, info, r)
	return SignIn200JSONResponse{Body: body}, err
}

// ChallengeFactor creates a challenge for a second factor.
func (h *Handlers) ChallengeFactor(ctx context.Context, request ChallengeFactorRequestObject) (ChallengeFactorResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("mfa_token", form.MfaToken); err != nil {
		return nil, err
	}
	c, err := h.Service.Challenge(ctx, tenant(info), form.MfaToken, form.FactorID, factor.Kind(form.Kind))
	return ChallengeFactor200JSONResponse{Body: ChallengeRead{Data: challenge(c), Meta: meta(info)}}, err
}

// VerifyFactor continues a sign-in with a second factor.
func (h *Handlers) VerifyFactor(ctx context.Context, request VerifyFactorRequestObject) (VerifyFactorResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("mfa_token", form.MfaToken, "kind", form.Kind); err != nil {
		return nil, err
	}
	answer := authn.Answer{Kind: factor.Kind(form.Kind), Code: form.Code, Credential: form.Credential, ChallengeID: form.ChallengeID}
	device := deviceOf(info)
	device.Remember = form.RememberDevice
	r, err := h.Service.VerifyFactor(ctx, tenant(info), form.MfaToken, answer, device)
	if err != nil {
		return nil, err
	}
	body, err := h.result(ctx, info, r)
	return VerifyFactor200JSONResponse{Body: body}, err
}

// BeginPasskey begins a sign-in with a passkey.
func (h *Handlers) BeginPasskey(ctx context.Context, request BeginPasskeyRequestObject) (BeginPasskeyResponseObject, error) {
	info := web.InfoOf(ctx)
	if request.Body.Email != "" {
		if err := need("email", request.Body.Email); err != nil {
			return nil, err
		}
	}
	r, err := h.Service.BeginPasskey(ctx, tenant(info), request.Body.Email)
	if err != nil {
		return nil, err
	}
	body := PasskeyRequest{Meta: meta(info)}
	body.Data.CeremonyID, body.Data.PublicKey, body.Data.ExpiresAt = r.ID, options(r.Options), document.Timestamp(r.ExpiresAt)
	if r.Autofill {
		conditional := "conditional"
		body.Data.Mediation = &conditional
	}
	return BeginPasskey200JSONResponse{Body: body}, nil
}

// CompletePasskey completes a sign-in with a passkey.
func (h *Handlers) CompletePasskey(ctx context.Context, request CompletePasskeyRequestObject) (CompletePasskeyResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("ceremony_id", form.CeremonyID); err != nil {
		return nil, err
	}
	r, err := h.Service.CompletePasskey(ctx, tenant(info), form.CeremonyID, form.Credential, deviceOf(info))
	if err != nil {
		return nil, err
	}
	body, err := h.result(ctx, info, r)
	return CompletePasskey200JSONResponse{Body: body}, err
}

// BeginStepUp creates a challenge for the user of the session.
func (h *Handlers) BeginStepUp(ctx context.Context, request BeginStepUpRequestObject) (BeginStepUpResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	factors, err := h.Service.Factors(ctx, info.Tenant.ID, current.UserID)
	if err != nil {
		return nil, err
	}
	kind := factor.Kind(request.Body.Kind)
	if kind == "" && request.Body.FactorID == "" {
		if kind = preferred(factors); kind == "" {
			return nil, h.stepUp(ctx, info, current)
		}
	}
	c, err := h.Service.BeginStepUp(ctx, tenant(info), current, request.Body.FactorID, kind)
	if err != nil {
		return nil, err
	}
	body := StepUpChallenge{Meta: meta(info)}
	w := challenge(c)
	body.Data.ChallengeID, body.Data.PublicKey, body.Data.PhoneNumberMasked, body.Data.ResendAfter, body.Data.ExpiresAt = w.ChallengeID, w.PublicKey, w.PhoneNumberMasked, w.ResendAfter, w.ExpiresAt
	body.Data.Factors = choices(factors, false)
	return BeginStepUp200JSONResponse{Body: body}, nil
}

// preferred returns the strongest kind among the factors of the user, which is the default of a
// challenge; empty if there are none.
func preferred(factors []factor.Factor) factor.Kind {
	for _, kind := range factor.Kinds {
		if slices.ContainsFunc(factors, func(f factor.Factor) bool { return f.Kind == kind }) {
			return kind
		}
	}
	return ""
}

// CompleteStepUp raises a session to assurance level 2.
func (h *Handlers) CompleteStepUp(ctx context.Context, request CompleteStepUpRequestObject) (CompleteStepUpResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("kind", form.Kind); err != nil {
		return nil, err
	}
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	answer := authn.Answer{Kind: factor.Kind(form.Kind), Code: form.Code, Credential: form.Credential, ChallengeID: form.ChallengeID}
	now, token, err := h.Service.CompleteStepUp(ctx, tenant(info), current, answer)
	if err != nil {
		return nil, err
	}
	issued, err := h.issue(ctx, info, now)
	if err != nil {
		return nil, err
	}
	h.setCookie(info, token, now)
	body := SteppedUp{Meta: meta(info)}
	body.Data.AccessToken, body.Data.TokenType, body.Data.ExpiresIn, body.Data.Scope = issued.AccessToken, issued.TokenType, int(issued.ExpiresIn.Seconds()), issued.Scope
	body.Data.Acr, body.Data.AuthTime, body.Data.SessionToken = protocol.AAL2, document.Timestamp(now.AuthTime), token
	return CompleteStepUp200JSONResponse{Body: body}, nil
}

// SignOut ends the session.
func (h *Handlers) SignOut(ctx context.Context, request SignOutRequestObject) (SignOutResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err == nil {
		err = h.Service.SignOut(ctx, current, request.Params.All)
	}
	if err != nil {
		return nil, err
	}
	h.setCookie(info, "", session.Session{})
	return SignOut204Response{}, nil
}

// GetSession returns the current session.
func (h *Handlers) GetSession(ctx context.Context, _ GetSessionRequestObject) (GetSessionResponseObject, error) {
	info := web.InfoOf(ctx)
	body := SessionStatus{Meta: meta(info)}
	if info.Principal == nil || info.Principal.SessionID == "" {
		return GetSession200JSONResponse{Body: body}, nil
	}
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	u, err := h.Users.User(ctx, info.Tenant.ID, current.UserID)
	if err != nil {
		return nil, err
	}
	body.Data.Authenticated, body.Data.EnrolmentRequired = true, current.MustEnrol
	body.Data.User = &AuthUser{ID: u.ID, Email: u.Email, Locale: u.Locale}
	wire := h.authSession(current)
	body.Data.Session, body.Data.Aal, body.Data.Amr = &wire, wire.Aal, wire.Amr
	return GetSession200JSONResponse{Body: body}, nil
}

// result returns the response to a step of a sign-in.
func (h *Handlers) result(ctx context.Context, info *web.RequestInfo, r authn.Result) (AuthResult, error) {
	body := AuthResult{Data: AuthStep{Status: string(r.Status)}, Meta: meta(info)}
	d := &body.Data
	switch r.Status {
	case authn.MFARequired:
		d.MfaToken, d.ExpiresIn, d.Factors = r.Continue, secondsUntil(r.ExpiresAt), choices(r.Factors, r.BackupCodes)
	case authn.EnrolmentRequired:
		h.setCookie(info, r.Token, r.Session)
		d.ContinueToken, d.ExpiresIn = r.Token, secondsUntil(r.Session.ExpiresAt)
	case authn.Complete:
		issued, err := h.issue(ctx, info, r.Session)
		if err != nil {
			return body, err
		}
		h.setCookie(info, r.Token, r.Session)
		if r.Device != "" {
			info.SetCookie(&http.Cookie{Name: deviceCookie, Value: r.Device, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(authn.DeviceFor.Seconds())})
		}
		d.User = &AuthUser{ID: r.User.ID, Email: r.User.Email}
		wire := h.authSession(r.Session)
		d.Session, d.SessionToken = &wire, r.Token
		d.AccessToken, d.TokenType, d.ExpiresIn, d.Scope = issued.AccessToken, issued.TokenType, int(issued.ExpiresIn.Seconds()), issued.Scope
	case authn.LinkRequired:
		d.LinkToken, d.ExpiresIn, d.Email = r.Continue, secondsUntil(r.ExpiresAt), r.User.Email
	case authn.EmailRequired:
		d.ContinueToken, d.ExpiresIn, d.Email = r.Continue, secondsUntil(r.ExpiresAt), r.User.Email
	default:
		d.ContinueToken, d.ExpiresIn = r.Continue, secondsUntil(r.ExpiresAt)
	}
	return body, nil
}

// secondsUntil returns the remaining lifetime of a token, rounded to the next second.
func secondsUntil(end time.Time) int { return max(1, int((time.Until(end)+time.Second-1)/time.Second)) }

// issue issues the access token of a session, with the scopes of the user and of the user's groups.
func (h *Handlers) issue(ctx context.Context, info *web.RequestInfo, of session.Session) (token.Response, error) {
	return h.Tokens.IssueToUser(ctx, oauthTenant(info), token.UserToken{
		UserID: of.UserID, SessionID: of.ID, Methods: of.Methods, AuthTime: of.AuthTime, AAL2: !of.SecondFactor.IsZero(),
	})
}

// setCookie sets the cookie with the session token, or deletes it if the token is empty.
func (h *Handlers) setCookie(info *web.RequestInfo, token string, of session.Session) {
	if token == "" {
		info.ForgetSession()
		return
	}
	info.SetSession(token, of.ExpiresAt)
}

func challenge(c authn.Challenge) Challenge {
	return Challenge{
		ChallengeID: c.ID, PublicKey: options(c.Options), PhoneNumberMasked: c.Number, ResendAfter: int(c.ResendAfter.Seconds()), ExpiresAt: document.Timestamp(c.ExpiresAt),
	}
}

// options encodes options of WebAuthn as the library does.
func options(o any) WebAuthnOptions {
	if o == nil {
		return nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic("account: " + err.Error()) // a programming error
	}
	return jsontext.Value(text)
}

func choices(factors []factor.Factor, backup bool) []FactorChoice {
	list := []FactorChoice{}
	for _, f := range factors {
		list = append(list, FactorChoice{ID: f.ID, Kind: string(f.Kind), Label: f.Label})
	}
	if backup {
		list = append(list, FactorChoice{Kind: string(factor.BackupCode), Label: "Backup code"})
	}
	return list
}
