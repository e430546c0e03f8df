package eventlog

import (
	"time"

	"github.com/go-json-experiment/json"

	"stonetown/internal/id"
)

// Event is something that happened.
type Event struct {
	// Position orders a tenant's events; the first is 1, and there are no gaps.
	Position int64
	ID       string
	TenantID string
	Type     Type
	At       time.Time // of the change, by the clock of the process that made it
	Origin   Origin
	// Data is a JSON object: the public representation of the changed resource. It has no
	// secrets.
	Data []byte
}

// Type is the type of an event: category.change.
type Type string

const (
	ResourceTypeCreated Type = "resource_type.created"
	ResourceTypeUpdated Type = "resource_type.updated"
	ResourceTypeDeleted Type = "resource_type.deleted"

	ResourceCreated Type = "resource.created"
	ResourceUpdated Type = "resource.updated"
	ResourceDeleted Type = "resource.deleted"

	RelationCreated     Type = "relation.created"
	RelationDeleted     Type = "relation.deleted"
	RelationBulkApplied Type = "relation.bulk_applied" // one for many relations

	UserCreated         Type = "user.created"
	UserUpdated         Type = "user.updated"
	UserActivated       Type = "user.activated"
	UserDisabled        Type = "user.disabled"
	UserEnabled         Type = "user.enabled"
	UserDeleted         Type = "user.deleted"
	UserPasswordChanged Type = "user.password_changed"
	UserImportCompleted Type = "user.import_completed"

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

	SecurityBruteForceDetected      Type = "security.brute_force_detected"
	SecurityBreachedPasswordUsed    Type = "security.breached_password_used" // or refused
	SecurityNewDeviceSignIn         Type = "security.new_device_sign_in"
	SecurityAuthorizationCodeReused Type = "security.authorization_code_reused"
	SecurityRefreshTokenReused      Type = "security.refresh_token_reused"

	TokenExchanged      Type = "token.exchanged"
	TokenExchangeDenied Type = "token.exchange_denied"
	TokenRevoked        Type = "token.revoked"
	TokenFamilyRevoked  Type = "token.family_revoked"

	ConsentGranted Type = "consent.granted"
	ConsentRevoked Type = "consent.revoked"

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

	ScopeCreated Type = "scope.created"
	ScopeUpdated Type = "scope.updated"
	ScopeDeleted Type = "scope.deleted"

	TenantSettingsUpdated   Type = "tenant.settings_updated"
	TenantSigningKeyRotated Type = "tenant.signing_key_rotated" // signing keys have entered a state
)

// Origin is the actor and the request that made a change.
type Origin struct {
	Actor     Actor // zero: the product itself
	ClientID  string
	RequestID string
	ClientIP  string
}

// Actor is the user or the application that makes a change.
type Actor struct {
	Type string // user or application
	ID   string
}

// New returns an event of this moment. data must encode as a JSON object, the public
// representation, without secrets. [Append] assigns the position.
func New(t Type, o Origin, data any) Event {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("eventlog: data that is not JSON: " + err.Error())
	}
	return Event{ID: id.New(id.Event), Type: t, At: time.Now(), Origin: o, Data: text}
}
