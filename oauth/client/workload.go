package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// WorkloadIdentity names the workloads of a trusted issuer (package workload) that get tokens of an
// application: those whose tokens have a sub, and claims with some values. All of them are compared
// byte for byte, because a pattern could match more than its author expects.
type WorkloadIdentity struct {
	IssuerID string `json:"issuer_id"`
	Subject  string `json:"subject,omitempty"` // empty: any; then there are claims
	// Claims are strings that the token must have, by name. A name that begins with a slash is a
	// JSON pointer (RFC 6901), for claims within objects.
	Claims map[string]string `json:"claims,omitempty"`
}

// The bounds of workload identities.
const (
	maxWorkloads      = 20
	maxWorkloadClaims = 10
)

// Object returns the object of the engine that stands for the workloads.
func (w WorkloadIdentity) Object() tuplestore.Object {
	return tuplestore.Object{Type: schema.WorkloadIdentityType, ID: w.IssuerID + "/" + protocol.Hash(storage.JSON(w))}
}

// Matches reports whether a token of the issuer is one of the workloads. claim returns the claim at
// a JSON pointer; empty: there is none.
func (w WorkloadIdentity) Matches(issuerID, subject string, claim func(jsontext.Pointer) jsontext.Value) bool {
	if w.IssuerID != issuerID || w.Subject == "" && len(w.Claims) == 0 || w.Subject != "" && w.Subject != subject {
		return false
	}
	for name, want := range w.Claims {
		value := claim(pointer(name))
		var text string
		if value.Kind() != '"' || json.Unmarshal(value, &text) != nil || text != want {
			return false
		}
	}
	return true
}

// pointer returns the JSON pointer of the name of a claim.
func pointer(name string) jsontext.Pointer {
	if strings.HasPrefix(name, "/") {
		return jsontext.Pointer(name)
	}
	return jsontext.Pointer("").AppendToken(name)
}

// impersonators returns the relations by which workloads get tokens of the application.
func (a Application) impersonators() (all []tuplestore.Tuple) {
	for _, w := range a.WorkloadIdentities {
		o := w.Object()
		all = append(all, tuplestore.Tuple{Object: a.object(), Relation: schema.Impersonator, Subject: tuplestore.Subject{Type: o.Type, ID: o.ID}})
	}
	return all
}

// moreWorkloads reports whether a change lets other workloads get tokens of an application.
func moreWorkloads(before, after Application) bool {
	return slices.ContainsFunc(after.WorkloadIdentities, func(w WorkloadIdentity) bool {
		return !slices.ContainsFunc(before.WorkloadIdentities, func(known WorkloadIdentity) bool { return reflect.DeepEqual(w, known) })
	})
}

// names reports whether a workload identity of the application names an issuer.
func (a Application) names(issuerID string) bool {
	return slices.ContainsFunc(a.WorkloadIdentities, func(w WorkloadIdentity) bool { return w.IssuerID == issuerID })
}

// workloadIssuers returns the ids of the issuers of the workload identities, separated by spaces.
func (a Application) workloadIssuers() string {
	var ids []string
	for _, w := range a.WorkloadIdentities {
		ids = append(ids, w.IssuerID)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " ")
}

func (a Application) validateWorkloads() error {
	refuse := func(field, code, message string) error {
		return &ValidationError{strings.TrimSuffix("workload_identities/"+field, "/"), code, message}
	}
	switch {
	case len(a.WorkloadIdentities) == 0:
		return nil
	case !a.ActsForItself():
		return refuse("", "invalid", "must be empty unless the application gets tokens without a user")
	case len(a.WorkloadIdentities) > maxWorkloads:
		return refuse("", "too_many", fmt.Sprintf("must be at most %d", maxWorkloads))
	}
	isText := func(text string) bool { return validLine("", text) == nil }
	for i, w := range a.WorkloadIdentities {
		at := fmt.Sprint(i, "/")
		switch {
		case w.IssuerID == "" || len(w.IssuerID) > maxText || !visible(w.IssuerID) || strings.Contains(w.IssuerID, "/"):
			return refuse(at+"issuer_id", "unknown_value", "must be the id of a trusted issuer")
		case w.Subject == "" && len(w.Claims) == 0:
			return refuse(at+"subject", "required", "is required without claims")
		case !isText(w.Subject):
			return refuse(at+"subject", "invalid", fmt.Sprintf("must be one line of at most %d bytes", maxText))
		case len(w.Claims) > maxWorkloadClaims:
			return refuse(at+"claims", "too_many", fmt.Sprintf("must be at most %d", maxWorkloadClaims))
		}
		for _, name := range slices.Sorted(maps.Keys(w.Claims)) {
			switch value := w.Claims[name]; {
			case name == "" || len(name) > maxClaimName || !visible(name) || !pointer(name).IsValid():
				return refuse(at+"claims", "invalid", fmt.Sprintf("must each have a name of 1 to %d visible ASCII characters, or a JSON pointer", maxClaimName))
			case value == "" || !isText(value):
				return refuse(at+"claims", "invalid", fmt.Sprintf("must each have a value of one line of 1 to %d bytes", maxText))
			}
		}
		if slices.ContainsFunc(a.WorkloadIdentities[:i], func(other WorkloadIdentity) bool { return w.Object() == other.Object() }) {
			return refuse(strings.TrimSuffix(at, "/"), "taken", "is the same as another one")
		}
	}
	return nil
}

// validateIssuers requires that the issuers of workload identities exist.
func (a Application) validateIssuers(ctx context.Context, tx *sqldb.Tx) error {
	for i, w := range a.WorkloadIdentities {
		// A write instead of a read: a concurrent deletion of the issuer then waits, and fails
		// because the issuer is in use.
		n, err := tx.Exec(ctx, `UPDATE trusted_issuers SET issuer = issuer WHERE tenant_id = $1 AND id = $2`, a.TenantID, w.IssuerID)
		if err != nil {
			return err
		}
		if n == 0 {
			return &ValidationError{fmt.Sprintf("workload_identities/%d/issuer_id", i), "unknown_value", "must be the id of a trusted issuer"}
		}
	}
	return nil
}

// Trusting returns the client ids of the applications whose workload identities name a trusted
// issuer, and the administrative scopes that they hold.
func Trusting(ctx context.Context, q querier, tenantID, issuerID string) (clientIDs, scopes []string, err error) {
	apps, err := selectNaming(ctx, q, tenantID, issuerID)
	for _, a := range apps {
		clientIDs, scopes = append(clientIDs, a.ClientID), append(scopes, a.holds()...)
	}
	slices.Sort(scopes)
	return clientIDs, slices.Compact(scopes), err
}
