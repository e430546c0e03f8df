// Package condition evaluates the conditions of tuples: expressions of the Common
// Expression Language (CEL) over declared parameters.
//
//	nearby(distance int, limit int): distance < limit
//
// Beside CEL's own functions there are ipaddress(text) and ip.in_cidr(prefix), and
// a.isSubtreeOf(b) for maps.
//
// A parameter gets its value from the tuple, if it was stored when the tuple was written,
// or else from the request. A condition can be decided without all values: a || b is true
// if one of them is.
//
// Expressions are not trusted. Their cost is limited before and during evaluation, they
// access only their parameters, and the errors of an evaluation never contain values.
package condition

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// The limits of a condition.
const (
	MaxParameters = 32
	MaxExpression = 4096     // bytes
	MaxContext    = 16 << 10 // bytes of JSON stored with a tuple
	MaxText       = 16 << 10 // bytes of one string in a request's context
	maxCost       = 100_000  // CEL's units, of an evaluation
	quickCost     = 2_000    // of a quick evaluation, which takes less than a millisecond
	maxRegex      = 1000     // instructions of a compiled regular expression
)

// The cost of an evaluation is counted in steps of about 30 ns, the time of a visit to a
// node of a graph.
const (
	stepsToEvaluate = 100 // for any expression
	stepsOfCost     = 4   // one of CEL's units
	bytesOfStep     = 4   // of JSON that is decoded
	stepsOfValue    = 2   // of the request's context, converted
)

