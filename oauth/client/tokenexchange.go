package client

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"stonetown/engine"
	"stonetown/internal/id"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TokenExchange says what an application may exchange tokens for (RFC 8693). It is kept
// twice: here, for those who read it, and as relations of the engine, which are asked when
// tokens are exchanged. Both change in one transaction.
type TokenExchange struct {
	Enabled          bool     `json:"enabled"`
	AllowedAudiences []string `json:"allowed_audiences"` // absolute URIs, at most 50
	// RequireClientAuthentication: else whoever holds a token of the application can
	// exchange it.
	RequireClientAuthentication bool  `json:"require_client_authentication"`
	ActAs                       ActAs `json:"act_as"`
	// SubjectTokens says which tokens the application may exchange.
	SubjectTokens SubjectTokens `json:"subject_tokens,omitempty"`
}

// SubjectTokens says which tokens an application may exchange.
type SubjectTokens string

const (
	// AnySubjectTokens are those of every application of the tenant.
	AnySubjectTokens SubjectTokens = "any"
	// OwnSubjectTokens were issued to the application, or name it as audience.
	OwnSubjectTokens SubjectTokens = "own"
)

// ActAs says whether somebody can act in the place of others through an application.
type ActAs struct {
	Enabled             bool     `json:"enabled"`
	AllowedSubjectTypes []string `json:"allowed_subject_types"` // those others: user, application
}

// DefaultTokenExchange is what an application of a type may exchange unless it is said:
// nothing.
func (t Type) DefaultTokenExchange() TokenExchange {
	return TokenExchange{
		AllowedAudiences: []string{}, RequireClientAuthentication: t.Confidential(),
		ActAs: ActAs{AllowedSubjectTypes: []string{schema.UserType}}, SubjectTokens: AnySubjectTokens,
	}
}

// ActAsRelations permit an application to let somebody act as a subject of a type.
var ActAsRelations = map[string]string{schema.UserType: schema.ActAsUser, schema.ApplicationType: schema.ActAsApplication}

const maxAudiences = 50

func (t TokenExchange) validate(of Type) error {
	if t.RequireClientAuthentication && !of.Confidential() {
		return &ValidationError{"token_exchange/require_client_authentication", "invalid", "must be false for applications without a secret"}
	}
	if t.SubjectTokens != AnySubjectTokens && t.SubjectTokens != OwnSubjectTokens {
		return &ValidationError{"token_exchange/subject_tokens", "unknown_value", "must be any or own"}
	}
	if len(t.AllowedAudiences) > maxAudiences {
		return &ValidationError{"token_exchange/allowed_audiences", "too_many", fmt.Sprintf("must be at most %d", maxAudiences)}
	}
	for _, audience := range t.AllowedAudiences {
		if !ValidAudience(audience) {
			return &ValidationError{"token_exchange/allowed_audiences", "invalid", fmt.Sprintf("must each be an absolute URI without fragment, of at most %d printable ASCII characters", engine.MaxID)}
		}
	}
	for _, typ := range t.ActAs.AllowedSubjectTypes {
		if ActAsRelations[typ] == "" {
			return &ValidationError{"token_exchange/act_as/allowed_subject_types", "unknown_value", "must each be user or application"}
		}
	}
	return nil
}

// ValidAudience reports whether a text can name an API (RFC 8707 §2).
func ValidAudience(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.IsAbs() && len(text) <= engine.MaxID && visible(text) && !strings.Contains(text, "#")
}

// relation says one thing about an application.
type relation struct {
	object tuplestore.Object
	name   string
}

// relations are what an application may do, in the engine's terms: the administrative
// scopes that it holds, and what it may exchange.
func (a Application) relations() []relation {
	all := a.exchanges()
	for _, scope := range a.holds() {
		all = append(all, relation{tuplestore.Object{Type: schema.ScopeType, ID: scope}, schema.ScopeHolder})
	}
	return all
}

// exchanges are the relations by which an application may exchange tokens.
func (a Application) exchanges() (all []relation) {
	self := tuplestore.Object{Type: schema.ApplicationType, ID: a.ClientID}
	if a.TokenExchange.Enabled {
		all = append(all, relation{self, schema.Exchange})
	}
	for _, audience := range a.TokenExchange.AllowedAudiences {
		all = append(all, relation{AudienceObject(audience), schema.AudienceExchanger})
	}
	if a.TokenExchange.ActAs.Enabled {
		for _, typ := range a.TokenExchange.ActAs.AllowedSubjectTypes {
			all = append(all, relation{self, ActAsRelations[typ]})
		}
	}
	return all
}

func AudienceObject(audience string) tuplestore.Object {
	return tuplestore.Object{Type: schema.AudienceType, ID: audience}
}

// relationsChanged are the writes by which the relations of an application as it was become
// those of it as it is.
func relationsChanged(before, after Application) (ops []engine.WriteOp) {
	was, is := before.relations(), after.relations()
	of := func(r relation, gone bool) engine.WriteOp {
		return engine.WriteOp{
			Delete: gone, IfPresent: gone, Resource: r.object, Relation: r.name,
			Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: after.ClientID},
		}
	}
	for _, r := range was {
		if !slices.Contains(is, r) {
			ops = append(ops, of(r, true))
		}
	}
	for i, r := range is {
		if !slices.Contains(was, r) && !slices.Contains(is[:i], r) {
			ops = append(ops, of(r, false))
		}
	}
	return ops
}

// Managed reports whether a relation of an object is kept by the operations on
// applications and by nobody else: which tokens they may exchange, and that they exist. The
// empty relation stands for the object itself.
func Managed(o tuplestore.Object, relation string) bool {
	switch {
	case o.Type == schema.ApplicationType && relation == "":
		return strings.HasPrefix(o.ID, id.Client+"_")
	case o.Type == schema.ApplicationType:
		return relation != schema.ActAs
	}
	return o.Type == schema.AudienceType && relation == schema.AudienceExchanger
}
