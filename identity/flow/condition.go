package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"stonetown/identity"
	"stonetown/schema/condition"
)

// Variables are the variables of conditions, with their types in the notation of
// [condition.Parameter].
//
// The application is not one of them: a session serves all applications, so a condition about the
// one for which it begins would not hold for the others.
var Variables = []condition.Parameter{
	{Name: "user_id", Type: "string"}, // empty at a sign-up
	{Name: "email", Type: "string"},   // normalized
	{Name: "email_verified", Type: "bool"},
	{Name: "attributes", Type: "map<any>"},
	{Name: "created_at", Type: "timestamp"},
	{Name: "connection", Type: "string"},  // the slug; empty: the user signs in here
	{Name: "amr", Type: "list<string>"},   // the methods so far (RFC 8176)
	{Name: "second_factor", Type: "bool"}, // two factors were proved
	{Name: "ip", Type: "ipaddress"},       //
	{Name: "country", Type: "string"},     // ISO 3166-1 alpha-2; empty: unknown
	{Name: "user_agent", Type: "string"},  //
	{Name: "new_device", Type: "bool"},    // the user has not signed in on this device lately
	{Name: "time", Type: "timestamp"},     //
}

// Input describes a sign-up or a sign-in.
type Input struct {
	User         identity.User // without an id at a sign-up
	Connection   string
	Methods      []string
	SecondFactor bool // was proved
	HasFactors   bool // the user has second factors
	IP           string
	Country      string
	UserAgent    string
	NewDevice    bool
	At           time.Time
	Test         bool // it is a preview
}

// values returns the values of the variables. An address that is not known has none.
func (in Input) values() (map[string]any, error) {
	attributes := map[string]any{}
	if len(in.User.Attributes) > 0 {
		d := json.NewDecoder(strings.NewReader(string(in.User.Attributes)))
		d.UseNumber()
		if err := d.Decode(&attributes); err != nil {
			return nil, fmt.Errorf("attributes of user: %w", err)
		}
	}
	methods := make([]any, len(in.Methods))
	for i, m := range in.Methods {
		methods[i] = m
	}
	created := in.User.CreatedAt
	if created.IsZero() {
		created = in.At
	}
	values := map[string]any{
		"user_id": in.User.ID, "email": identity.NormalEmail(in.User.Email), "email_verified": in.User.EmailVerified, "attributes": attributes,
		"created_at": created.UTC().Format(time.RFC3339Nano), "connection": in.Connection, "amr": methods, "second_factor": in.SecondFactor,
		"country": in.Country, "user_agent": in.UserAgent, "new_device": in.NewDevice, "time": in.At.UTC().Format(time.RFC3339Nano),
	}
	if ip, err := netip.ParseAddr(in.IP); err == nil {
		values["ip"] = ip.Unmap().String()
	}
	return values, nil
}

// compiled is a document whose conditions are compiled, in the order of its steps.
type compiled struct {
	Document
	when map[Point][]*condition.Condition // nil: the step has none
}

// compileCondition compiles the condition of a step; nil: it has none.
func compileCondition(when string) (*condition.Condition, error) {
	if when == "" {
		return nil, nil
	}
	return condition.Compile(condition.Definition{Name: "when", Expression: when, Parameters: Variables})
}

// compile compiles a valid document.
func compile(d Document) (*compiled, error) {
	c := &compiled{Document: d, when: map[Point][]*condition.Condition{}}
	for _, p := range []Point{SignUp, SignIn} {
		for i, s := range d.steps(p) {
			when, err := compileCondition(s.When)
			if err != nil {
				return nil, fmt.Errorf("condition of step %d of %s: %w", i+1, p, err)
			}
			c.when[p] = append(c.when[p], when)
		}
	}
	return c, nil
}

// holds evaluates a condition. A condition that cannot be evaluated holds, and fault says why; it
// contains no values.
func holds(ctx context.Context, c *condition.Condition, values map[string]any) (holds bool, fault string, err error) {
	if c == nil {
		return true, "", nil
	}
	holds, missing, err := c.Evaluate(ctx, "", values)
	var failed *condition.EvaluationError
	switch {
	case errors.As(err, &failed):
		return true, failed.Message, nil
	case err != nil:
		return false, "", err
	case len(missing) > 0:
		return true, "these variables have no value: " + strings.Join(missing, ", "), nil
	}
	return holds, "", nil
}
