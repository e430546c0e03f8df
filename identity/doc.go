// Package identity stores the users and groups of tenants.
//
// A user belongs to one tenant and is found there by the e-mail address, compared without
// regard to case. An account is pending until its address is verified, then active, and disabled
// if an administrator disables it. The rights of users are relations in the engine; deleting a
// user deletes the relations that name the user.
//
// A group is a row with a name. Its members and its scopes are relations in the engine and
// nowhere else: a change of either is one write of the engine, and the rows commit in its
// transaction. Changes of the administrators of a tenant are serialized by the lock that orders
// its relations, so that one administrator always remains.
//
// Every change of a user or a group writes its events in its transaction. The data of an event
// is the public representation, [UserDocument] or [GroupDocument], which the HTTP interface
// answers as well, and its origin is that of the context ([eventlog.WithOrigin]). Other modules
// delete their data about a user in the transaction that deletes the user ([Config].OnDelete).
//
// The packages below contain one concept each: password (hashes and policies), session, factor
// (second factors), external (identities at federation connections), onetime (one-time tokens),
// userimport, and authn, the steps of authentication.
package identity
