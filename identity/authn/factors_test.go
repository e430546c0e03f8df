package authn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/google/go-cmp/cmp"
	"github.com/pquerna/otp/totp"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
)

// app is an authenticator app.
type app struct {
	w      *world
	secret string
	id     string
}

// code returns the current code.
func (a *app) code() string {
	a.w.Helper()
	code, err := totp.GenerateCode(a.secret, a.w.now())
	a.w.must(err)
	return code
}

// next returns a code that was not used before.
func (a *app) next() string {
	a.w.advance(30 * time.Second)
	return a.code()
}

// sessionOf begins a session of a user that has proved two factors.
func (w *world) sessionOf(u identity.User) session.Session {
	w.Helper()
	r, err := w.proceed(w.Context(), tenantA, w.stored(u), proof{Methods: []string{"pwd"}, Second: true}, device("test"))
	w.must(err)
	return r.Session
}

// addTOTP adds an authenticator app to a user.
func (w *world) addTOTP(u identity.User) *app {
	w.Helper()
	current := w.sessionOf(u)
	begun, err := w.BeginFactor(w.Context(), tenantA, current, NewFactor{Kind: factor.TOTP, Label: "App"})
	w.must(err)
	a := &app{w: w, secret: begun.Key.Secret}
	f, err := w.CompleteFactor(w.Context(), tenantA, current, factor.TOTP, begun.ID, FactorProof{Code: a.code()})
	w.must(err)
	a.id = f.ID
	w.mail(u.Email, "A second factor was added")
	return a
}

func TestEnrolment(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	r := w.signIn("ann@example.com")
	begin := func(s session.Session, n NewFactor) (Enrolment, error) {
		return w.BeginFactor(t.Context(), tenantA, s, n)
	}
	begun, err := begin(r.Session, NewFactor{Kind: factor.TOTP, Label: "App"})
	w.must(err)
	if begun.Key.Secret == "" || !strings.HasPrefix(begun.Key.URI, "otpauth://totp/Example:ann@example.com?") || begun.ExpiresAt.IsZero() {
		t.Errorf("%+v", begun)
	}
	a := &app{w: w, secret: begun.Key.Secret}
	complete := func(s session.Session, kind factor.Kind, id, code string) error {
		_, err := w.CompleteFactor(t.Context(), tenantA, s, kind, id, FactorProof{Code: code, Label: new("My app")})
		return err
	}
	w.wantErr("as another kind", complete(r.Session, factor.SMS, begun.ID, a.code()), ErrToken)
	w.wantErr("an unknown ceremony", complete(r.Session, factor.TOTP, "unknown", a.code()), ErrToken)
	w.user("bob@example.com")
	w.wantErr("the ceremony of another user", complete(w.signIn("bob@example.com").Session, factor.TOTP, begun.ID, a.code()), ErrToken)
	wrong, ok := errors.AsType[*WrongError](complete(r.Session, factor.TOTP, begun.ID, "000000"))
	if !ok || wrong.Kind != factor.TOTP || wrong.Left != maxAttempts-3 || !errors.Is(wrong, factor.ErrWrong) {
		t.Errorf("a wrong code: %+v", wrong)
	}
	w.must(complete(r.Session, factor.TOTP, begun.ID, a.code()))
	w.wantErr("the ceremony again", complete(w.sessionOf(u), factor.TOTP, begun.ID, a.next()), ErrToken)
	factors, err := w.Factors(t.Context(), tenantA.ID, u.ID)
	if err != nil || len(factors) != 1 || factors[0].Label != "My app" {
		t.Errorf("%+v, %v", factors, err)
	}
	now, err := w.ByID(t.Context(), tenantA.ID, r.Session.ID)
	if err != nil || now.SecondFactor.IsZero() || !w.SteppedUp(now.SecondFactor) {
		t.Errorf("the session is not raised: %+v, %v", now, err)
	}
	w.mail("ann@example.com", "A second factor was added")

	// A user with a factor must prove it before adding another one; others must have signed
	// in recently.
	_, err = begin(r.Session, NewFactor{Kind: factor.TOTP})
	w.wantErr("a session without a second factor", err, ErrStepUp)
	recent := w.signIn("bob@example.com").Session
	w.advance(PrimaryFor + time.Second)
	_, err = begin(recent, NewFactor{Kind: factor.TOTP})
	w.wantErr("an old sign-in", err, ErrStepUp)
	w.advance(StepUpFor)
	if w.SteppedUp(now.SecondFactor) {
		t.Error("an old second factor counts as recent")
	}

	// The tenant decides about kinds.
	current := w.sessionOf(u)
	w.settings(func(s *identity.Settings) { s.MFA.Kinds = []factor.Kind{factor.TOTP} })
	_, err = begin(current, NewFactor{Kind: factor.SMS, Number: "+4930123456"})
	w.wantErr("a kind that the tenant does not allow", err, ErrKind)
	w.settings(func(s *identity.Settings) { s.MFA.Mode = identity.MFAOff })
	_, err = begin(current, NewFactor{Kind: factor.TOTP})
	w.wantErr("a tenant without factors", err, ErrKind)
	w.wantEvents(map[eventlog.Type]int{eventlog.UserMFAEnrolled: 1})
}

