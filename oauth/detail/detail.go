// Package detail has the authorization details of requests and tokens (RFC 9396): actions on
// named resources, instead of scopes that stand for all resources. Their types are the resource
// types that the tenant has defined, so the engine can decide about each of them.
//
// A detail gives nothing by itself. It bounds what a token may be used for, to what its subject
// may do:
//
//   - A request is refused unless its types and actions are defined and the subject may perform
//     every action on every resource ([Checker.Defined], [Checker.Allowed]).
//   - A token has at most what was granted; a request for a token can only narrow it ([Narrow]).
//   - When a token is issued or introspected, what its subject has lost since is left out.
//
// Details are handled in one form: the actions and resources are sorted, and resources with the
// same actions are in one detail. So what is left after a loss is exact, and equal details are
// equal texts.
package detail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"stonetown/engine"
	"stonetown/oauth/protocol"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Parameter is the name of the parameter, and of the member of tokens and responses.
const Parameter = "authorization_details"

// Detail are actions on resources of one type.
type Detail struct {
	Type        string   `json:"type"`
	Actions     []string `json:"actions"`
	Identifiers []string `json:"identifiers"`
}

// The bounds of a request.
const (
	maxBytes   = 4 << 10 // of the parameter
	maxActions = 100     // on resources: one action on two resources counts twice
)

// permission is one action on one resource.
type permission struct {
	resource tuplestore.Object
	action   string
}

// Parse reads the parameter; empty: there are no details. It fails with [*protocol.Error].
func Parse(parameter string) ([]Detail, error) {
	if parameter == "" {
		return nil, nil
	}
	if len(parameter) > maxBytes {
		return nil, invalid("authorization_details must have at most %d bytes", maxBytes)
	}
	var list []Detail
	if err := json.Unmarshal([]byte(parameter), &list, json.RejectUnknownMembers(true)); err != nil || len(list) == 0 {
		return nil, invalid("authorization_details must be a list of objects with the members type, actions and identifiers")
	}
	count := 0
	for _, d := range list {
		count += len(d.Actions) * len(d.Identifiers)
		switch {
		case d.Type == "" || len(d.Actions) == 0 || len(d.Identifiers) == 0:
			return nil, invalid("authorization_details must each have a type, actions and identifiers")
		case count > maxActions:
			return nil, invalid("authorization_details must have at most %d actions on resources", maxActions)
		case slices.ContainsFunc(d.Identifiers, unprintable):
			return nil, invalid("identifiers must each have 1 to %d bytes of printable text", engine.MaxID)
		}
	}
	return fold(permissions(list)), nil
}

// unprintable reports whether an id cannot be shown to a user who is asked for consent, or
// cannot be that of a resource.
func unprintable(id string) bool {
	return id == "" || len(id) > engine.MaxID || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}

func invalid(format string, args ...any) error {
	return protocol.NewError(protocol.InvalidAuthorizationDetails, fmt.Sprintf(format, args...))
}

// permissions returns the permissions of details.
func permissions(details []Detail) (all []permission) {
	for _, d := range details {
		for _, id := range d.Identifiers {
			for _, action := range d.Actions {
				all = append(all, permission{tuplestore.Object{Type: d.Type, ID: id}, action})
			}
		}
	}
	return all
}

// fold returns the details of permissions. They are not nil, so that a token from which all
// were taken is told from one without details.
func fold(all []permission) []Detail {
	actions := map[tuplestore.Object][]string{}
	for _, p := range all {
		actions[p.resource] = append(actions[p.resource], p.action)
	}
	resources := slices.SortedFunc(maps.Keys(actions), func(a, b tuplestore.Object) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.ID, b.ID))
	})
	details := []Detail{}
	for _, r := range resources {
		slices.Sort(actions[r])
		d := Detail{r.Type, slices.Compact(actions[r]), []string{r.ID}}
		same := slices.IndexFunc(details, func(of Detail) bool { return of.Type == d.Type && slices.Equal(of.Actions, d.Actions) })
		if same < 0 {
			details = append(details, d)
		} else {
			details[same].Identifiers = append(details[same].Identifiers, r.ID)
		}
	}
	return details
}

