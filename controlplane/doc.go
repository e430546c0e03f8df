// Package controlplane keeps the organisations that use a deployment and the
// tenants they own.
//
// A tenant is one isolated world of users, applications and relations. It is
// addressed by its base URL, and a request belongs to the tenant whose host it
// was sent to; that is what [Directory.TenantByHost] is for. The stored base
// URL is also the tenant's identity towards the outside, the issuer of its
// tokens, so links and issuers are made from it and never from a request's
// Host header.
//
// A tenant's state decides what is served on its host:
//
//	active -> suspended        people and programs are refused, keys stay published
//	active, suspended -> decommissioned
//	                           gone for good; the slug is never used again
//
// The system tenant, [SystemTenant], is where the people who manage
// organisations have their accounts. It belongs to no organisation, has no row
// and no host of its own, and so no request can reach it through the directory.
//
// Methods that write take the caller's transaction, so that what must be true
// together (a tenant, its first application, its administrator) is committed
// together. Reads go through the database handle, and the two of the request
// path through a cache whose entries live for a few seconds: a change of state
// reaches every node within that time.
package controlplane
