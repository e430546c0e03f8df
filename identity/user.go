package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stonetown/engine/authority"
	"stonetown/identity/onetime"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/internal/text"
)

var (
	// ErrUserNotFound is returned for an unknown user.
	ErrUserNotFound = errors.New("user not found")

	// ErrUserExists is returned for an e-mail address that has an account in
	// the tenant.
	ErrUserExists = errors.New("a user with this e-mail address already exists")

	// ErrEmailInvalid is returned for an invalid e-mail address.
	ErrEmailInvalid = errors.New("not an e-mail address")
)

// State is the state of an account.
type State string

// The states of an account. A pending account becomes active when its address is verified, by
// its user or by an administrator, and is never pending again. Users of disabled accounts cannot
// sign in.
const (
	Pending  State = "pending"
	Active   State = "active"
	Disabled State = "disabled"
)

// Profile is the profile of a user. All fields are optional.
type Profile struct {
	Name, GivenName, FamilyName string
	Picture                     string // URL
	Locale                      string // BCP 47
	// Attributes is a JSON object that applications define; nil if there is none.
	Attributes []byte
}

// User is an account.
type User struct {
	ID            string
	TenantID      string
	Email         string // as entered
	EmailVerified bool
	State         State
	Profile
	PasswordHash        password.Hash // empty when the account has no password
	PasswordMustBeReset bool          // at the next sign-in
	PasswordCheckAt     time.Time     // when to look the password up among breached ones; zero: at the next sign-in
	MustEnrol           bool          // the next sign-in requires adding a second factor
	CreatedAt           time.Time     // UTC, as all times
	UpdatedAt           time.Time
	LastSignedInAt      time.Time // zero: never
	SignedOutAt         time.Time // the last [Directory.SignOut]; zero: never
	ManagedBy           string    // the id of the same person in the system tenant; empty: the user signs in here. See [Directory.Admit]
}

// NewUser describes a new account.
type NewUser struct {
	Email               string
	EmailVerified       bool // the account is active then
	Disabled            bool // the account is disabled from the start
	Profile             Profile
	PasswordHash        password.Hash // from [Directory.NewPassword]; a transaction must not wait for hashing
	PasswordMustBeReset bool
}

// SetPassword replaces the password. The empty hash removes it.
func (u *User) SetPassword(hash password.Hash) { u.PasswordHash, u.PasswordCheckAt = hash, time.Time{} }

func (u *User) disable() { u.State = Disabled }

// Enable makes a disabled account active, even if its address was never verified. It has no
// effect in other states.
func (u *User) Enable() {
	if u.State == Disabled {
		u.State = Active
	}
}

// VerifyEmail sets whether the address is verified. A verified address makes a pending account
// active.
func (u *User) VerifyEmail(verified bool) {
	u.EmailVerified = verified
	if verified && u.State == Pending {
		u.State = Active
	}
}

// Config contains the dependencies of a directory. All fields but Clock and OnDelete are
// required.
type Config struct {
	// DB stores users and groups. Its tables are [Migrations].
	DB *sqldb.DB
	// Relations stores memberships and the scopes of groups.
	Relations Relations
	// Authority compares the rights of callers.
	Authority *authority.Checker
	// Breached is the list of breached passwords; [breached.None] is an empty one.
	Breached breached.List
	// Scopes is the registry of the scopes that groups can have.
	Scopes Scopes
	// Verification sends the mails to new users; [NoVerification] sends none.
	Verification Verification
	// OnDelete are called when a user is deleted. They queue the deletion of the data of
	// other modules about the user.
	OnDelete []func(b *sqldb.Batch, tenantID, userID string)
	// Clock returns the time. Default: time.Now.
	Clock  func() time.Time
	Logger *slog.Logger
}

// Scopes is a registry of scopes.
type Scopes interface {
	// UnknownScopes returns the scopes that a tenant does not have, in a transaction or, if
	// from is nil, outside of one.
	UnknownScopes(ctx context.Context, from *sqldb.Tx, tenantID string, scopes []string) (unknown []string, err error)
}

// Verification sends a mail with a link to verify the address of a new user.
type Verification interface {
	// Queue queues the mail. It is sent after the commit.
	Queue(b *sqldb.Batch, u User)
	// Wake sends queued mails without delay.
	Wake()
}

// NoVerification is a [Verification] that sends no mails.
type NoVerification struct{}

// Queue implements [Verification].
func (NoVerification) Queue(*sqldb.Batch, User) {}

