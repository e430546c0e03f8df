package flow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"stonetown/internal/text"
)

// The bounds of a document.
const (
	MaxSteps   = 20  // of a list
	MaxCalls   = 3   // steps of a list that call actions
	MaxActions = 10  // of a document
	MaxName    = 80  // bytes, of a step
	MaxMessage = 300 // bytes
	MaxNote    = 500 // bytes
	// MaxConditions is the size of all conditions of a document, in bytes. A compiled condition takes about
	// 50 times its size in memory.
	MaxConditions = 16 << 10
)

// actionName is the form of the names of actions, which are a part of paths.
var actionName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Fault is an error in a document.
type Fault struct {
	Field   string // sign_in/0/when
	Code    string // a stable word
	Message string // names the step and its position
}

// ValidationError is the error of a document that is not valid.
type ValidationError struct{ Faults []Fault }

func (e *ValidationError) Error() string { return e.Faults[0].Message }

// validate fails with [*ValidationError]. checkURL refuses addresses that are never requested.
func validate(d Document, checkURL func(string) error) error {
	v := &validation{Document: d, checkURL: checkURL}
	if len(d.Actions) > MaxActions {
		v.add("actions", "too_many", fmt.Sprintf("a flow has at most %d actions", MaxActions))
	}
	for i, a := range d.Actions {
		v.action(i, a)
	}
	for _, p := range []Point{SignUp, SignIn} {
		v.list(p)
	}
	if len(v.faults) > 0 {
		return &ValidationError{v.faults}
	}
	return nil
}

type validation struct {
	Document
	checkURL   func(string) error
	faults     []Fault
	conditions int // bytes of those so far
}

func (v *validation) add(field, code, message string) {
	v.faults = append(v.faults, Fault{field, code, message})
}

func (v *validation) action(i int, a Action) {
	fault := func(member, code, message string) {
		v.add(fmt.Sprintf("actions/%d/%s", i, member), code, fmt.Sprintf("action %d, %q: %s %s", i+1, a.Name, member, message))
	}
	switch {
	case !actionName.MatchString(a.Name):
		fault("name", "invalid", "must have 1 to 63 lower-case letters, digits, hyphens and underscores, the first a letter")
	case slices.ContainsFunc(v.Actions[:i], func(earlier Action) bool { return earlier.Name == a.Name }):
		fault("name", "taken", "is that of another action")
	}
	if a.URL == "" {
		fault("url", "required", "is required")
	} else if err := v.checkURL(a.URL); err != nil {
		fault("url", "invalid", "must be an https URL of a host on the public Internet, without user information and fragment")
	}
	if len(a.Effects) == 0 {
		fault("effects", "required", "must have one or more of deny, require_factor and add_claims")
	}
	for n, e := range a.Effects {
		if !slices.Contains(Effects, e) || slices.Contains(a.Effects[:n], e) {
			fault("effects", "unknown_value", "must be deny, require_factor or add_claims, each at most once")
			break
		}
	}
	if !slices.Contains([]OnError{"", DenyOnError, ContinueOnError}, a.OnError) {
		fault("on_error", "unknown_value", "must be deny or continue")
	}
}

func (v *validation) list(p Point) {
	steps := v.steps(p)
	if len(steps) > MaxSteps {
		v.add(string(p), "too_many", fmt.Sprintf("%s has at most %d steps", p, MaxSteps))
		return
	}
	calls := 0
	for i, s := range steps {
		if s.Kind == CallAction {
			calls++
		}
		v.step(p, i, s)
	}
	if calls > MaxCalls {
		v.add(string(p), "too_many", fmt.Sprintf("%s calls actions in at most %d steps", p, MaxCalls))
	}
}

func (v *validation) step(p Point, i int, s Step) {
	fault := func(member, code, message string) {
		v.add(fmt.Sprintf("%s/%d/%s", p, i, member), code, fmt.Sprintf("step %d of %s, %q: %s %s", i+1, p, s.Name, member, message))
	}
	for _, t := range []struct {
		member, value string
		most          int
	}{{"name", s.Name, MaxName}, {"message", s.Message, MaxMessage}} {
		if !text.IsLine(t.value) || len(t.value) > t.most {
			fault(t.member, "invalid", fmt.Sprintf("must be one line of at most %d bytes", t.most))
		}
	}
	if strings.TrimSpace(s.Name) == "" {
		fault("name", "required", "is required")
	}
	if !slices.Contains(Kinds[p], s.Kind) {
		fault("kind", "unknown_value", fmt.Sprintf("must be one of %q", Kinds[p]))
	}
	if s.Message != "" && s.Kind != Deny {
		fault("message", "not_applicable", "is only for the kind deny")
	}
	switch a, known := v.Document.action(s.Action); {
	case s.Kind != CallAction && s.Action != "":
		fault("action", "not_applicable", "is only for the kind action")
	case s.Kind == CallAction && !known:
		fault("action", "not_found", "must be the name of one of the actions")
	case s.Kind == CallAction && p == SignUp && slices.ContainsFunc(a.Effects, func(e Effect) bool { return e != EffectDeny }):
		fault("action", "not_applicable", "must be an action whose only effect is deny, because no session begins at a sign-up")
	}
	if v.conditions += len(s.When); v.conditions > MaxConditions {
		fault("when", "too_large", fmt.Sprintf("must have at most %d bytes together with the conditions before it", MaxConditions))
	} else if !text.IsStorable(s.When) {
		fault("when", "invalid", "must be valid UTF-8 without NUL")
	} else if _, err := compileCondition(s.When); err != nil {
		fault("when", "invalid", "is not a condition: "+err.Error())
	}
}
