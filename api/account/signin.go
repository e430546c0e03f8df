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
	"stonetown/oauth"
)

// maxInput is the longest address, password or token that is looked at, in bytes.
const maxInput = 2048

// need checks members that must be there.
func need(members ...string) error {
	var v web.Validation
	for i := 0; i < len(members); i += 2 {
		if name, value := members[i], members[i+1]; v.Text("", name, value) && len(value) > maxInput {
			v.Add(name, "too_long", "must have at most 2,048 bytes")
		}
	}
	return v.Err()
}

// localPath checks the member redirect_to.
func localPath(v *web.Validation, path LocalPath) string {
	switch {
	case len(path) > maxInput:
		v.Add("redirect_to", "too_long", "must have at most 2,048 bytes")
	case path != "" && !web.IsLocalPath(path):
		v.Add("redirect_to", "invalid", "must be a path on this host")
	}
	return path
}

// GetAuthPolicy says how people sign in and up.
func (s *Surface) GetAuthPolicy(ctx context.Context, _ GetAuthPolicyRequestObject) (GetAuthPolicyResponseObject, error) {
	call := web.CallOf(ctx)
	settings, err := s.Users.Settings(ctx, call.Tenant.ID)
	if err != nil {
		return nil, err
	}
	body := AuthPolicyRead{Meta: meta(call)}
	d := &body.Data
	d.SignUp, d.Methods = string(settings.SignUp), s.Service.Identify(ctx, tenant(call), "")
	d.PasswordPolicy = PasswordPolicy{MinLength: settings.PasswordPolicy.MinLength, MaxLength: settings.PasswordPolicy.MaxLength}
	d.MfaPolicy = MfaPolicy{Mode: string(settings.MFA.Mode), Kinds: []string{}}
	for _, kind := range settings.MFA.Kinds {
		d.MfaPolicy.Kinds = append(d.MfaPolicy.Kinds, string(kind))
	}
	return GetAuthPolicy200JSONResponse{Body: body}, nil
}

// Identify says how somebody can sign in.
func (s *Surface) Identify(ctx context.Context, request IdentifyRequestObject) (IdentifyResponseObject, error) {
	call := web.CallOf(ctx)
	if err := need("email", request.Body.Email); err != nil {
		return nil, err
	}
	body := Identified{Meta: meta(call)}
	body.Data.Methods = s.Service.Identify(ctx, tenant(call), request.Body.Email)
	return Identify200JSONResponse{Body: body}, nil
}

// SignUp creates an account.
func (s *Surface) SignUp(ctx context.Context, request SignUpRequestObject) (SignUpResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	n := authn.NewAccount{Email: form.Email, Password: form.Password}
	var v profile.Validation
	v.Text("", "email", form.Email)
	v.Text("", "password", form.Password)
	n.Then = localPath(&v.Validation, form.RedirectTo)
	v.Profile(&n.Profile, form.Name, form.GivenName, form.FamilyName, nil, form.Locale, form.Attributes)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.Service.SignUp(ctx, tenant(call), n); err != nil {
		return nil, err
	}
	body := SignedUp{Meta: meta(call)}
	body.Data.Status = string(authn.EmailRequired)
	return SignUp202JSONResponse{Body: body}, nil
}

// SignIn signs in with a password.
func (s *Surface) SignIn(ctx context.Context, request SignInRequestObject) (SignInResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("email", form.Email, "password", form.Password); err != nil {
		return nil, err
	}
	r, err := s.Service.SignIn(ctx, tenant(call), form.Email, form.Password, By(call))
	if err != nil {
		return nil, err
	}
	body, err := s.result(ctx, call, r)
	return SignIn200JSONResponse{Body: body}, err
}

// ChallengeFactor asks for a second factor.
func (s *Surface) ChallengeFactor(ctx context.Context, request ChallengeFactorRequestObject) (ChallengeFactorResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("mfa_token", form.MfaToken); err != nil {
		return nil, err
	}
	c, err := s.Service.Challenge(ctx, tenant(call), form.MfaToken, form.FactorID, factor.Kind(form.Kind))
	return ChallengeFactor200JSONResponse{Body: ChallengeRead{Data: challenge(c), Meta: meta(call)}}, err
}

