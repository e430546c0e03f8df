package client

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"stonetown/engine"
	"stonetown/oauth/scope"
)

// holds returns the administrative scopes that an application has without a user. They are
// relations of the engine, scope:<name>#holder@application:<client_id>, by which package
// authority compares rights.
func (a Application) holds() []string {
	if !a.ActsForItself() {
		return nil
	}
	return scope.Intersect(scope.Administrative, a.AllowedScopes)
}

// given returns the administrative scopes that a change of an application gives: new ones, or
// all that it holds if the change leads to another credential or enables the application.
func given(before, after Application) []string {
	credentials := before.AuthMethod != after.AuthMethod || before.JWKSURI != after.JWKSURI || !slices.Equal(before.JWKS, after.JWKS) || before.Certificate != after.Certificate || moreWorkloads(before, after)
	if credentials || before.State == Disabled && after.State == Enabled {
		return after.holds()
	}
	held := before.holds()
	return slices.DeleteFunc(after.holds(), func(scope string) bool { return slices.Contains(held, scope) })
}

// sameRights reports whether an application still has the rights for which a change of it was
// permitted.
func sameRights(a, seen Application) bool {
	return reflect.DeepEqual(a.TokenExchange, seen.TokenExchange) && reflect.DeepEqual(a.WorkloadIdentities, seen.WorkloadIdentities) && slices.Equal(a.holds(), seen.holds()) && a.State == seen.State
}

// HoldScopes writes the relations of the scopes of a tenant's applications where they are
// missing: for applications that [Registry.CreateIn] created.
func (s *Registry) HoldScopes(ctx context.Context, tenantID string) error {
	var after *Position
	for {
		const page = 250
		apps, err := s.List(ctx, tenantID, Filter{}, after, page)
		if err != nil {
			return err
		}
		for _, a := range apps {
			if len(a.holds()) == 0 {
				continue
			}
			ops := relationsChanged(Application{}, a)
			_, err := s.relations.Write(ctx, tenantID, engine.WriteRequest{Ops: ops})
			if err != nil {
				return fmt.Errorf("hold scopes: %w", err)
			}
		}
		if len(apps) < page {
			return nil
		}
		last := apps[len(apps)-1]
		after = &Position{last.CreatedAt, last.ID}
	}
}