var (
	namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	// Parameters are CEL identifiers, and named like the members of contexts.
	parameterPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// Definition is a condition before compilation.
type Definition struct {
	Name       string
	Expression string // CEL, of type bool
	Parameters []Parameter
}

// Parameter is a value that a condition depends on. Its type is bool, string,
// int, uint, double, duration, timestamp, ipaddress, any, list<type>, or
// map<type>, whose keys are strings.
type Parameter struct {
	Name, Type string
}

// Error is an error in a definition.
type Error struct {
	Path    string // expression, name, parameters[0].type, ...
	Reason  string // a stable word
	Message string
}

func (e *Error) Error() string { return e.Message }

// EvaluationError is the error of a condition that could not be evaluated.
type EvaluationError struct {
	Condition string
	Message   string // names parameters, never values
}

func (e *EvaluationError) Error() string {
	return fmt.Sprintf("condition %s: %s", e.Condition, e.Message)
}

// Condition is a compiled definition. It is immutable and safe for concurrent
// use.
type Condition struct {
	definition Definition
	kinds      map[string]kind
	program    cel.Program
	quick      cel.Program // the same, with another limit
}

// Compile compiles a definition. Errors are [*Error].
func Compile(d Definition) (*Condition, error) {
	if !namePattern.MatchString(d.Name) {
		return nil, &Error{"name", "name_invalid", fmt.Sprintf("condition name %q does not match %s", d.Name, namePattern)}
	}
	if len(d.Expression) > MaxExpression {
		return nil, &Error{"expression", "too_long", fmt.Sprintf("expression has %d bytes, at most %d are allowed", len(d.Expression), MaxExpression)}
	}
	if len(d.Parameters) > MaxParameters {
		return nil, &Error{"parameters", "too_many", fmt.Sprintf("%d parameters, at most %d are allowed", len(d.Parameters), MaxParameters)}
	}
	c := &Condition{definition: d, kinds: map[string]kind{}}
	options := []cel.EnvOption{inCIDR, toAddress, isSubtreeOf, cel.RegexProgramSizeLimit(maxRegex)}
	for i, p := range d.Parameters {
		at := fmt.Sprintf("parameters[%d].", i)
		if !parameterPattern.MatchString(p.Name) {
			return nil, &Error{at + "name", "name_invalid", fmt.Sprintf("parameter name %q does not match %s", p.Name, parameterPattern)}
		}
		if _, ok := c.kinds[p.Name]; ok {
			return nil, &Error{at + "name", "duplicate", fmt.Sprintf("parameter %q is declared twice", p.Name)}
		}
		k, err := parseKind(p.Type)
		if err != nil {
			return nil, &Error{at + "type", "type_unknown", fmt.Sprintf("type %q of parameter %q: %v", p.Type, p.Name, err)}
		}
		c.kinds[p.Name] = k
		options = append(options, cel.Variable(p.Name, k.cel))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, &Error{"parameters", "invalid", err.Error()}
	}
	ast, issues := env.Compile(d.Expression)
	if err := issues.Err(); err != nil {
		return nil, &Error{"expression", "expression_invalid", err.Error()}
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, &Error{"expression", "not_boolean", fmt.Sprintf("expression is of type %s, must be bool", ast.OutputType())}
	}
	if err := checkAddresses(ast.NativeRep()); err != nil {
		return nil, &Error{"expression", "expression_invalid", err.Error()}
	}
	for program, limit := range map[*cel.Program]uint64{&c.program: maxCost, &c.quick: quickCost} {
		*program, err = env.Program(ast,
			cel.EvalOptions(cel.OptOptimize, cel.OptPartialEval),
			cel.CostLimit(limit), cel.CostTracking(costs{}), cel.InterruptCheckFrequency(100))
		if err != nil {
			return nil, &Error{"expression", "expression_invalid", err.Error()}
		}
	}
	return c, nil
}

// Parameters returns the declared parameters, which must not be changed.
func (c *Condition) Parameters() []Parameter { return c.definition.Parameters }

// Evaluate decides whether the condition holds. stored are values as [Condition.Normalize]
// returned them, and take precedence over those of the request. The request's are decoded
// JSON, numbers as float64, [encoding/json.Number] or text; members that are not parameters
// are ignored, because one context serves several conditions. If the result depends on
// parameters that have no value, missing lists them in order. Errors are [*EvaluationError]
// or the context's.
func (c *Condition) Evaluate(ctx context.Context, stored string, request map[string]any) (holds bool, missing []string, err error) {
	var steps int
	return c.EvaluateMetered(ctx, stored, request, false, &steps)
}

// ErrNotQuick is the error of a quick evaluation that would take too long.
var ErrNotQuick = errors.New("evaluation takes too long")

// EvaluateMetered is [Condition.Evaluate] and adds its cost to steps: one step takes about
// 30 ns. A quick evaluation fails with [ErrNotQuick] if it would take longer than a
// fraction of a millisecond.
func (c *Condition) EvaluateMetered(ctx context.Context, stored string, request map[string]any, quick bool, steps *int) (holds bool, missing []string, err error) {
	*steps += stepsToEvaluate + len(stored)/bytesOfStep
	values, err := c.decode([]byte(stored))
	if err != nil {
		return false, nil, &EvaluationError{c.definition.Name, err.Error()}
	}
	var unknown []*cel.AttributePatternType
	for _, p := range c.definition.Parameters {
		if _, ok := values[p.Name]; ok {
			continue
		}
		given, ok := request[p.Name]
		if !ok {
			unknown = append(unknown, cel.AttributePattern(p.Name))
			continue
		}
		size, longest := measure(given)
		*steps += stepsOfValue * size
		if longest > MaxText {
			return false, nil, &EvaluationError{c.definition.Name, fmt.Sprintf("the context's value for %s has a string of %d bytes, at most %d are allowed", p.Name, longest, MaxText)}
		}
		v, ok := c.kinds[p.Name].convert(given)
		if !ok {
			return false, nil, &EvaluationError{c.definition.Name, fmt.Sprintf("the context's value for %s is not of type %s", p.Name, p.Type)}
		}
		values[p.Name] = v
	}
	var vars any = values
	if len(unknown) > 0 {
		if vars, err = cel.PartialVars(values, unknown...); err != nil {
			return false, nil, &EvaluationError{c.definition.Name, "evaluation failed"}
		}
	}
	program := c.program
	if quick {
		program = c.quick
	}
	result, details, err := program.ContextEval(ctx, vars)
	if cost := details.ActualCost(); cost != nil {
		*steps += stepsOfCost * int(min(*cost, maxCost))
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return false, nil, ctxErr
	}
	if u, ok := result.(*types.Unknown); ok {
		return false, c.missing(u), nil
	}
	if err != nil && quick && costExceeded.MatchString(err.Error()) {
		return false, nil, ErrNotQuick
	}
	if err != nil {
		return false, nil, &EvaluationError{c.definition.Name, reason(err)}
	}
	b, ok := result.(types.Bool)
	if !ok {
		return false, nil, &EvaluationError{c.definition.Name, "the result is not a boolean"}
	}
	return bool(b), nil, nil
}

// measure counts the values in a value, and the bytes of its longest string.
func measure(v any) (values, longest int) {
	values = 1
	within := func(v any) {
		n, text := measure(v)
		values += n
		longest = max(longest, text)
	}
	switch v := v.(type) {
	case string:
		longest = len(v)
	case []any:
		for _, element := range v {
			within(element)
		}
	case map[string]any:
		for _, member := range v {
			within(member)
		}
	}
	return values, longest
}

// missing returns the parameters that a result depends on.
func (c *Condition) missing(u *types.Unknown) []string {
	var names []string
	for _, id := range u.IDs() {
		trails, _ := u.GetAttributeTrails(id)
		for _, t := range trails {
			names = append(names, t.Variable())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reason returns why an evaluation failed, without values, which CEL's messages may
// contain.
func reason(err error) string {
	switch text := err.Error(); {
	case costExceeded.MatchString(text):
		return "the evaluation costs more than is allowed"
	case text == "division by zero", text == "modulus by zero":
		return text
	}
	return "the evaluation failed for these values"
}

var costExceeded = regexp.MustCompile(`cost limit exceeded`)
