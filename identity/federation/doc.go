// Package federation has the connections of tenants to identity providers.
//
// A [Connection] is what an administrator sets: the provider, the client that it has given to
// the tenant, and what becomes of its users here. There are kinds for known providers
// (social.google and others), one for every other OpenID provider, and one for SAML 2.0.
//
// # Metadata
//
// What a provider publishes about itself is fetched when a connection is created or its
// provider is changed: the discovery document of an OpenID provider, or the metadata of a SAML
// identity provider, unless the tenant has sent it as XML. It is validated and stored with the
// connection, and refreshed daily ([Registry.RefreshDue]). A new signing certificate is
// therefore accepted as soon as the metadata lists it, next to the old one, until the metadata
// does not list that one. Before the last certificate expires there is an event. Everything is
// fetched by [stonetown/internal/outbound], because tenants set the URLs.
//
// # Rights
//
// A provider decides which user signs in, so a caller that sets the provider could sign in as
// another user. A caller without all built-in scopes therefore cannot let a connection link
// accounts by address ([LinkVerified]) or accept second factors of the provider
// ([AcceptSecondFactor]), nor change the provider of such a connection, or of one with which
// users sign in already. Without them, the default of the link policy is [LinkPrompt]: users
// prove that they own the account. A caller that maps a group needs the scopes of that group.
//
// The package claims maps what a provider states about a user to an account, and the package
// relyingparty has the protocol of OpenID Connect and OAuth 2.0.
package federation
