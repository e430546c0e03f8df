package authn

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/flow"
	"stonetown/internal/eventlog"
)

// scripted are flows with the outcome that a test sets.
type scripted struct {
	outcome func(p flow.Point, in flow.Input, kept *flow.State) (flow.Outcome, error)
	runs    []flow.Input
}

func (s *scripted) Run(_ context.Context, _ string, _ int, p flow.Point, in flow.Input, kept *flow.State) (flow.Outcome, error) {
	s.runs = append(s.runs, in)
	return s.outcome(p, in, kept)
}

// publish makes the outcome of the flow of the tenant.
func (w *world) publish(outcome func(p flow.Point, in flow.Input, kept *flow.State) (flow.Outcome, error)) {
	w.flow.outcome, w.flow.runs = outcome, nil
	w.settings(func(s *identity.Settings) { s.SignInFlow = 1 })
}

func denies(at flow.Point) func(flow.Point, flow.Input, *flow.State) (flow.Outcome, error) {
	return func(p flow.Point, _ flow.Input, _ *flow.State) (flow.Outcome, error) {
		if p == at {
			return flow.Outcome{}, &flow.DeniedError{Message: "Not today."}
		}
		return flow.Outcome{}, nil
	}
}

func demands(d flow.Demands) func(flow.Point, flow.Input, *flow.State) (flow.Outcome, error) {
	return func(flow.Point, flow.Input, *flow.State) (flow.Outcome, error) { return flow.Outcome{Demands: d}, nil }
}

func (w *world) count(query string) (n int64) {
	w.Helper()
	w.must(w.db.QueryRow(w.Context(), query).Scan(&n))
	return n
}

// TestFlowDeniesOnEveryPath: a flow that denies is in the way of every step that ends a sign-in, and no
// session begins.
func TestFlowDeniesOnEveryPath(t *testing.T) {
	w := open(t)
	ann, bob := w.user("ann@example.com"), w.user("bob@example.com")
	key, _ := w.addPasskey(ann)
	app := w.addTOTP(bob)
	linked := assertion()
	linked.Subject, linked.Email = "linked", "linked@example.com"
	_, err := w.federated(linked)
	w.must(err)
	fresh := assertion()
	fresh.Subject, fresh.Email = "fresh", "fresh@example.com"
	prompted := assertion()
	prompted.Email, prompted.Subject, prompted.Link = "ann@example.com", "prompted", LinkPrompt
	carol := w.user("carol@example.com")
	w.user("erin@example.com")
	w.user("dave@example.com", func(u *identity.User) { u.PasswordMustBeReset = true })
	w.must(w.Forgot(t.Context(), tenantA, carol.Email, ""))
	reset := w.link(carol.Email, "Choose a new password")
	forced := w.signIn("dave@example.com")
	second := w.signIn("bob@example.com")
	waiting, err := w.federated(prompted)
	w.must(err)

	w.publish(denies(flow.SignIn))
	before := w.events()[eventlog.SessionCreated]
	passkey := func() (string, []byte) {
		begun, err := w.BeginPasskey(t.Context(), tenantA, ann.Email)
		w.must(err)
		return begun.ID, key.get(t, begun.Options)
	}
	on := device("test")
	for name, path := range map[string]func() (Result, error){
		"password": func() (Result, error) { return w.SignIn(t.Context(), tenantA, "erin@example.com", plain, on) },
		"second factor": func() (Result, error) {
			return w.VerifyFactor(t.Context(), tenantA, second.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, on)
		},
		"passkey": func() (Result, error) {
			id, credential := passkey()
			return w.CompletePasskey(t.Context(), tenantA, id, credential, on)
		},
		"connection":        func() (Result, error) { return w.federated(linked) },
		"new at connection": func() (Result, error) { return w.federated(fresh) },
		"reset link": func() (Result, error) {
			return w.ResetPassword(t.Context(), tenantA, reset, "another horse battery", on)
		},
		"forced replacement": func() (Result, error) {
			return w.ResetPassword(t.Context(), tenantA, forced.Continue, "another horse battery", on)
		},
		"linking by passkey": func() (Result, error) {
			id, credential := passkey()
			return w.LinkWithPasskey(t.Context(), tenantA, waiting.Continue, id, credential, on)
		},
	} {
		r, err := path()
		message, denied := IsDenied(err)
		if !denied || message != "Not today." || r.Token != "" || r.Continue != "" {
			t.Errorf("%s: %s, %v", name, r.Status, err)
		}
	}
	prompted.Email, prompted.Subject = carol.Email, "by password"
	waiting, err = w.federated(prompted)
	w.must(err)
	if _, err := w.LinkWithPassword(t.Context(), tenantA, waiting.Continue, "another horse battery", on); !isDenied(err) {
		t.Errorf("linking by password: %v", err)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.SessionCreated: before})
	if n := w.count(`SELECT COUNT(*) FROM external_identities WHERE subject IN ('prompted', 'by password')`); n != 0 {
		t.Errorf("%d identities were linked", n)
	}
}

