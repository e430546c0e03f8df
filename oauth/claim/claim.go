// Package claim finds the values of the claims that the tenant has configured for an
// application ([client.Claim]): attributes of a user, groups, relations to an object of the
// engine, and resources on which the subject may act.
//
// A value is found when a token is issued, or when the UserInfo endpoint is asked, and states
// what was true then. All questions to the engine about one token are answered at one revision.
// They are fully consistent, so a relation that was deleted before is in no new token.
//
// A claim is complete or absent: a list that is too long, or that the engine cannot decide, is
// left out and never cut off, because an application would take a part for the whole. The
// preview says why ([Omission]).
package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stonetown/engine"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Relations is the part of [engine.Engine] that has values of claims.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
	ListResources(ctx context.Context, tenantID string, req engine.ListResourcesRequest) (*engine.ResourceList, error)
	Type(ctx context.Context, tenantID, name string) (schema.Type, error)
}

// Finder finds the values of claims. It is safe for concurrent use.
type Finder struct {
	relations Relations
	users     access.Users
}

// NewFinder returns a finder that asks an engine and reads users.
func NewFinder(relations Relations, users access.Users) *Finder { return &Finder{relations, users} }

// Request asks for the claims of a token.
type Request struct {
	TenantID string
	App      client.Application
	Subject  tuplestore.Subject
	User     *access.User            // nil: the subject is an application
	Has      func(scope string) bool // reports whether the token has a scope
	Where    []client.ClaimPlace     // of the claims that are needed
	// SignIn are the claims that the sign-in of the user added, a JSON object; empty: none. Only
	// applications of the tenant get them, since no user agrees to them, and a configured claim with the
	// same name takes precedence.
	SignIn string
}

// Values are the values of claims.
type Values struct {
	In      map[client.ClaimPlace]map[string]json.RawMessage
	Omitted []Omission
}

// AddTo adds the values for a place to claims.
func (v Values) AddTo(claims map[string]any, place client.ClaimPlace) {
	for name, value := range v.In[place] {
		claims[name] = value
	}
}

// Omission is a claim that was left out.
type Omission struct {
	Name   string
	Reason Reason
}

// Reason is why a claim was left out.
type Reason string

// The reasons.
const (
	NoScope    Reason = "scope_missing"      // the token lacks the scope of the claim
	NoUser     Reason = "user_missing"       // the subject is an application
	NoValue    Reason = "value_missing"      // the user has no such attribute
	TooMany    Reason = "too_many_values"    // more than [client.MaxClaimValues]
	TooLarge   Reason = "too_large"          // with those before it more than [client.MaxClaimBytes]
	NoRelation Reason = "relation_undefined" // no such type, relation or action
	Undecided  Reason = "undecided"          // depends on a condition that lacks a parameter, or on itself
	TooComplex Reason = "too_complex"        // beyond the limits of one question
)

// Find returns the values of the claims of a token. Its error is the server's.
func (f *Finder) Find(ctx context.Context, r Request) (Values, error) {
	v := Values{In: map[client.ClaimPlace]map[string]json.RawMessage{}}
	size := map[client.ClaimPlace]int{}
	search := search{Finder: f, Request: r}
	for _, c := range r.App.Claims {
		needed := slices.ContainsFunc(c.Where, func(p client.ClaimPlace) bool { return slices.Contains(r.Where, p) })
		if !needed || client.ReservedClaim(c.Name) {
			continue
		}
		value, reason, err := search.value(ctx, c)
		if err != nil {
			return Values{}, fmt.Errorf("claim %s: %w", c.Name, err)
		}
		if reason != "" {
			v.Omitted = append(v.Omitted, Omission{c.Name, reason})
			continue
		}
		for _, place := range c.Where {
			switch n := len(c.Name) + len(value) + len(`"":,`); {
			case !slices.Contains(r.Where, place):
			case size[place]+n > client.MaxClaimBytes:
				if o := (Omission{c.Name, TooLarge}); !slices.Contains(v.Omitted, o) {
					v.Omitted = append(v.Omitted, o)
				}
			default:
				if v.In[place] == nil {
					v.In[place] = map[string]json.RawMessage{}
				}
				v.In[place][c.Name], size[place] = value, size[place]+n
			}
		}
	}
	if err := addSignIn(r, v, size); err != nil {
		return Values{}, err
	}
	return v, nil
}

// addSignIn adds the claims of the sign-in that fit.
func addSignIn(r Request, v Values, size map[client.ClaimPlace]int) error {
	if r.SignIn == "" || !r.App.FirstParty {
		return nil
	}
	var added map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.SignIn), &added); err != nil {
		return fmt.Errorf("claims of sign-in: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		for _, place := range r.Where {
			n := len(name) + len(added[name]) + len(`"":,`)
			if _, taken := v.In[place][name]; taken || !client.CanAddClaim(name) || size[place]+n > client.MaxClaimBytes {
				continue
			}
			if v.In[place] == nil {
				v.In[place] = map[string]json.RawMessage{}
			}
			v.In[place][name], size[place] = added[name], size[place]+n
		}
	}
	return nil
}

// Preview returns the values for a token with some scopes, of a user or, if userID is empty, of
// the application itself. It fails with [access.ErrUserGone].
func (f *Finder) Preview(ctx context.Context, tenantID string, app client.Application, userID string, scopes []string) (Values, error) {
	r := Request{
		TenantID: tenantID, App: app, Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID},
		Has:   func(scope string) bool { return slices.Contains(scopes, scope) },
		Where: []client.ClaimPlace{client.InAccessToken},
	}
	if userID != "" {
		user, err := f.users.User(ctx, tenantID, userID)
		if err != nil {
			return Values{}, err
		}
		r.Subject, r.User, r.Where = tuplestore.Subject{Type: schema.UserType, ID: userID}, &user, client.ClaimPlaces
	}
	return f.Find(ctx, r)
}

