package flow

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"
)

// runTime bounds a run: its conditions, and actions that each wait for a place and then for their answer.
const runTime = MaxCalls*(Patience+CallTime) + time.Second

// DeniedError is returned for a sign-up or a sign-in that a flow refuses.
type DeniedError struct {
	Message string // of the step or the action, one line; empty: there is none
}

func (e *DeniedError) Error() string {
	if e.Message == "" {
		return "the sign-in was refused by the rules of the tenant"
	}
	return e.Message
}

// Demands are the demands of a flow, in addition to those of the settings.
type Demands struct {
	Factor        bool // a second factor, also on a remembered device
	VerifiedEmail bool
}

// State is kept while a sign-in waits for its next step: the results of the actions that were called,
// by the positions of their steps. It belongs to one version.
type State struct {
	Version int            `json:"version"`
	Results map[int]Result `json:"results,omitempty"`
}

// Outcome is the outcome of a run.
type Outcome struct {
	Demands
	Claims map[string]json.RawMessage // for the tokens of the session
	State  *State                     // nil: no action was called
	Steps  []StepOutcome

	denied  bool
	message string
}

// StepOutcome is the outcome of one step.
type StepOutcome struct {
	Position int // from 0
	Step
	Holds    *bool  // whether the condition held; nil: it was not evaluated
	Fault    string // why the condition could not be evaluated; empty: it could be
	Result   StepResult
	Reason   Reason // of a failed action
	Claims   map[string]json.RawMessage
	Duration time.Duration // of the request of an action
}

// StepResult is the result of a step.
type StepResult string

// The results of steps.
const (
	Skipped    StepResult = "skipped"     // the condition does not hold
	Denied     StepResult = "denied"      // the sign-in ends
	Demanded   StepResult = "demanded"    // the user has to prove something
	Satisfied  StepResult = "satisfied"   // the proof was given before
	Passed     StepResult = "passed"      // the action has no effect but claims, if any
	Failed     StepResult = "failed"      // the action failed, and the flow continues
	NotCalled  StepResult = "not_called"  // a preview without requests
	NotReached StepResult = "not_reached" // an earlier step ended the run
)

// caller calls the action of a step. It fails with [*failure]. A nil caller calls none.
type caller func(ctx context.Context, s Step, a Action) (Result, error)

// run runs the steps of a point. Its error is the server's.
func (c *compiled) run(ctx context.Context, p Point, version int, in Input, kept *State, call caller) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	values, err := in.values()
	if err != nil {
		return Outcome{}, err
	}
	r := &run{compiled: c, in: in, values: values, call: call, state: State{version, map[int]Result{}}}
	if kept != nil && kept.Version == version {
		maps.Copy(r.state.Results, kept.Results)
	}
	ended := false
	for i, s := range c.steps(p) {
		step := StepOutcome{Position: i, Step: s, Result: NotReached}
		if !ended {
			if ended, err = r.step(ctx, p, &step); err != nil {
				return Outcome{}, err
			}
		}
		r.Steps = append(r.Steps, step)
	}
	if len(r.state.Results) > 0 {
		r.State = &r.state
	}
	return r.Outcome, nil
}

// run is the state of one run.
type run struct {
	Outcome
	*compiled
	in     Input
	values map[string]any
	call   caller
	state  State
}

// step runs a step, and reports whether the run ends with it.
func (r *run) step(ctx context.Context, p Point, o *StepOutcome) (ended bool, err error) {
	if result, called := r.state.Results[o.Position]; called && o.Kind == CallAction {
		return r.apply(o, result), nil
	}
	met, fault, err := holds(ctx, r.when[p][o.Position], r.values)
	if err != nil {
		return false, err
	}
	o.Holds, o.Fault = &met, fault
	if !met {
		o.Result = Skipped
		return false, nil
	}
	switch o.Kind {
	case RequireFactor:
		return r.demandFactor(o), nil
	case RequireVerifiedEmail:
		if o.Result = Satisfied; !r.in.User.EmailVerified {
			o.Result, r.VerifiedEmail = Demanded, true
		}
		return o.Result == Demanded, nil
	case CallAction:
		return r.callAction(ctx, o)
	}
	return r.deny(o, o.Message), nil // also a kind of a newer release
}

func (r *run) deny(o *StepOutcome, message string) (ended bool) {
	o.Result, r.denied, r.message = Denied, true, message
	return true
}

// demandFactor demands a second factor. A user who has none adds one in a session that can do nothing
// else, and gets no further step. So the run continues, and only ends for a user who proves one.
func (r *run) demandFactor(o *StepOutcome) (ended bool) {
	if r.in.SecondFactor {
		o.Result = Satisfied
		return false
	}
	o.Result, r.Factor = Demanded, true
	return r.in.HasFactors
}

func (r *run) callAction(ctx context.Context, o *StepOutcome) (ended bool, err error) {
	a, known := r.action(o.Action)
	if r.call == nil {
		o.Result = NotCalled
		return false, nil
	}
	result, err := Result{}, error(&failure{Reason: ResponseInvalid})
	if known {
		began := time.Now()
		result, err = r.call(ctx, o.Step, a)
		o.Duration = time.Since(began)
	}
	if err == nil && !result.denied && sizeOf(r.Claims)+sizeOf(result.Claims) > MaxClaimsBytes {
		err = &failure{Reason: ClaimRefused}
	}
	var failed *failure
	if errors.As(err, &failed) {
		if o.Reason, o.Result = failed.Reason, Failed; a.OnError == ContinueOnError {
			r.state.Results[o.Position] = Result{}
			return false, nil
		}
		return r.deny(o, ""), nil
	}
	if err != nil {
		return false, err
	}
	if !result.denied {
		r.state.Results[o.Position] = result
	}
	return r.apply(o, result), nil
}

// apply applies the result of an action.
func (r *run) apply(o *StepOutcome, result Result) (ended bool) {
	if result.denied {
		return r.deny(o, result.message)
	}
	if o.Claims = result.Claims; len(o.Claims) > 0 {
		if r.Claims == nil {
			r.Claims = map[string]json.RawMessage{}
		}
		maps.Copy(r.Claims, o.Claims)
	}
	if o.Result = Passed; result.RequireFactor {
		return r.demandFactor(o)
	}
	return false
}