func TestFactorsAreManaged(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	a := w.addTOTP(u)
	f, err := w.RenameFactor(t.Context(), tenantA.ID, u.ID, a.id, "Renamed")
	if err != nil || f.Label != "Renamed" {
		t.Errorf("%+v, %v", f, err)
	}
	_, err = w.RenameFactor(t.Context(), tenantA.ID, u.ID, "unknown", "x")
	w.wantErr("renaming an unknown factor", err, factor.ErrNotFound)
	w.wantErr("removing an unknown factor", w.RemoveFactor(t.Context(), tenantA.ID, u.ID, "unknown"), factor.ErrNotFound)
	codes, err := w.NewBackupCodes(t.Context(), tenantA.ID, u.ID)
	if err != nil || len(codes) != factor.BackupCodes {
		t.Errorf("%d codes, %v", len(codes), err)
	}
	if n, err := w.BackupCodesLeft(t.Context(), tenantA.ID, u.ID); n != factor.BackupCodes || err != nil {
		t.Errorf("%d codes are left, %v", n, err)
	}
	w.must(w.RemoveFactor(t.Context(), tenantA.ID, u.ID, a.id))
	w.mail("ann@example.com", "A second factor was removed")
	if n, err := w.BackupCodesLeft(t.Context(), tenantA.ID, u.ID); n != 0 || err != nil {
		t.Errorf("%d backup codes are left without a factor, %v", n, err)
	}
	if r := w.signIn("ann@example.com"); r.Status != Complete {
		t.Errorf("without a factor: %s", r.Status)
	}

	w.addTOTP(u)
	open := w.sessionOf(u)
	after, err := w.ResetFactors(t.Context(), tenantA.ID, u.ID)
	if err != nil || !after.MustEnrol || w.live(open) {
		t.Errorf("%+v, %v", after, err)
	}
	r := w.signIn("ann@example.com")
	if r.Status != EnrolmentRequired || !r.Session.MustEnrol {
		t.Errorf("after the reset: %+v", r)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserMFAReset: 1, eventlog.UserMFARemoved: 1, eventlog.UserBackupCodesRegenerated: 1})
}