func isDenied(err error) bool {
	_, denied := IsDenied(err)
	return denied
}

// TestFlowDeniesSignUp: neither a form nor the first sign-in at a connection creates an account, and the
// answer is the same for an address with an account.
func TestFlowDeniesSignUp(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	w.publish(denies(flow.SignUp))
	for _, email := range []string{"ann@example.com", "new@example.com"} {
		if err := w.SignUp(t.Context(), tenantA, NewAccount{Email: email, Password: "another horse battery", Device: device("test")}); !isDenied(err) {
			t.Errorf("%s: %v", email, err)
		}
	}
	fresh := assertion()
	fresh.Email = "fresh@example.com"
	if _, err := w.federated(fresh); !isDenied(err) {
		t.Errorf("connection: %v", err)
	}
	if in := w.flow.runs[0]; in.User.ID != "" || in.User.Email != "ann@example.com" || in.Country != "DE" || in.IP != "192.0.2.1" {
		t.Errorf("%+v", in)
	}
	w.silence("denied sign-ups")
	if n := w.count(`SELECT COUNT(*) FROM users`); n != 1 {
		t.Errorf("%d users", n)
	}
	w.signIn("ann@example.com")
}

// TestFlowDemands: demands lead to the steps of settings that demand the same.
func TestFlowDemands(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	bob := w.user("bob@example.com")
	app := w.addTOTP(bob)
	w.user("carol@example.com", func(u *identity.User) { u.EmailVerified = false })

	w.publish(demands(flow.Demands{VerifiedEmail: true}))
	if r := w.signIn("carol@example.com"); r.Status != EmailRequired || r.Token != "" {
		t.Errorf("unverified: %+v", r)
	}
	if r := w.signIn("ann@example.com"); r.Status != Complete {
		t.Errorf("verified: %+v", r)
	}

	w.publish(demands(flow.Demands{Factor: true}))
	if r := w.signIn("ann@example.com"); r.Status != EnrolmentRequired || !r.Session.MustEnrol {
		t.Errorf("without a factor: %+v", r)
	}
	// The remembered device of a user does not suffice.
	r := w.signIn("bob@example.com")
	on := device("test")
	on.Remember = true
	done, err := w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, on)
	w.must(err)
	on.Token = done.Device
	if r, err = w.SignIn(t.Context(), tenantA, "bob@example.com", plain, on); err != nil || r.Status != MFARequired || on.Token == "" {
		t.Errorf("remembered: %+v, %v", r, err)
	}
	// A session in which a user can only add a factor is a session, so the flow runs before it, too.
	w.settings(func(s *identity.Settings) { s.MFA.Mode = identity.MFARequired })
	w.publish(denies(flow.SignIn))
	if r, err := w.SignIn(t.Context(), tenantA, "ann@example.com", plain, device("test")); !isDenied(err) || r.Token != "" {
		t.Errorf("before an enrolment: %+v, %v", r, err)
	}
	// A demand that cannot be met denies.
	w.publish(demands(flow.Demands{Factor: true}))
	w.settings(func(s *identity.Settings) { s.MFA.Mode = identity.MFAOff })
	for _, email := range []string{"ann@example.com", "bob@example.com"} {
		if _, err := w.SignIn(t.Context(), tenantA, email, plain, device("test")); !isDenied(err) {
			t.Errorf("second factors are off, %s: %v", email, err)
		}
	}
}