// search is the state of one request.
type search struct {
	*Finder
	Request
	at     engine.Consistency // of the next question
	groups []access.Group     // of the user, once they were read
	read   bool
}

// value returns the value of a claim, or the reason why there is none.
func (s *search) value(ctx context.Context, c client.Claim) (json.RawMessage, Reason, error) {
	var value any
	var reason Reason
	var err error
	switch source := c.Source; {
	case c.Scope != "" && !s.Has(c.Scope):
		return nil, NoScope, nil
	case s.User == nil && (source.Attribute != "" || source.Groups != ""):
		return nil, NoUser, nil
	case source.Attribute != "":
		value = attribute(*s.User, source.Attribute)
	case source.Groups != "":
		value, reason, err = s.groupNames(ctx, source.Groups)
	case source.Relations != nil:
		value, reason, err = s.relationsTo(ctx, *source.Relations)
	case source.Resources != nil:
		value, reason, err = s.resources(ctx, *source.Resources)
	}
	switch {
	case err != nil || reason != "":
		return nil, reason, err
	case value == nil:
		return nil, NoValue, nil
	}
	text, err := json.Marshal(value)
	return text, "", err
}

// attribute returns an attribute of a user; nil: there is none. An address is stated only if the
// user has proved it, because applications find accounts by it.
func attribute(u access.User, name string) any {
	path, custom := strings.CutPrefix(name, client.AttributePrefix)
	if !custom {
		member := map[string]string{
			"id": u.ID, "name": u.Name, "given_name": u.GivenName, "family_name": u.FamilyName, "locale": u.Locale, "picture": u.Picture,
		}
		if u.EmailVerified {
			member["email"] = u.Email
		}
		if member[name] == "" {
			return nil
		}
		return member[name]
	}
	value := json.RawMessage(u.Attributes)
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil
		}
		value = members[name]
	}
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	return value
}

func (s *search) groupNames(ctx context.Context, by string) (any, Reason, error) {
	if !s.read {
		var err error
		if s.groups, err = s.users.Groups(ctx, s.TenantID, s.User.ID); err != nil {
			return nil, "", err
		}
		s.read = true
	}
	names := []string{}
	for _, g := range s.groups {
		names = append(names, map[string]string{"slug": g.Slug, "id": g.ID, "name": g.Name}[by])
	}
	slices.Sort(names)
	return bounded(names)
}

// bounded refuses a list that is too long.
func bounded(list []string) (any, Reason, error) {
	if len(list) > client.MaxClaimValues {
		return nil, TooMany, nil
	}
	return list, "", nil
}

// relationsTo returns the relations that the subject has to an object: none if there is no such
// object.
func (s *search) relationsTo(ctx context.Context, to client.ObjectRelations) (any, Reason, error) {
	object := tuplestore.Object{Type: to.Type, ID: strings.ReplaceAll(to.ID, client.ClientIDInClaim, s.App.ClientID)}
	names := slices.Compact(slices.Sorted(slices.Values(to.Names)))
	if len(names) == 0 {
		t, err := s.relations.Type(ctx, s.TenantID, to.Type)
		if err != nil {
			return answered(err)
		}
		for _, r := range t.Relations {
			names = append(names, r.Name)
		}
		slices.Sort(names)
	}
	req := engine.CheckRequest{Subject: s.Subject, Consistency: s.at}
	for _, name := range names {
		req.Queries = append(req.Queries, engine.Query{Resource: object, Action: name})
	}
	answer, err := s.relations.Check(ctx, s.TenantID, req)
	if err != nil {
		return answered(err)
	}
	s.at = engine.Consistency{Mode: engine.Exactly, Token: answer.Token}
	has := []string{}
	for i, d := range answer.Decisions {
		if _, absent := errors.AsType[*engine.ResourceNotFoundError](d.Err); d.Err != nil && !absent {
			return answered(d.Err)
		}
		if d.Allowed {
			has = append(has, names[i])
		}
	}
	return bounded(has)
}

// resources returns the resources on which the subject may perform an action.
func (s *search) resources(ctx context.Context, of client.TypeAction) (any, Reason, error) {
	list, err := s.relations.ListResources(ctx, s.TenantID, engine.ListResourcesRequest{
		Subject: s.Subject, Type: of.Type, Action: of.Action, Consistency: s.at, Limit: client.MaxClaimValues + 1,
	})
	if err != nil {
		return answered(err)
	}
	s.at = engine.Consistency{Mode: engine.Exactly, Token: list.Token}
	if list.IDs == nil {
		list.IDs = []string{}
	}
	return bounded(list.IDs)
}

// answered returns the reason of an error of the engine that the configuration or the data have
// caused. Others are the server's.
func answered(err error) (any, Reason, error) {
	var (
		noType     *engine.UnknownTypeError
		noRelation *engine.UndefinedRelationError
		badSubject *engine.InvalidSubjectError
		condition  *engine.ConditionError
		cycle      *engine.NegativeCycleError
		budget     *engine.BudgetError
	)
	switch {
	case errors.As(err, &noType), errors.As(err, &noRelation), errors.As(err, &badSubject):
		return nil, NoRelation, nil
	case errors.As(err, &condition), errors.As(err, &cycle):
		return nil, Undecided, nil
	case errors.As(err, &budget):
		return nil, TooComplex, nil
	}
	return nil, "", err
}