func TestSecondFactor(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	a := w.addTOTP(u)
	codes, err := w.NewBackupCodes(t.Context(), tenantA.ID, u.ID)
	w.must(err)

	r := w.signIn("ann@example.com")
	if r.Status != MFARequired || len(r.Factors) != 1 || !r.BackupCodes {
		t.Fatalf("%+v", r)
	}
	verify := func(token string, answer Answer) (Result, error) {
		return w.VerifyFactor(t.Context(), tenantA, token, answer, device("test"))
	}
	_, err = verify("unknown", Answer{Kind: factor.TOTP, Code: a.code()})
	w.wantErr("an unknown token", err, ErrToken)
	_, err = verify(r.Continue, Answer{Kind: "unknown"})
	w.wantErr("an unknown kind", err, ErrKind)
	_, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: "000000"})
	if wrong, ok := errors.AsType[*WrongError](err); !ok || wrong.Left != maxAttempts-2 {
		t.Errorf("a wrong code: %v", err)
	}
	code := a.next()
	done, err := verify(r.Continue, Answer{Kind: factor.TOTP, Code: code})
	if err != nil || done.Status != Complete || done.Session.SecondFactor.IsZero() || !cmp.Equal(done.Session.Methods, []string{"pwd", "otp", "mfa"}) {
		t.Fatalf("%+v, %v", done, err)
	}
	_, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: a.next()})
	w.wantErr("the token again", err, ErrToken)
	_, err = verify(w.signIn("ann@example.com").Continue, Answer{Kind: factor.TOTP, Code: code})
	w.wantErr("the code again", err, factor.ErrWrong)

	spoken := strings.ToUpper(strings.ReplaceAll(codes[0], "-", " "))
	done, err = verify(w.signIn("ann@example.com").Continue, Answer{Kind: factor.BackupCode, Code: spoken})
	if err != nil || done.Status != Complete {
		t.Errorf("a backup code: %s, %v", done.Status, err)
	}
	_, err = verify(w.signIn("ann@example.com").Continue, Answer{Kind: factor.BackupCode, Code: codes[0]})
	w.wantErr("the backup code again", err, factor.ErrWrong)
	w.wantEvents(map[eventlog.Type]int{eventlog.UserBackupCodeUsed: 1, eventlog.UserSignInFailed: 3})

	// Attempts are limited by token, and by account across tokens.
	r = w.signIn("ann@example.com")
	for n := range maxAttempts {
		w.advance(maxWait)
		_, err := verify(r.Continue, Answer{Kind: factor.TOTP, Code: "000000"})
		if wrong, ok := errors.AsType[*WrongError](err); !ok || wrong.Left != maxAttempts-1-n {
			t.Errorf("attempt %d: %v", n, err)
		}
	}
	w.advance(maxWait)
	_, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: a.next()})
	w.wantErr("after too many attempts", err, ErrToken)
	w.advance(maxWait)
	r = w.signIn("ann@example.com")
	_, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: "000000"})
	w.wantErr("with another token", err, factor.ErrWrong)
	_, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: "000000"})
	w.slowDown("the account", err)
	w.advance(maxWait)
	if done, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: a.next()}); err != nil || done.Status != Complete {
		t.Errorf("a refused attempt counts for the token: %v", err)
	}

	// The token expires.
	r = w.signIn("ann@example.com")
	w.advance(mfaFor)
	_, err = verify(r.Continue, Answer{Kind: factor.TOTP, Code: a.next()})
	w.wantErr("an expired token", err, ErrToken)
}

func TestSMS(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	current := w.sessionOf(u)
	const number = "+4930123456"
	for _, bad := range []string{"030123456", "+7123456789", ""} {
		_, err := w.BeginFactor(t.Context(), tenantA, current, NewFactor{Kind: factor.SMS, Number: bad})
		w.wantErr(bad, err, ErrNumber)
	}
	w.refuse("text")
	_, err := w.BeginFactor(t.Context(), tenantA, current, NewFactor{Kind: factor.SMS, Number: number})
	w.slowDown("too many messages", err)
	w.refuse("")
	begun, err := w.BeginFactor(t.Context(), tenantA, current, NewFactor{Kind: factor.SMS, Number: number})
	w.must(err)
	if begun.Number != "+49••••••56" || begun.ResendAfter != resendAfter {
		t.Errorf("%+v", begun)
	}
	code := func() string { return w.mail(number, "Example").Text[:6] }
	_, err = w.CompleteFactor(t.Context(), tenantA, current, factor.SMS, begun.ID, FactorProof{Code: "x"})
	w.wantErr("a wrong code", err, factor.ErrWrong)
	f, err := w.CompleteFactor(t.Context(), tenantA, current, factor.SMS, begun.ID, FactorProof{Code: code()})
	w.must(err)
	w.mail("ann@example.com", "A second factor was added")

	r := w.signIn("ann@example.com")
	_, err = w.Challenge(t.Context(), tenantA, "unknown", f.ID, "")
	w.wantErr("an unknown token", err, ErrToken)
	_, err = w.Challenge(t.Context(), tenantA, r.Continue, "unknown", "")
	w.wantErr("an unknown factor", err, ErrKind)
	_, err = w.Challenge(t.Context(), tenantA, r.Continue, "", factor.TOTP)
	w.wantErr("a kind that the user does not have", err, ErrKind)
	challenge, err := w.Challenge(t.Context(), tenantA, r.Continue, f.ID, "")
	w.must(err)
	sent := code()
	verify := func(token, challengeID, code string) (Result, error) {
		return w.VerifyFactor(t.Context(), tenantA, token, Answer{Kind: factor.SMS, ChallengeID: challengeID, Code: code}, device("test"))
	}
	_, err = verify(r.Continue, "unknown", sent)
	w.wantErr("an unknown challenge", err, ErrToken)
	_, err = verify(w.signIn("ann@example.com").Continue, challenge.ID, sent)
	w.wantErr("the challenge of another sign-in", err, ErrToken)
	done, err := verify(r.Continue, challenge.ID, sent)
	if err != nil || done.Status != Complete || !cmp.Equal(done.Session.Methods, []string{"pwd", "sms", "mfa"}) {
		t.Errorf("%+v, %v", done, err)
	}

	// A code that has expired is not sent.
	err = w.sendSMS(t.Context(), jobs.Job{TenantID: tenantA.ID, CreatedAt: w.now().Add(-smsFor - time.Second)}, sms{"", number, "123456"})
	w.wantErr("an expired code", err, jobs.ErrDrop)
	w.silence("an expired code")
}

