// Package scim is SCIM 2.0 (RFC 7643, RFC 7644) over the users and groups of a tenant, without
// HTTP: the schemas, filters, changes by PATCH, and the operations of a provisioning client.
//
// A resource is a JSON object whose members have the names of the schema ([Type.Canonical]); the
// names of a request are compared without regard to case. A user has three homes for values:
//
//   - columns of the account: userName is the address, active the state, displayName the name,
//     and name.givenName, name.familyName and locale are themselves;
//   - the member scim of the account's attributes, for all other attributes of the schemas, those
//     of the enterprise extension under enterprise, where claims of applications find them;
//   - external ids, of which each client has its own ([identity.SetExternalID]).
//
// Members that no schema has are ignored in POST and PUT and refused as the path of a PATCH. The
// schemas state all that is stored, so nothing is lost without notice. Passwords are not stored.
//
// A filter becomes a condition of the database and, where that holds for too many resources, a
// decision in memory about each of them ([MaxScanned] bounds their number). A condition is never
// narrower than its filter.
//
// The members of a group are relations of the engine. A change of more than
// [identity.MaxMembers] members is made in several transactions.
//
// A client cannot change users and groups with more rights than its own (package authority):
// with the scope scim:write alone it can neither disable an administrator, nor change the
// address of one, nor add members to a group that gives an administrative scope.
package scim
