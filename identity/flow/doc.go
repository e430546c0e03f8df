// Package flow has the sign-in flows of tenants: additional steps of sign-ups and sign-ins.
//
//	draft    is edited; a tenant has at most one
//	version  is a published draft, with a number, and never changes; the newest one is active
//
// A [Document] has two ordered lists of steps. A step with a condition, an expression of CEL over
// [Variables], runs if the condition holds, and also if it cannot be evaluated, so that an error
// never drops a demand. The kinds of steps only demand more of a user, or refuse the sign-in:
//
//	deny                    ends the sign-in with a message
//	require_factor          demands a second factor
//	require_verified_email  demands a verified address
//	action                  asks a service of the tenant, which answers with effects
//
// What the settings of a tenant demand is demanded before a flow runs, and not a part of this
// package: a flow cannot weaken it.
//
// A flow runs when a session would begin, from its first step, until a step demands a proof or
// refuses the sign-in. After the proof it runs again, with the version that is active then. The
// results of actions are kept between these runs ([State]), so an action is called once.
//
// An action is a signed HTTPS request. It has 2 seconds. Each tenant has a few places for such
// requests, so that the slow service of one does not delay the sign-ins of another.
//
// The number of the active version is a member of [identity.Settings], which every sign-in reads.
// Versions are immutable, so their compiled form is kept in memory, one of each tenant, and is never
// stale. A tenant without a flow costs no query.
package flow