// VerifyFactor goes on with a sign-in by proving a second factor.
func (s *Surface) VerifyFactor(ctx context.Context, request VerifyFactorRequestObject) (VerifyFactorResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("mfa_token", form.MfaToken, "kind", form.Kind); err != nil {
		return nil, err
	}
	answer := authn.Answer{Kind: factor.Kind(form.Kind), Code: form.Code, Credential: form.Credential, ChallengeID: form.ChallengeID}
	by := By(call)
	by.Remember = form.RememberDevice
	r, err := s.Service.VerifyFactor(ctx, tenant(call), form.MfaToken, answer, by)
	if err != nil {
		return nil, err
	}
	body, err := s.result(ctx, call, r)
	return VerifyFactor200JSONResponse{Body: body}, err
}

// BeginPasskey asks for a passkey.
func (s *Surface) BeginPasskey(ctx context.Context, request BeginPasskeyRequestObject) (BeginPasskeyResponseObject, error) {
	call := web.CallOf(ctx)
	if request.Body.Email != "" {
		if err := need("email", request.Body.Email); err != nil {
			return nil, err
		}
	}
	r, err := s.Service.BeginPasskey(ctx, tenant(call), request.Body.Email)
	if err != nil {
		return nil, err
	}
	body := PasskeyRequest{Meta: meta(call)}
	body.Data.CeremonyID, body.Data.PublicKey, body.Data.ExpiresAt = r.ID, options(r.Options), document.Timestamp(r.ExpiresAt)
	if r.Autofill {
		conditional := "conditional"
		body.Data.Mediation = &conditional
	}
	return BeginPasskey200JSONResponse{Body: body}, nil
}

// CompletePasskey signs in with a passkey.
func (s *Surface) CompletePasskey(ctx context.Context, request CompletePasskeyRequestObject) (CompletePasskeyResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("ceremony_id", form.CeremonyID); err != nil {
		return nil, err
	}
	r, err := s.Service.CompletePasskey(ctx, tenant(call), form.CeremonyID, form.Credential, By(call))
	if err != nil {
		return nil, err
	}
	body, err := s.result(ctx, call, r)
	return CompletePasskey200JSONResponse{Body: body}, err
}

// BeginStepUp asks the signed-in user for a second factor.
func (s *Surface) BeginStepUp(ctx context.Context, request BeginStepUpRequestObject) (BeginStepUpResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	factors, err := s.Service.Factors(ctx, call.Tenant.ID, current.UserID)
	if err != nil {
		return nil, err
	}
	kind := factor.Kind(request.Body.Kind)
	if kind == "" && request.Body.FactorID == "" {
		if kind = preferred(factors); kind == "" {
			return nil, s.stepUp(ctx, call, current)
		}
	}
	c, err := s.Service.BeginStepUp(ctx, tenant(call), current, request.Body.FactorID, kind)
	if err != nil {
		return nil, err
	}
	body := StepUpChallenge{Meta: meta(call)}
	w := challenge(c)
	body.Data.ChallengeID, body.Data.PublicKey, body.Data.PhoneNumberMasked, body.Data.ResendAfter, body.Data.ExpiresAt = w.ChallengeID, w.PublicKey, w.PhoneNumberMasked, w.ResendAfter, w.ExpiresAt
	body.Data.Factors = choices(factors, false)
	return BeginStepUp200JSONResponse{Body: body}, nil
}

// preferred is the kind of factor to ask for where the caller names none: the strongest of
// those that the user has. Empty if there are none.
func preferred(factors []factor.Factor) factor.Kind {
	for _, kind := range factor.Kinds {
		if slices.ContainsFunc(factors, func(f factor.Factor) bool { return f.Kind == kind }) {
			return kind
		}
	}
	return ""
}

// CompleteStepUp lifts a session to assurance level 2.
func (s *Surface) CompleteStepUp(ctx context.Context, request CompleteStepUpRequestObject) (CompleteStepUpResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := need("kind", form.Kind); err != nil {
		return nil, err
	}
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	answer := authn.Answer{Kind: factor.Kind(form.Kind), Code: form.Code, Credential: form.Credential, ChallengeID: form.ChallengeID}
	now, token, err := s.Service.CompleteStepUp(ctx, tenant(call), current, answer)
	if err != nil {
		return nil, err
	}
	issued, err := s.issue(ctx, call, now)
	if err != nil {
		return nil, err
	}
	s.setCookie(call, token, now)
	body := SteppedUp{Meta: meta(call)}
	body.Data.AccessToken, body.Data.TokenType, body.Data.ExpiresIn, body.Data.Scope = issued.AccessToken, issued.TokenType, int(issued.ExpiresIn.Seconds()), issued.Scope
	body.Data.Acr, body.Data.AuthTime, body.Data.SessionToken = oauth.AAL2, document.Timestamp(now.AuthTime), token
	return CompleteStepUp200JSONResponse{Body: body}, nil
}

