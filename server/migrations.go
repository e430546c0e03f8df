package server

import (
	"stonetown/controlplane"
	"stonetown/controlplane/management"
	"stonetown/engine/assertions"
	"stonetown/engine/resources"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/branding"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/federation"
	"stonetown/identity/federation/signin"
	"stonetown/identity/flow"
	"stonetown/identity/incident"
	"stonetown/identity/mails"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/identity/threat"
	"stonetown/internal/eventlog"
	"stonetown/internal/idempotency"
	"stonetown/internal/jobs"
	"stonetown/internal/masterkey"
	"stonetown/internal/ratelimit"
	"stonetown/internal/samlkeys"
	"stonetown/internal/sqldb"
	"stonetown/internal/tenantkeys"
	"stonetown/oauth"
	"stonetown/reporting"
	"stonetown/tuplestore/sqlstore"
	"stonetown/webhooks"
)

// migrations are the tables of all packages.
func migrations() []sqldb.Migrations {
	return []sqldb.Migrations{
		sqlstore.Migrations(),
		resources.Migrations(),
		assertions.Migrations(),
		controlplane.Migrations(),
		management.Migrations(),
		identity.Migrations(),
		incident.Migrations(),
		flow.Migrations(),
		branding.Migrations(),
		mails.Migrations(),
		session.Migrations(),
		onetime.Migrations(),
		factor.Migrations(),
		external.Migrations(),
		threat.Migrations(),
		federation.Migrations(),
		signin.Migrations(),
		authn.Migrations(),
		oauth.Migrations(),
		reporting.Migrations(),
		eventlog.Migrations(),
		idempotency.Migrations(),
		jobs.Migrations(),
		ratelimit.Migrations(),
		samlkeys.Migrations(),
		tenantkeys.Migrations(),
		masterkey.Migrations(),
		webhooks.Migrations(),
	}
}