// Wake implements [Verification].
func (NoVerification) Wake() {}

// Directory stores the users and groups of all tenants. It is safe for concurrent use.
type Directory struct {
	db        *sqldb.DB
	relations Relations
	authority *authority.Checker
	breached  breached.List
	clock     func() time.Time
	log       *slog.Logger

	scopes       Scopes
	verification Verification
	onDelete     []func(b *sqldb.Batch, tenantID, userID string)
}

// New returns a directory.
func New(c Config) (*Directory, error) {
	if c.DB == nil || c.Relations == nil || c.Authority == nil || c.Breached == nil || c.Scopes == nil || c.Verification == nil || c.Logger == nil {
		return nil, errors.New("identity: Config.DB, Relations, Authority, Breached, Scopes, Verification and Logger are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Directory{
		db: c.DB, relations: c.Relations, authority: c.Authority, breached: c.Breached, clock: c.Clock, log: c.Logger,
		scopes: c.Scopes, verification: c.Verification, onDelete: c.OnDelete,
	}, nil
}

func (d *Directory) now() time.Time { return d.clock().UTC().Truncate(time.Microsecond) }

// CreateUser adds an account within a transaction, without an event. It fails with
// [ErrEmailInvalid] or [ErrUserExists].
func (d *Directory) CreateUser(ctx context.Context, tx *sqldb.Tx, tenantID string, n NewUser) (User, error) {
	return d.createIn(ctx, tx, tenantID, n, func(User, *sqldb.Batch) {})
}

// createIn adds an account together with the statements that attach queues, in one round trip.
// These must not violate a unique index, which is reported as an existing account.
func (d *Directory) createIn(ctx context.Context, tx *sqldb.Tx, tenantID string, n NewUser, attach func(User, *sqldb.Batch)) (User, error) {
	if !ValidEmail(n.Email) {
		return User{}, ErrEmailInvalid
	}
	u := d.newUser(tenantID, n)
	var b sqldb.Batch
	queueUser(&b, u)
	attach(u, &b)
	err := tx.Send(ctx, &b)
	if sqldb.IsUniqueViolation(err) {
		err = ErrUserExists
	}
	if err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	return u, nil
}

func (d *Directory) newUser(tenantID string, n NewUser) User {
	now := d.now()
	u := User{
		ID: id.New(id.User), TenantID: tenantID, Email: n.Email, EmailVerified: n.EmailVerified, State: Pending,
		Profile: n.Profile, PasswordHash: n.PasswordHash, PasswordMustBeReset: n.PasswordMustBeReset,
		CreatedAt: now, UpdatedAt: now,
	}
	if n.EmailVerified {
		u.State = Active
	}
	if n.Disabled {
		u.State = Disabled
	}
	return u
}

// Create adds an account on behalf of an administrator. If the address is not verified, the user
// gets a mail with a link to verify it. Create fails with [ErrEmailInvalid] or [ErrUserExists].
func (d *Directory) Create(ctx context.Context, tenantID string, n NewUser) (u User, err error) {
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err = d.createIn(ctx, tx, tenantID, n, func(u User, b *sqldb.Batch) {
			d.verify(b, u)
			eventlog.Append(b, tenantID, UserCreated(ctx, u, FromAdministrator))
		})
		return err
	})
	if err == nil && !u.EmailVerified {
		d.verification.Wake()
	}
	return u, err
}

// verify queues the mail to a new user, unless the address is verified.
func (d *Directory) verify(b *sqldb.Batch, u User) {
	if !u.EmailVerified {
		d.verification.Queue(b, u)
	}
}

// User returns an account by its id. It fails with [ErrUserNotFound].
func (d *Directory) User(ctx context.Context, tenantID, userID string) (User, error) {
	return selectUser(ctx, d.db, tenantID, userID)
}

// QueueUser queues the read of an account. When the batch was sent, result returns it, as
// [Directory.User] does.
func (d *Directory) QueueUser(b *sqldb.Batch, tenantID, userID string) (result func() (User, error)) {
	found, err := User{}, ErrUserNotFound
	if sqldb.IsText(userID) {
		b.Queue(selectUserByID, []any{tenantID, userID}, func(rows *sqldb.Rows) error {
			found, err = scanUser(rows.First(), tenantID)
			return nil
		})
	}
	return func() (User, error) { return found, err }
}