// TestFlowKeepsState: the state of a run is that of the next one of the same sign-in, and of no other;
// claims are those of the session.
func TestFlowKeepsState(t *testing.T) {
	w := open(t)
	bob := w.user("bob@example.com")
	app := w.addTOTP(bob)
	// On a remembered device the flow is the first to demand the factor.
	on := device("test")
	on.Remember = true
	r, err := w.SignIn(t.Context(), tenantA, bob.Email, plain, on)
	w.must(err)
	r, err = w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, on)
	w.must(err)
	on = device("test")
	on.Token = r.Device
	var kept []*flow.State
	w.publish(func(_ flow.Point, in flow.Input, k *flow.State) (flow.Outcome, error) {
		kept = append(kept, k)
		o := flow.Outcome{Claims: map[string]json.RawMessage{"team": json.RawMessage(`"ops"`)}}
		if o.State = k; k == nil {
			o.State = &flow.State{Version: 1, Results: map[int]flow.Result{2: {RequireFactor: true}}}
		}
		o.Factor = !in.SecondFactor
		return o, nil
	})
	if r, err = w.SignIn(t.Context(), tenantA, bob.Email, plain, on); err != nil || r.Status != MFARequired || len(kept) != 1 || kept[0] != nil {
		t.Fatalf("%+v, %v, %d runs", r, err, len(kept))
	}
	done, err := w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, on)
	w.must(err)
	if len(kept) != 2 || kept[1] == nil || !kept[1].Results[2].RequireFactor {
		t.Errorf("kept %+v", kept)
	}
	if done.Session.Claims != `{"team":"ops"}` {
		t.Errorf("claims %q", done.Session.Claims)
	}
	if found, err := w.ByID(t.Context(), tenantA.ID, done.Session.ID); err != nil || found.Claims != done.Session.Claims {
		t.Errorf("stored %+v, %v", found, err)
	}
}

// TestFlowInput: a flow sees the connection, the methods, and whether the device is new.
func TestFlowInput(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	w.publish(demands(flow.Demands{}))
	last := func() flow.Input { return w.flow.runs[len(w.flow.runs)-1] }
	known, other := device("test"), device("another")
	signIn := func(on Device, isNew bool) {
		t.Helper()
		_, err := w.SignIn(t.Context(), tenantA, "ann@example.com", plain, on)
		w.must(err)
		if in := last(); in.NewDevice != isNew || in.Connection != "" || !slices.Equal(in.Methods, []string{"pwd"}) || in.SecondFactor || in.HasFactors {
			t.Errorf("%s: %+v", on.UserAgent, in)
		}
	}
	signIn(known, false) // the first sign-in of all is on no new device
	signIn(known, false)
	signIn(other, true)
	signIn(other, false)

	fresh := assertion()
	fresh.Subject, fresh.Email = "fresh", "fresh@example.com"
	_, err := w.federated(fresh)
	w.must(err)
	for _, in := range w.flow.runs[len(w.flow.runs)-2:] { // of the sign-up, and of the sign-in
		if in.Connection != fresh.Slug || in.Connection == "" || in.User.Email != fresh.Email || !slices.Equal(in.Methods, []string{"fed"}) {
			t.Errorf("connection: %+v", in)
		}
	}
}

// TestFlowOnlyAddsDemands: over random accounts, proofs and settings, the step with a demand is never
// weaker than the step without it.
func TestFlowOnlyAddsDemands(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	flip := func() bool { return r.IntN(2) == 0 }
	for range 20_000 {
		a := account{identity.User{
			State: []identity.State{identity.Active, identity.Pending, identity.Disabled}[r.IntN(3)], EmailVerified: flip(), PasswordMustBeReset: flip(), MustEnrol: flip(),
		}, r.IntN(2), flip()}
		p := proof{Methods: []string{[]string{"pwd", "fed", "hwk"}[r.IntN(3)]}, Second: flip()}
		s := identity.Settings{RequireVerifiedEmail: flip(), MFA: identity.MFAPolicy{Mode: []identity.MFAMode{identity.MFAOff, identity.MFAOptional, identity.MFARequired}[r.IntN(3)]}}
		more := flow.Demands{Factor: flip(), VerifiedEmail: flip()}
		without, errWithout := nextStep(a, p, s, flow.Demands{})
		with, err := nextStep(a, p, s, more)
		switch {
		case errors.Is(errWithout, ErrDisabled):
			if !errors.Is(err, ErrDisabled) {
				t.Fatalf("seed %d: a disabled user gets %q, %v", seed, with, err)
			}
		case err != nil: // it was refused
		case with == without:
			if with == Complete && (more.Factor && !p.Second || more.VerifiedEmail && !a.user.EmailVerified) {
				t.Fatalf("seed %d: %+v %+v %+v: the demand %+v has no effect", seed, a, p, s, more)
			}
		case rank(with) < rank(without):
			t.Fatalf("seed %d: %+v %+v %+v %+v: %s instead of %s", seed, a, p, s, more, with, without)
		}
	}
}

// rank orders the steps as nextStep does, the first one last.
func rank(s Status) int {
	return map[Status]int{Complete: 0, EnrolmentRequired: 1, PasswordRequired: 2, MFARequired: 3, EmailRequired: 4}[s]
}