func TestStepUp(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	if way, err := w.WayToAAL2(t.Context(), tenantA.ID, u.ID); way != Enrol || err != nil {
		t.Errorf("without a factor: %v, %v", way, err)
	}
	a := w.addTOTP(u)
	if way, err := w.WayToAAL2(t.Context(), tenantA.ID, u.ID); way != Prove || err != nil {
		t.Errorf("with a factor: %v, %v", way, err)
	}
	bob := w.user("bob@example.com")
	w.settings(func(s *identity.Settings) { s.MFA.Mode = identity.MFAOff })
	if way, err := w.WayToAAL2(t.Context(), tenantA.ID, bob.ID); way != NoWay || err != nil {
		t.Errorf("in a tenant without factors: %v, %v", way, err)
	}
	r := w.signIn("ann@example.com") // with the password alone
	_, _, err := w.CompleteStepUp(t.Context(), tenantA, r.Session, Answer{Kind: factor.TOTP, Code: "000000"})
	w.wantErr("a wrong code", err, factor.ErrWrong)
	_, err = w.BeginStepUp(t.Context(), tenantA, r.Session, "", factor.SMS)
	w.wantErr("a kind that the user does not have", err, ErrKind)
	if _, err := w.BeginStepUp(t.Context(), tenantA, r.Session, a.id, ""); err != nil {
		t.Error(err)
	}
	now, token, err := w.CompleteStepUp(t.Context(), tenantA, r.Session, Answer{Kind: factor.TOTP, Code: a.next()})
	w.must(err)
	if !w.SteppedUp(now.SecondFactor) || w.SteppedUp(r.Session.SecondFactor) {
		t.Errorf("%+v", now)
	}
	_, err = w.ByToken(t.Context(), tenantA.ID, r.Token)
	w.wantErr("the old token", err, session.ErrEnded)
	if found, err := w.ByToken(t.Context(), tenantA.ID, token); err != nil || found.ID != r.Session.ID {
		t.Errorf("the new token: %+v, %v", found, err)
	}
	for range freeFailures {
		_, _, err = w.CompleteStepUp(t.Context(), tenantA, r.Session, Answer{Kind: factor.TOTP, Code: "000000"})
	}
	w.wantErr("the last free failure", err, factor.ErrWrong)
	_, _, err = w.CompleteStepUp(t.Context(), tenantA, r.Session, Answer{Kind: factor.TOTP, Code: a.code()})
	w.slowDown("too many failures", err)
	w.wantEvents(map[eventlog.Type]int{eventlog.SessionSteppedUp: 1})
}

// authenticator is a WebAuthn authenticator with one credential.
type authenticator struct {
	party         virtualwebauthn.RelyingParty
	authenticator virtualwebauthn.Authenticator
	credential    virtualwebauthn.Credential
}

func newAuthenticator(t testing.TB) *authenticator {
	t.Helper()
	for {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		point, err := key.PublicKey.Bytes() // 4, x, y
		if err != nil {
			t.Fatal(err)
		}
		if point[1] == 0 || point[33] == 0 {
			continue // the library omits leading zeros
		}
		text, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return &authenticator{
			party:         virtualwebauthn.RelyingParty{Name: "a.test", ID: "a.test", Origin: "https://a.test"},
			authenticator: virtualwebauthn.NewAuthenticator(),
			credential:    virtualwebauthn.NewCredentialWithImportedKey(virtualwebauthn.KeyTypeEC2, text),
		}
	}
}

func publicKey(t testing.TB, options any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"publicKey": options})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (a *authenticator) create(t testing.TB, options any) []byte {
	t.Helper()
	parsed, err := virtualwebauthn.ParseAttestationOptions(publicKey(t, options))
	if err != nil {
		t.Fatal(err)
	}
	a.authenticator.Options.UserHandle = []byte(parsed.UserID)
	return []byte(virtualwebauthn.CreateAttestationResponse(a.party, a.authenticator, a.credential, *parsed))
}

func (a *authenticator) get(t testing.TB, options any) []byte {
	t.Helper()
	parsed, err := virtualwebauthn.ParseAssertionOptions(publicKey(t, options))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(virtualwebauthn.CreateAssertionResponse(a.party, a.authenticator, a.credential, *parsed))
}