// UsersByID returns those of some users that exist, by id.
func (d *Directory) UsersByID(ctx context.Context, tenantID string, userIDs []string) (map[string]User, error) {
	found, err := selectUsers(ctx, d.db, tenantID, userIDs)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	return found, nil
}

// UserIDs returns the ids of the users of a tenant in their order: at most limit, and those after one.
func (d *Directory) UserIDs(ctx context.Context, tenantID, after string, limit int) ([]string, error) {
	found, err := sqldb.Texts(d.db.Query(ctx, `SELECT id FROM users WHERE tenant_id = $1 AND id > $2 ORDER BY id LIMIT $3`, tenantID, after, int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("list ids of users: %w", err)
	}
	return found, nil
}

// FirstUser returns the user of a tenant that was created first, other than managed ones. It fails with [ErrUserNotFound].
func (d *Directory) FirstUser(ctx context.Context, tenantID string) (User, error) {
	return selectFirstUser(ctx, d.db, tenantID)
}

// UserByEmail returns an account by its address, without regard to case. It fails with
// [ErrUserNotFound].
func (d *Directory) UserByEmail(ctx context.Context, tenantID, email string) (User, error) {
	return selectUserByEmail(ctx, d.db, tenantID, NormalEmail(email))
}

// Change is a change of an account.
type Change struct {
	Before, After User
	Ended         []session.Session // the sessions that it ended
}

// Update changes an account. change modifies the current account and may run more than once; it
// must not change id, tenant and creation, nor disable the account ([Directory.Disable]). A new
// password ends all sessions. Nothing is written if the account stays the same. Update fails with
// [ErrUserNotFound], with [ErrUserExists] for the address of another account, or with
// [*authority.DeniedError] for a change by which the caller could act as a user with more rights, or
// as UpdateIn does.
func (d *Directory) Update(ctx context.Context, tenantID, userID string, change func(*User)) (after User, err error) {
	seen, err := d.User(ctx, tenantID, userID)
	if err != nil {
		return User{}, err
	}
	wanted := seen
	change(&wanted)
	managed := takesOver(seen, wanted)
	if managed {
		if err := d.MayManage(ctx, tenantID, userID); err != nil {
			return User{}, err
		}
	}
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := d.UpdateIn(ctx, tx, tenantID, userID, change)
		if err != nil || reflect.DeepEqual(c.Before, c.After) {
			after = c.After
			return err
		}
		if !managed && takesOver(c.Before, c.After) {
			return errChanged
		}
		if c.Before.PasswordHash != c.After.PasswordHash {
			if c.Ended, err = d.SignOut(ctx, tx, tenantID, userID, ""); err != nil {
				return err
			}
		}
		after = c.After
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, c.events(ctx)...)
		return tx.Send(ctx, &b)
	})
	if errors.Is(err, errChanged) {
		return d.Update(ctx, tenantID, userID, change)
	}
	if err != nil {
		return User{}, fmt.Errorf("update user: %w", err)
	}
	return after, nil
}

// takesOver reports whether a change can let another person sign in to the account.
func takesOver(before, after User) bool {
	return before.PasswordHash != after.PasswordHash || before.EmailVerified != after.EmailVerified ||
		before.PasswordMustBeReset != after.PasswordMustBeReset || before.State != after.State
}

// MayManage fails with [*authority.DeniedError] unless the caller has all rights of a user, or
// with [ErrUserNotFound].
func (d *Directory) MayManage(ctx context.Context, tenantID, userID string) error {
	if _, err := d.User(ctx, tenantID, userID); err != nil {
		return err
	}
	return d.authority.MayManage(ctx, tenantID, userID)
}

// UpdateIn is [Directory.Update] within a transaction. It ends no sessions and writes no events. It
// fails with [ErrManaged] for a way to sign in of a managed user.
func (d *Directory) UpdateIn(ctx context.Context, tx *sqldb.Tx, tenantID, userID string, change func(*User)) (Change, error) {
	before, err := selectUser(ctx, tx, tenantID, userID)
	if err != nil {
		return Change{}, err
	}
	c := Change{Before: before, After: before}
	change(&c.After)
	if reflect.DeepEqual(before, c.After) {
		return c, nil
	}
	if err := c.staysManaged(); err != nil {
		return Change{}, err
	}
	c.After.UpdatedAt = d.now()
	var b sqldb.Batch
	updateUser(&b, c.After)
	err = tx.Send(ctx, &b)
	if sqldb.IsUniqueViolation(err) {
		err = ErrUserExists
	}
	return c, err
}

