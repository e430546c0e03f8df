package eventlog

import (
	"slices"
	"strings"
)

// Type is the type of an event: category.change.
type Type string

const (
	UserCreated                Type = "user.created"
	UserUpdated                Type = "user.updated"
	UserActivated              Type = "user.activated"
	UserDisabled               Type = "user.disabled"
	UserEnabled                Type = "user.enabled"
	UserDeleted                Type = "user.deleted"
	UserPasswordChanged        Type = "user.password_changed"
	UserImportCompleted        Type = "user.import_completed"
	UserSignedUp               Type = "user.signed_up"
	UserSignedIn               Type = "user.signed_in"
	UserSignInFailed           Type = "user.sign_in_failed"
	UserSignedOut              Type = "user.signed_out"
	UserLocked                 Type = "user.locked" // for a while, after failures
	UserEmailVerified          Type = "user.email_verified"
	UserEmailChangeRequested   Type = "user.email_change_requested"
	UserEmailChanged           Type = "user.email_changed"
	UserPasswordResetRequested Type = "user.password_reset_requested"
	UserPasswordResetCompleted Type = "user.password_reset_completed"
	UserMFAEnrolled            Type = "user.mfa_enrolled"
	UserMFARemoved             Type = "user.mfa_removed"
	UserMFAReset               Type = "user.mfa_reset"
	UserBackupCodesRegenerated Type = "user.backup_codes_regenerated"
	UserBackupCodeUsed         Type = "user.backup_code_used"
	UserIdentityLinked         Type = "user.identity_linked"
	UserIdentityUnlinked       Type = "user.identity_unlinked"

	SessionCreated   Type = "session.created"
	SessionRevoked   Type = "session.revoked"
	SessionSteppedUp Type = "session.stepped_up"

	GroupCreated       Type = "group.created"
	GroupUpdated       Type = "group.updated"
	GroupDeleted       Type = "group.deleted"
	GroupMemberAdded   Type = "group.member_added"
	GroupMemberRemoved Type = "group.member_removed"

	ApplicationCreated       Type = "application.created"
	ApplicationUpdated       Type = "application.updated"
	ApplicationDisabled      Type = "application.disabled"
	ApplicationEnabled       Type = "application.enabled"
	ApplicationDeleted       Type = "application.deleted"
	ApplicationSecretRotated Type = "application.secret_rotated"
	ApplicationLogoutFailed  Type = "application.logout_failed"

	FederationConnectionCreated   Type = "federation.connection_created"
	FederationConnectionUpdated   Type = "federation.connection_updated"
	FederationConnectionEnabled   Type = "federation.connection_enabled"
	FederationConnectionDisabled  Type = "federation.connection_disabled"
	FederationConnectionDeleted   Type = "federation.connection_deleted"
	FederationConnectionTested    Type = "federation.connection_tested"
	FederationMetadataRefreshed   Type = "federation.metadata_refreshed" // and is not as it was
	FederationCertificateExpiring Type = "federation.certificate_expiring"

	ResourceTypeCreated Type = "resource_type.created"
	ResourceTypeUpdated Type = "resource_type.updated"
	ResourceTypeDeleted Type = "resource_type.deleted"
	ResourceTypeRenamed Type = "resource_type.renamed" // types, or relations of types

	AssertionsStored  Type = "assertions.stored"
	AssertionsDeleted Type = "assertions.deleted"

	ResourceCreated Type = "resource.created"
	ResourceUpdated Type = "resource.updated"
	ResourceDeleted Type = "resource.deleted"

	RelationCreated     Type = "relation.created"
	RelationDeleted     Type = "relation.deleted"
	RelationBulkApplied Type = "relation.bulk_applied" // one for many relations
	RelationImported    Type = "relation.imported"     // one for a chunk of an import

	ConsentGranted Type = "consent.granted"
	ConsentRevoked Type = "consent.revoked"

	TokenExchanged         Type = "token.exchanged"
	TokenExchangeDenied    Type = "token.exchange_denied"
	TokenRevoked           Type = "token.revoked"
	TokenFamilyRevoked     Type = "token.family_revoked"
	TokenWorkloadExchanged Type = "token.workload_exchanged"

	TrustedIssuerCreated Type = "trusted_issuer.created"
	TrustedIssuerUpdated Type = "trusted_issuer.updated"
	TrustedIssuerDeleted Type = "trusted_issuer.deleted"

	ScopeCreated Type = "scope.created"
	ScopeUpdated Type = "scope.updated"
	ScopeDeleted Type = "scope.deleted"

	TenantSettingsUpdated        Type = "tenant.settings_updated"
	TenantSigningKeyRotated      Type = "tenant.signing_key_rotated"      // signing keys have entered a state
	TenantSAMLCertificateRotated Type = "tenant.saml_certificate_rotated" // keys for SAML have entered a state

	SignInFlowPublished     Type = "sign_in_flow.published"
	SignInFlowSecretRotated Type = "sign_in_flow.secret_rotated" // of an action
	SignInFlowDenied        Type = "sign_in_flow.denied"         // a sign-up or a sign-in
	SignInFlowActionFailed  Type = "sign_in_flow.action_failed"

	BrandingUpdated Type = "branding.updated"

	MailTemplateUpdated Type = "mail_template.updated" // or taken back to the built-in text

	WebhookSubscriptionCreated  Type = "webhook.subscription_created"
	WebhookSubscriptionUpdated  Type = "webhook.subscription_updated"
	WebhookSubscriptionEnabled  Type = "webhook.subscription_enabled"
	WebhookSubscriptionDisabled Type = "webhook.subscription_disabled"
	WebhookSubscriptionDeleted  Type = "webhook.subscription_deleted"
	WebhookSubscriptionFailing  Type = "webhook.subscription_failing" // its deliveries have failed for a while
	WebhookSecretRotated        Type = "webhook.secret_rotated"
	WebhookDeliveryDeadLettered Type = "webhook.delivery_dead_lettered"
	WebhookDeadLetterReplayed   Type = "webhook.dead_letter_replayed"
	WebhookDeadLetterDropped    Type = "webhook.dead_letter_dropped"

	SecurityBruteForceDetected      Type = "security.brute_force_detected"
	SecurityBreachIncidentOpened    Type = "security.breach_incident_opened"
	SecurityBreachIncidentUpdated   Type = "security.breach_incident_updated"
	SecurityBreachIncidentNotified  Type = "security.breach_incident_notified" // its users are being notified
	SecurityBreachIncidentClosed    Type = "security.breach_incident_closed"
	SecurityBreachedPasswordUsed    Type = "security.breached_password_used" // or refused
	SecurityNewDeviceSignIn         Type = "security.new_device_sign_in"
	SecurityAuthorizationCodeReused Type = "security.authorization_code_reused"
	SecurityRefreshTokenReused      Type = "security.refresh_token_reused"
	SecurityThreatMatched           Type = "security.threat_matched" // by a sign-in or a sign-up
	SecurityThreatFeedCreated       Type = "security.threat_feed_created"
	SecurityThreatFeedUpdated       Type = "security.threat_feed_updated" // or its list is another one
	SecurityThreatFeedDeleted       Type = "security.threat_feed_deleted"
	SecurityThreatFeedFailing       Type = "security.threat_feed_failing" // to be fetched, from now on

	ReportCreated   Type = "report.created"
	ReportUpdated   Type = "report.updated"
	ReportDeleted   Type = "report.deleted"
	ReportCompleted Type = "report.completed" // a run of it ended

	TestPing Type = "test.ping"
)

