// Package management has what the members of an organisation do in the control plane: they
// create tenants and end them, invite others, give roles, and read what happened.
//
// # Roles
//
// Members are users of the system tenant, and service accounts are applications of it. Their
// roles are relations in that tenant, and the engine decides what a role permits:
//
//	organization:org_1#operator@user:usr_ann     Ann is an operator of the organisation
//	organization:org_1#owner@application:client_ci
//	tenant:tnt_1#parent@organization:org_1       the tenant belongs to the organisation
//
// The last one is not stored: a check gets it as a contextual relation, from the row of the tenant.
//
// An operation asks whether its caller has one permission on the organisation, or on the tenant,
// which takes its permissions from its parent ([Types]). A caller that may not read the
// organisation is told that it does not exist. To expand a permission explains every decision.
// Another role is one more direct relation of the type organization, with the permissions that
// include it.
//
// A change of roles commits in the transaction that reads the owners, so an organisation keeps
// one.
//
// # Events
//
// Every change has an event in the log of the organisation, which has the id of the organisation
// in place of that of a tenant.
package management