// SignOut ends the sessions of a user, except one if it is named, deletes the one-time tokens of
// the user, and invalidates the tokens of applications that were issued before.
func (d *Directory) SignOut(ctx context.Context, tx *sqldb.Tx, tenantID, userID, except string) (ended []session.Session, err error) {
	all, err := session.OfUser(ctx, tx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	var b sqldb.Batch
	session.EndAll(&b, tenantID, userID, except)
	onetime.Discard(&b, tenantID, userID)
	b.Queue(`UPDATE users SET signed_out_at = $3 WHERE tenant_id = $1 AND id = $2`, []any{tenantID, userID, d.now().UnixMicro()}, nil)
	return slices.DeleteFunc(all, func(s session.Session) bool { return s.ID == except }), tx.Send(ctx, &b)
}

// SignedIn queues the time of a sign-in.
func (d *Directory) SignedIn(b *sqldb.Batch, u User) {
	b.Queue(`UPDATE users SET last_signed_in_at = $3 WHERE tenant_id = $1 AND id = $2`, []any{u.TenantID, u.ID, d.now().UnixMicro()}, nil)
}

// UserIn is [Directory.User] within a transaction. It fails with [ErrUserNotFound].
func (d *Directory) UserIn(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) (User, error) {
	return selectUser(ctx, tx, tenantID, userID)
}

// Lock is [Directory.UserIn] and locks the account until the transaction ends. It fails with
// [ErrUserNotFound].
func (d *Directory) Lock(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) (User, error) {
	// The transaction that deletes a user also writes relations and is not serializable, so
	// reading the row would not conflict with it.
	if _, err := tx.Exec(ctx, `UPDATE users SET updated_at = updated_at WHERE tenant_id = $1 AND id = $2`, tenantID, userID); err != nil {
		return User{}, fmt.Errorf("lock user: %w", err)
	}
	return selectUser(ctx, tx, tenantID, userID)
}

// VerifyPassword returns an account by address and password. It fails with [ErrUserNotFound] for
// an unknown address and for a wrong password, after the same time.
func (d *Directory) VerifyPassword(ctx context.Context, tenantID, email, password string) (User, error) {
	u, err := d.UserByEmail(ctx, tenantID, email)
	if err != nil && !errors.Is(err, ErrUserNotFound) {
		return User{}, err
	}
	ok, err := u.PasswordHash.Verify(ctx, password) // the zero user has no password
	if err != nil {
		return User{}, fmt.Errorf("verify password: %w", err)
	}
	if !ok {
		return User{}, ErrUserNotFound
	}
	return u, nil
}

// ValidEmail reports whether a text is one address without a display name, of at most 254 bytes
// (RFC 5321 §4.5.3.1.3).
func ValidEmail(email string) bool {
	a, err := mail.ParseAddress(email)
	return err == nil && a.Name == "" && a.Address == email && len(email) <= 254 && text.IsLine(email)
}

// NormalEmail returns the form in which addresses are compared. The databases do not fold text,
// because their rules differ.
func NormalEmail(email string) string { return text.Fold(email) }

// maxSearchText bounds the stored search text of an account, in bytes.
const maxSearchText = 4096

// searchText returns the text that searches match: the address, the names, and the strings and
// numbers of the attributes, folded.
func (u User) searchText() string {
	parts := []string{u.Email, u.Name, u.GivenName, u.FamilyName}
	var add func(value any)
	add = func(value any) {
		switch v := value.(type) {
		case string:
			parts = append(parts, strings.ReplaceAll(v, "\x00", " ")) // NUL is valid in JSON and not in PostgreSQL
		case json.Number:
			parts = append(parts, v.String())
		case []any:
			for _, item := range v {
				add(item)
			}
		case map[string]any:
			keys := make([]string, 0, len(v))
			for key := range v {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			for _, key := range keys {
				add(v[key])
			}
		}
	}
	if u.Attributes != nil {
		var attributes any
		d := json.NewDecoder(strings.NewReader(string(u.Attributes)))
		d.UseNumber()
		if d.Decode(&attributes) == nil {
			add(attributes)
		}
	}
	all := text.Fold(strings.Join(parts, "\n"))
	if len(all) > maxSearchText {
		all = all[:maxSearchText]
		for !utf8.ValidString(all) {
			all = all[:len(all)-1]
		}
	}
	return all
}