// Narrow returns the requested details, none of which may exceed those that were granted; all
// that were granted if none are requested. It fails with [*protocol.Error].
func Narrow(granted, requested []Detail) ([]Detail, error) {
	if requested == nil {
		return granted, nil
	}
	had := permissions(granted)
	for _, p := range permissions(requested) {
		if !slices.Contains(had, p) {
			return nil, invalid("authorization_details exceed what was granted")
		}
	}
	return requested, nil
}

// Relations is the part of [engine.Engine] that decides about details.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
	Types(ctx context.Context, tenantID string) ([]schema.Type, error)
}

// Checker decides about details. It is safe for concurrent use.
type Checker struct{ relations Relations }

// NewChecker returns a checker that asks an engine.
func NewChecker(relations Relations) *Checker { return &Checker{relations} }

// Types returns the types of details of a tenant, sorted.
func (c *Checker) Types(ctx context.Context, tenantID string) ([]string, error) {
	types, err := c.relations.Types(ctx, tenantID)
	names := []string{}
	for _, t := range types {
		if !schema.IsSystem(t.Name) {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// Defined refuses details whose types or actions the tenant has not defined. It fails with
// [*protocol.Error].
func (c *Checker) Defined(ctx context.Context, tenantID string, details []Detail) error {
	for _, d := range details {
		if schema.IsSystem(d.Type) {
			return unknown(d.Type)
		}
	}
	_, err := c.ask(ctx, tenantID, tuplestore.Subject{Type: schema.UserType, ID: tuplestore.Wildcard}, details)
	var noType *engine.UnknownTypeError
	var noAction *engine.UndefinedRelationError
	var budget *engine.BudgetError
	switch {
	case errors.As(err, &budget): // [Checker.Allowed] refuses them
		return nil
	case errors.As(err, &noType):
		return unknown(noType.Type)
	case errors.As(err, &noAction):
		return invalid("an action of the authorization_details is not defined by its type")
	}
	return err
}

func unknown(typ string) error {
	return invalid("a type of the authorization_details is not a resource type of this tenant")
}

// Allowed returns the part of details that a subject may do now, fully consistent, and whether
// that is all of them. What the engine cannot decide is not allowed: details have no values for
// conditions.
func (c *Checker) Allowed(ctx context.Context, tenantID string, subject tuplestore.Subject, details []Detail) (part []Detail, all bool, err error) {
	if len(details) == 0 {
		return details, true, nil
	}
	decisions, err := c.ask(ctx, tenantID, subject, details)
	var noType *engine.UnknownTypeError
	var noAction *engine.UndefinedRelationError
	var budget *engine.BudgetError
	if errors.As(err, &budget) {
		return fold(nil), false, nil
	}
	if err != nil && !errors.As(err, &noType) && !errors.As(err, &noAction) {
		return nil, false, err
	}
	var may []permission
	asked := permissions(details)
	for i, d := range decisions {
		if d.Allowed && d.Err == nil {
			may = append(may, asked[i])
		}
	}
	return fold(may), len(may) == len(asked), nil
}

// ask asks about every permission of details at one revision. Its error is that of the request
// or, with the decisions, of the first type or action that is not defined.
func (c *Checker) ask(ctx context.Context, tenantID string, subject tuplestore.Subject, details []Detail) ([]engine.Decision, error) {
	req := engine.CheckRequest{Subject: subject}
	for _, p := range permissions(details) {
		req.Queries = append(req.Queries, engine.Query{Resource: p.resource, Action: p.action})
	}
	answer, err := c.relations.Check(ctx, tenantID, req)
	if err != nil {
		return nil, fmt.Errorf("check authorization details: %w", err)
	}
	for _, d := range answer.Decisions {
		_, noType := errors.AsType[*engine.UnknownTypeError](d.Err)
		_, noAction := errors.AsType[*engine.UndefinedRelationError](d.Err)
		if noType || noAction {
			return answer.Decisions, d.Err
		}
	}
	return answer.Decisions, nil
}