// addPasskey adds a passkey to a user.
func (w *world) addPasskey(u identity.User) (*authenticator, factor.Factor) {
	w.Helper()
	current := w.sessionOf(u)
	begun, err := w.BeginFactor(w.Context(), tenantA, current, NewFactor{Kind: factor.WebAuthn, Label: "Key", Passkey: true})
	w.must(err)
	a := newAuthenticator(w)
	f, err := w.CompleteFactor(w.Context(), tenantA, current, factor.WebAuthn, begun.ID, FactorProof{Credential: a.create(w, begun.Options)})
	w.must(err)
	w.mail(u.Email, "A second factor was added")
	return a, f
}

func TestPasskeys(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	a, f := w.addPasskey(u)
	for _, email := range []string{"ann@example.com", ""} {
		begun, err := w.BeginPasskey(t.Context(), tenantA, email)
		w.must(err)
		if begun.Autofill != (email == "") {
			t.Errorf("%q: %+v", email, begun)
		}
		r, err := w.CompletePasskey(t.Context(), tenantA, begun.ID, a.get(t, begun.Options), device("test"))
		if err != nil || r.Status != Complete || r.User.ID != u.ID || r.Session.SecondFactor.IsZero() || !cmp.Equal(r.Session.Methods, []string{"hwk", "user"}) {
			t.Errorf("%q: %+v, %v", email, r, err)
		}
		_, err = w.CompletePasskey(t.Context(), tenantA, begun.ID, a.get(t, begun.Options), device("test"))
		w.wantErr("the ceremony again", err, ErrToken)
	}
	begun, err := w.BeginPasskey(t.Context(), tenantA, "")
	w.must(err)
	_, err = w.CompletePasskey(t.Context(), tenantA, begun.ID, []byte("{}"), device("test"))
	w.wantErr("an invalid response", err, factor.ErrWrong)
	_, err = w.CompletePasskey(t.Context(), tenantA, begun.ID, newAuthenticator(t).get(t, begun.Options), device("test"))
	w.wantErr("an unknown credential", err, factor.ErrWrong)
	_, err = w.CompletePasskey(t.Context(), tenantA, "unknown", a.get(t, begun.Options), device("test"))
	w.wantErr("an unknown ceremony", err, ErrToken)

	// The response for an unknown address looks like that for others, and is always the same.
	options := func(email string) map[string]any {
		begun, err := w.BeginPasskey(t.Context(), tenantA, email)
		w.must(err)
		var parsed struct {
			PublicKey map[string]any `json:"publicKey"`
		}
		w.must(json.Unmarshal([]byte(publicKey(t, begun.Options)), &parsed))
		delete(parsed.PublicKey, "challenge")
		return parsed.PublicKey
	}
	first, known := options("unknown@example.com"), options("ann@example.com")
	if diff := cmp.Diff(first, options("Unknown@example.com")); diff != "" {
		t.Errorf("the decoy changes:\n%s", diff)
	}
	if cmp.Equal(first["allowCredentials"], known["allowCredentials"]) {
		t.Error("the decoy is the credential of a user")
	}
	delete(first, "allowCredentials")
	delete(known, "allowCredentials")
	if diff := cmp.Diff(first, known); diff != "" {
		t.Errorf("the decoy differs:\n%s", diff)
	}

	// As a second factor.
	r := w.signIn("ann@example.com")
	for _, factorID := range []string{f.ID, ""} {
		challenge, err := w.Challenge(t.Context(), tenantA, r.Continue, factorID, factor.WebAuthn)
		w.must(err)
		if factorID != "" {
			_, err = w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.WebAuthn, ChallengeID: challenge.ID, Credential: newAuthenticator(t).get(t, challenge.Options)}, device("test"))
			w.wantErr("an unknown credential", err, factor.ErrWrong)
			continue
		}
		done, err := w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.WebAuthn, ChallengeID: challenge.ID, Credential: a.get(t, challenge.Options)}, device("test"))
		if err != nil || done.Status != Complete {
			t.Errorf("as a second factor: %s, %v", done.Status, err)
		}
	}

	// A disabled user cannot use it.
	w.user("carol@example.com")
	begun, err = w.BeginPasskey(t.Context(), tenantA, "")
	w.must(err)
	w.change(u, func(u *identity.User) { u.State = identity.Disabled })
	_, err = w.CompletePasskey(t.Context(), tenantA, begun.ID, a.get(t, begun.Options), device("test"))
	w.wantErr("a disabled user", err, ErrDisabled)
}
