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

// relations returns the relations of an application: the administrative scopes that it holds,
// its permissions to exchange tokens, and the workloads that get its tokens.
func (a Application) relations() []tuplestore.Tuple {
	all := slices.Concat(a.exchanges(), a.impersonators())
	for _, scope := range a.holds() {
		all = append(all, a.relation(tuplestore.Object{Type: schema.ScopeType, ID: scope}, schema.ScopeHolder))
	}
	return all
}

// relation returns a relation whose subject is the application.
func (a Application) relation(o tuplestore.Object, name string) tuplestore.Tuple {
	return tuplestore.Tuple{Object: o, Relation: name, Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: a.ClientID}}
}

// object returns the application as an object of relations.
func (a Application) object() tuplestore.Object {
	return tuplestore.Object{Type: schema.ApplicationType, ID: a.ClientID}
}

// exchanges returns the relations by which an application may exchange tokens.
func (a Application) exchanges() (all []tuplestore.Tuple) {
	if a.TokenExchange.Enabled {
		all = append(all, a.relation(a.object(), schema.Exchange))
	}
	for _, audience := range a.TokenExchange.AllowedAudiences {
		all = append(all, a.relation(AudienceObject(audience), schema.AudienceExchanger))
	}
	if a.TokenExchange.ActAs.Enabled {
		for _, typ := range a.TokenExchange.ActAs.AllowedSubjectTypes {
			all = append(all, a.relation(a.object(), ActAsRelations[typ]))
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
	of := func(t tuplestore.Tuple, gone bool) engine.WriteOp {
		return engine.WriteOp{Delete: gone, IfPresent: gone, Resource: t.Object, Relation: t.Relation, Subject: t.Subject}
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
// object: its existence, what an application may exchange, and the workloads that get its tokens.
// The empty relation stands for the object itself.
func Managed(o tuplestore.Object, relation string) bool {
	switch {
	case o.Type == schema.WorkloadIdentityType:
		return true
	case o.Type == schema.ApplicationType && relation == "":
		return strings.HasPrefix(o.ID, id.Client+"_")
	case o.Type == schema.ApplicationType:
		return relation != schema.ActAs
	}
	return o.Type == schema.AudienceType && relation == schema.AudienceExchanger
}
