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

// TokenExchange is what an application may exchange tokens for (RFC 8693). It is stored twice:
// here, for readers, and as relations of the engine, which decide. Both change in one
// transaction.
type TokenExchange struct {
	Enabled          bool     `json:"enabled"`
	AllowedAudiences []string `json:"allowed_audiences"` // absolute URIs, at most 50
	// RequireClientAuthentication: without it, the possession of a token of the application
	// suffices to exchange the token.
	RequireClientAuthentication bool  `json:"require_client_authentication"`
	ActAs                       ActAs `json:"act_as"`
	// SubjectTokens decides which tokens the application may exchange.
	SubjectTokens SubjectTokens `json:"subject_tokens,omitempty"`
}

// SubjectTokens decides which tokens an application may exchange.
type SubjectTokens string

const (
	// AnySubjectTokens are those of every application of the tenant.
	AnySubjectTokens SubjectTokens = "any"
	// OwnSubjectTokens were issued to the application, or name it as audience.
	OwnSubjectTokens SubjectTokens = "own"
)

// ActAs decides about delegation: actors that act for other subjects, through an application.
type ActAs struct {
	Enabled             bool     `json:"enabled"`
	AllowedSubjectTypes []string `json:"allowed_subject_types"` // of these subjects: user, application
}

// DefaultTokenExchange returns the settings of a new application of a type: it may exchange
// nothing.
func (t Type) DefaultTokenExchange() TokenExchange {
	return TokenExchange{
		AllowedAudiences: []string{}, RequireClientAuthentication: t.Confidential(),
		ActAs: ActAs{AllowedSubjectTypes: []string{schema.UserType}}, SubjectTokens: AnySubjectTokens,
	}
}

// ActAsRelations permit an application to let actors act for subjects of a type.
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

// ValidAudience reports whether a text can be an audience (RFC 8707 §2).
func ValidAudience(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.IsAbs() && len(text) <= engine.MaxID && visible(text) && !strings.Contains(text, "#")
}

// relation is a relation whose subject is an application.
type relation struct {
	object tuplestore.Object
	name   string
}

// relations returns the relations of an application: the administrative scopes that it holds,
// and its permissions to exchange tokens.
func (a Application) relations() []relation {
	all := a.exchanges()
	for _, scope := range a.holds() {
		all = append(all, relation{tuplestore.Object{Type: schema.ScopeType, ID: scope}, schema.ScopeHolder})
	}
	return all
}

// exchanges returns the relations by which an application may exchange tokens.
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

// AudienceObject returns the object of an audience.
func AudienceObject(audience string) tuplestore.Object {
	return tuplestore.Object{Type: schema.AudienceType, ID: audience}
}

// relationsChanged returns the writes that change the relations of an application from one
// state to another.
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

// Managed reports whether only the operations on applications may write a relation of an
// object: its existence, and what an application may exchange. The empty relation stands for
// the object itself.
func Managed(o tuplestore.Object, relation string) bool {
	switch {
	case o.Type == schema.ApplicationType && relation == "":
		return strings.HasPrefix(o.ID, id.Client+"_")
	case o.Type == schema.ApplicationType:
		return relation != schema.ActAs
	}
	return o.Type == schema.AudienceType && relation == schema.AudienceExchanger
}