// SignOut ends the session.
func (s *Surface) SignOut(ctx context.Context, request SignOutRequestObject) (SignOutResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.person(ctx, call)
	if err == nil {
		err = s.Service.SignOut(ctx, current, request.Params.All)
	}
	if err != nil {
		return nil, err
	}
	s.setCookie(call, "", session.Session{})
	return SignOut204Response{}, nil
}

// GetSession says who is signed in.
func (s *Surface) GetSession(ctx context.Context, _ GetSessionRequestObject) (GetSessionResponseObject, error) {
	call := web.CallOf(ctx)
	body := SessionStatus{Meta: meta(call)}
	if call.Principal == nil || call.Principal.SessionID == "" {
		return GetSession200JSONResponse{Body: body}, nil
	}
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	u, err := s.Users.User(ctx, call.Tenant.ID, current.UserID)
	if err != nil {
		return nil, err
	}
	body.Data.Authenticated, body.Data.EnrolmentRequired = true, current.MustEnrol
	body.Data.User = &AuthUser{ID: u.ID, Email: u.Email}
	wire := s.authSession(current)
	body.Data.Session, body.Data.Aal, body.Data.Amr = &wire, wire.Aal, wire.Amr
	return GetSession200JSONResponse{Body: body}, nil
}

// result is what a step of a sign-in is answered with.
func (s *Surface) result(ctx context.Context, call *web.Call, r authn.Result) (AuthResult, error) {
	body := AuthResult{Data: AuthStep{Status: string(r.Status)}, Meta: meta(call)}
	d := &body.Data
	switch r.Status {
	case authn.MFARequired:
		d.MfaToken, d.ExpiresIn, d.Factors = r.Ticket, secondsUntil(r.ExpiresAt), choices(r.Factors, r.BackupCodes)
	case authn.EnrolmentRequired:
		s.setCookie(call, r.Token, r.Session)
		d.ContinueToken, d.ExpiresIn = r.Token, secondsUntil(r.Session.ExpiresAt)
	case authn.Complete:
		issued, err := s.issue(ctx, call, r.Session)
		if err != nil {
			return body, err
		}
		s.setCookie(call, r.Token, r.Session)
		if r.Device != "" {
			call.SetCookie(&http.Cookie{Name: deviceCookie, Value: r.Device, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(authn.DeviceFor.Seconds())})
		}
		d.User = &AuthUser{ID: r.User.ID, Email: r.User.Email}
		wire := s.authSession(r.Session)
		d.Session, d.SessionToken = &wire, r.Token
		d.AccessToken, d.TokenType, d.ExpiresIn, d.Scope = issued.AccessToken, issued.TokenType, int(issued.ExpiresIn.Seconds()), issued.Scope
	default:
		d.ContinueToken, d.ExpiresIn = r.Ticket, secondsUntil(r.ExpiresAt)
	}
	return body, nil
}

// secondsUntil is how long a token is still good, rounded to the next second.
func secondsUntil(end time.Time) int { return max(1, int((time.Until(end)+time.Second-1)/time.Second)) }

// issue issues the access token of a session: for its user's own affairs, and for what
// groups bring.
func (s *Surface) issue(ctx context.Context, call *web.Call, of session.Session) (oauth.TokenResponse, error) {
	return s.Issuer.IssueToUser(ctx, oauthTenant(call), oauth.UserToken{
		UserID: of.UserID, SessionID: of.ID, Methods: of.Methods, AuthTime: of.AuthTime, AAL2: !of.SecondFactor.IsZero(),
	})
}

// setCookie gives a browser the token of its session or, empty, takes it back.
func (s *Surface) setCookie(call *web.Call, token string, of session.Session) {
	if token == "" {
		ForgetSession(call)
		return
	}
	call.SetCookie(sessionCookie(token, int(time.Until(of.ExpiresAt).Seconds())))
}

// ForgetSession takes the session's cookie from the browser.
func ForgetSession(call *web.Call) { call.SetCookie(sessionCookie("", -1)) }

func sessionCookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: web.SessionCookie, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge}
}

func challenge(c authn.Challenge) Challenge {
	return Challenge{
		ChallengeID: c.ID, PublicKey: options(c.Options), PhoneNumberMasked: c.Number, ResendAfter: int(c.ResendAfter.Seconds()), ExpiresAt: document.Timestamp(c.ExpiresAt),
	}
}

// options is what a browser is given, written as the library that made it has it.
func options(o any) WebAuthnOptions {
	if o == nil {
		return nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic("account: " + err.Error()) // of the library's own types
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
