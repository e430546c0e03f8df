// Package incident has the breach incidents of a tenant: what happened, the users that are
// affected, and the messages to them.
//
//	open    can be changed, gets affected users, and notifies them
//	closed  is kept as it was when it was closed, with a resolution
//
// The users are a list, or all users of the tenant. A notification is a mail to each of them: a
// background job goes through the users in steps and enqueues a job for each mail, each step in one
// transaction with its progress. The failure of a process loses no mail; one that was being sent at
// that moment may be sent again.
//
// Every change is an event. Integrators learn of an incident by security.breach_incident_opened.
package incident