// types lists the constants.
var types = []Type{
	UserCreated, UserUpdated, UserActivated, UserDisabled, UserEnabled, UserDeleted,
	UserPasswordChanged, UserImportCompleted, UserSignedUp, UserSignedIn, UserSignInFailed,
	UserSignedOut, UserLocked, UserEmailVerified, UserEmailChangeRequested, UserEmailChanged,
	UserPasswordResetRequested, UserPasswordResetCompleted, UserMFAEnrolled, UserMFARemoved,
	UserMFAReset, UserBackupCodesRegenerated, UserBackupCodeUsed, UserIdentityLinked,
	UserIdentityUnlinked,
	SessionCreated, SessionRevoked, SessionSteppedUp,
	GroupCreated, GroupUpdated, GroupDeleted, GroupMemberAdded, GroupMemberRemoved,
	ApplicationCreated, ApplicationUpdated, ApplicationDisabled, ApplicationEnabled,
	ApplicationDeleted, ApplicationSecretRotated, ApplicationLogoutFailed,
	FederationConnectionCreated, FederationConnectionUpdated, FederationConnectionEnabled,
	FederationConnectionDisabled, FederationConnectionDeleted, FederationConnectionTested, FederationMetadataRefreshed,
	FederationCertificateExpiring,
	ResourceTypeCreated, ResourceTypeUpdated, ResourceTypeDeleted, ResourceTypeRenamed,
	AssertionsStored, AssertionsDeleted,
	ResourceCreated, ResourceUpdated, ResourceDeleted,
	RelationCreated, RelationDeleted, RelationBulkApplied, RelationImported,
	ConsentGranted, ConsentRevoked,
	TokenExchanged, TokenExchangeDenied, TokenRevoked, TokenFamilyRevoked, TokenWorkloadExchanged,
	TrustedIssuerCreated, TrustedIssuerUpdated, TrustedIssuerDeleted,
	ScopeCreated, ScopeUpdated, ScopeDeleted,
	TenantSettingsUpdated, TenantSigningKeyRotated, TenantSAMLCertificateRotated,
	SignInFlowPublished, SignInFlowSecretRotated, SignInFlowDenied, SignInFlowActionFailed,
	BrandingUpdated, MailTemplateUpdated,
	WebhookSubscriptionCreated, WebhookSubscriptionUpdated, WebhookSubscriptionEnabled,
	WebhookSubscriptionDisabled, WebhookSubscriptionDeleted, WebhookSubscriptionFailing,
	WebhookSecretRotated, WebhookDeliveryDeadLettered, WebhookDeadLetterReplayed,
	WebhookDeadLetterDropped,
	SecurityBruteForceDetected,
	SecurityBreachIncidentOpened, SecurityBreachIncidentUpdated, SecurityBreachIncidentNotified, SecurityBreachIncidentClosed,
	SecurityBreachedPasswordUsed, SecurityNewDeviceSignIn,
	SecurityAuthorizationCodeReused, SecurityRefreshTokenReused,
	SecurityThreatMatched, SecurityThreatFeedCreated, SecurityThreatFeedUpdated, SecurityThreatFeedDeleted, SecurityThreatFeedFailing,
	ReportCreated, ReportUpdated, ReportDeleted, ReportCompleted,
	TestPing,
}

// Types returns the types of all events, ordered by category. The caller may change the result.
func Types() []Type { return slices.Clone(types) }

// Category returns the part of the type before the dot, such as user or resource_type.
func (t Type) Category() string {
	category, _, _ := strings.Cut(string(t), ".")
	return category
}
