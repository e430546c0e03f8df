// Package controlplane stores the organisations that use a deployment and their tenants.
//
// A tenant is an isolated set of users, applications and relations. It is addressed by its
// base URL; a request belongs to the tenant of its host ([Directory.TenantByHost]). The stored
// base URL is also the issuer of the tenant's tokens, so links and issuers are made from it
// and never from the Host header of a request.
//
// The state of a tenant decides which requests are served on its host:
//
//	provisioning -> active     while what a tenant begins with is made
//	active <-> suspended       users and applications are refused, keys stay published
//	active, suspended -> decommissioned
//	                           gone for good; the slug is never used again
//
// The system tenant, [SystemTenant], has the accounts of the users who manage organisations. It
// belongs to no organisation and has no row; it is served at the address of the control plane
// ([Config.ControlURL]). What they do there is package [stonetown/controlplane/management].
//
// A decommissioned tenant keeps its data for [PurgeAfter]; then every row of it is deleted, in
// whichever table, because each has a column with the tenant ([Directory.Purge]). Only the slug
// and the host stay, so that they are never used again.
//
// Methods that create take the caller's transaction, so that a tenant, its first application and
// its administrator commit together. The two reads of the request path are answered from memory
// under a lease ([lease]): every change of a tenant increments a version, which each process
// reads a few times a second while it serves requests. When [Directory.Suspend] returns, no
// process serves the tenant.
package controlplane
