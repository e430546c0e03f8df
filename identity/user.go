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
	// ErrUserNotFound is returned by lookups that match no account.
	ErrUserNotFound = errors.New("user not found")

	// ErrUserExists is returned for an e-mail address that has an account in
	// the tenant.
	ErrUserExists = errors.New("a user with this e-mail address already exists")

	// ErrEmailInvalid is returned for what is not an e-mail address.
	ErrEmailInvalid = errors.New("not an e-mail address")
)

// State says whether a person may sign in.
type State string

// The states of a user. An account becomes active when its address is verified, or
// by somebody who vouches for it, and never pending again.
const (
	Pending  State = "pending"
	Active   State = "active"
	Disabled State = "disabled"
)

// Profile is what people say about themselves. All of it is optional.
type Profile struct {
	Name, GivenName, FamilyName string
	Picture                     string // URL
	Locale                      string // BCP 47
	// Attributes is a JSON object of the application's own; nil if there is none.
	Attributes []byte
}

// User is an account.
type User struct {
	ID            string
	TenantID      string
	Email         string // as it was entered
	EmailVerified bool
	State         State
	Profile
	PasswordHash        password.Hash // empty when the account has no password
	PasswordMustBeReset bool          // at the next sign-in
	PasswordCheckAt     time.Time     // when to look the password up among breached ones; zero: at the next sign-in
	MustEnrol           bool          // a second factor, at the next sign-in
	CreatedAt           time.Time     // UTC, as are all
	UpdatedAt           time.Time
	LastSignedInAt      time.Time // zero: never
	SignedOutAt         time.Time // when [Directory.SignOut] last was; zero: never
}

// NewUser is what creating an account takes.
type NewUser struct {
	Email               string
	EmailVerified       bool // the account is then active
	Profile             Profile
	PasswordHash        password.Hash // from [Directory.NewPassword]; a transaction must not wait for hashing
	PasswordMustBeReset bool
}

// SetPassword replaces the password; the empty hash takes it away.
func (u *User) SetPassword(hash password.Hash) { u.PasswordHash, u.PasswordCheckAt = hash, time.Time{} }

func (u *User) disable() { u.State = Disabled }

// Enable takes [Directory.Disable] back. The account is active then, even if its
// address was never verified; in other states nothing changes.
func (u *User) Enable() {
	if u.State == Disabled {
		u.State = Active
	}
}

// VerifyEmail says whether the address is the user's. That makes a pending account
// active.
func (u *User) VerifyEmail(verified bool) {
	u.EmailVerified = verified
	if verified && u.State == Pending {
		u.State = Active
	}
}

// Config says what a directory works on.
type Config struct {
	// DB holds the rows. Required; its tables are [Migrations].
	DB *sqldb.DB
	// Relations has what users may do, and who is in which group. Required by
	// everything about groups, and by disabling and deleting users.
	Relations Relations
	// Authority compares the rights of callers. Required by everything that gives rights
	// or takes accounts over on behalf of a caller.
	Authority *authority.Checker
	// Breached is the list of breached passwords. Default: [breached.None].
	Breached breached.List
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
	// Logger gets what goes wrong without anybody being told. Default: discarded.
	Logger *slog.Logger
	// Scopes knows which scopes groups can have. Default: any.
	Scopes Scopes
	// Verification has the addresses of new users verified. Default: no mail is sent.
	Verification Verification
	// OnDelete queue what commits when a user is deleted: the removal of what other
	// modules keep about the user.
	OnDelete []func(b *sqldb.Batch, tenantID, userID string)
}

// Scopes knows which scopes a tenant has.
type Scopes interface {
	// UnknownScopes returns those that the tenant does not have, as a transaction
	// sees them (nil: as they are now).
	UnknownScopes(ctx context.Context, from *sqldb.Tx, tenantID string, scopes []string) (unknown []string, err error)
}

// Verification sends new users the mail by which they verify their address.
type Verification interface {
	// Queue queues the mail; it is sent after the commit.
	Queue(b *sqldb.Batch, u User)
	// Wake has queued mail sent at once.
	Wake()
}

// Directory knows the users of every tenant. It is safe for concurrent use.
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

// New returns the directory kept in c.DB.
func New(c Config) (*Directory, error) {
	if c.DB == nil {
		return nil, errors.New("identity: Config.DB is required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Breached == nil {
		c.Breached = breached.None{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Directory{
		db: c.DB, relations: c.Relations, authority: c.Authority, breached: c.Breached, clock: c.Clock, log: c.Logger,
		scopes: c.Scopes, verification: c.Verification, onDelete: c.OnDelete,
	}, nil
}

func (d *Directory) now() time.Time { return d.clock().UTC().Truncate(time.Microsecond) }

// CreateUser adds an account within the caller's transaction, and no event. It fails with
// [ErrEmailInvalid] or [ErrUserExists].
func (d *Directory) CreateUser(ctx context.Context, tx *sqldb.Tx, tenantID string, n NewUser) (User, error) {
	return d.createIn(ctx, tx, tenantID, n, func(User, *sqldb.Batch) {})
}

// createIn adds an account, with what attach queues, in one round trip. What attach queues
// must not violate a unique index: that would be taken for the account's.
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
	return u
}

// Create adds an account on behalf of an administrator. A user whose address is not
// verified gets a mail to do so. It fails with [ErrEmailInvalid] or [ErrUserExists].
func (d *Directory) Create(ctx context.Context, tenantID string, n NewUser) (u User, err error) {
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err = d.createIn(ctx, tx, tenantID, n, func(u User, b *sqldb.Batch) {
			d.verify(b, u)
			eventlog.Append(b, tenantID, UserCreated(ctx, u, FromAdministrator))
		})
		return err
	})
	if err == nil && !u.EmailVerified && d.verification != nil {
		d.verification.Wake()
	}
	return u, err
}

// verify queues the mail to a new user whose address is not verified.
func (d *Directory) verify(b *sqldb.Batch, u User) {
	if !u.EmailVerified && d.verification != nil {
		d.verification.Queue(b, u)
	}
}

// User finds an account by its id. It fails with [ErrUserNotFound].
func (d *Directory) User(ctx context.Context, tenantID, userID string) (User, error) {
	return selectUser(ctx, d.db, tenantID, userID)
}

// UserByEmail finds an account by its address, whatever the case. It fails with
// [ErrUserNotFound].
func (d *Directory) UserByEmail(ctx context.Context, tenantID, email string) (User, error) {
	return selectUserByEmail(ctx, d.db, tenantID, NormalEmail(email))
}

// Change is what became of an account.
type Change struct {
	Before, After User
	Ended         []session.Session // with it
}

// Update changes an account: change gets it as it is and makes of it what it shall
// be; id, tenant and creation stay, and [Directory.Disable] disables. With another
// password all sessions end. Without a difference nothing is written. change may run more
// than once. It fails with [ErrUserNotFound], with
// [ErrUserExists] for the address of another account, or with [*authority.DeniedError] for
// a change by which the caller could act as a user who holds more.
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

// takesOver reports whether a change lets somebody else sign in to an account, or sign in
// again.
func takesOver(before, after User) bool {
	return before.PasswordHash != after.PasswordHash || before.EmailVerified != after.EmailVerified ||
		before.PasswordMustBeReset != after.PasswordMustBeReset || before.State != after.State
}

// MayManage fails with [*authority.DeniedError] unless the caller holds what a user holds,
// and with [ErrUserNotFound].
func (d *Directory) MayManage(ctx context.Context, tenantID, userID string) error {
	if _, err := d.User(ctx, tenantID, userID); err != nil {
		return err
	}
	return d.authority.MayManage(ctx, tenantID, userID)
}

// UpdateIn is [Directory.Update] within the caller's transaction. It ends no session and
// writes no event.
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
	c.After.UpdatedAt = d.now()
	var b sqldb.Batch
	updateUser(&b, c.After)
	err = tx.Send(ctx, &b)
	if sqldb.IsUniqueViolation(err) {
		err = ErrUserExists
	}
	return c, err
}

// SignOut ends the sessions of a user, except one, if it is named, and takes back
// everything that was handed out before to sign in with or to act as the user.
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

// SignedIn queues that a user has just signed in.
func (d *Directory) SignedIn(b *sqldb.Batch, u User) {
	b.Queue(`UPDATE users SET last_signed_in_at = $3 WHERE tenant_id = $1 AND id = $2`, []any{u.TenantID, u.ID, d.now().UnixMicro()}, nil)
}

// UserIn finds an account as a transaction sees it. It fails with [ErrUserNotFound].
func (d *Directory) UserIn(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) (User, error) {
	return selectUser(ctx, tx, tenantID, userID)
}

// Hold is [Directory.UserIn], and nobody deletes or changes the account until the
// transaction ends. It fails with [ErrUserNotFound].
func (d *Directory) Hold(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) (User, error) {
	// What deletes a user commits with a write of relations, which is not serializable: a
	// row that was only read would not be in its way.
	if _, err := tx.Exec(ctx, `UPDATE users SET updated_at = updated_at WHERE tenant_id = $1 AND id = $2`, tenantID, userID); err != nil {
		return User{}, fmt.Errorf("hold user: %w", err)
	}
	return selectUser(ctx, tx, tenantID, userID)
}

// Scopes are those that a user has through groups, sorted.
func (d *Directory) Scopes(ctx context.Context, tenantID, userID string) ([]string, error) {
	groups, err := d.groupsOf(ctx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	var scopes []string
	for _, g := range groups {
		scopes = append(scopes, g.Scopes...)
	}
	return sorted(scopes), nil
}

// VerifyPassword finds an account by address and password. A wrong password and
// an unknown address fail alike, in result and in time, with [ErrUserNotFound].
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

// ValidEmail accepts one bare address, at most 254 bytes (RFC 5321 §4.5.3.1.3).
func ValidEmail(email string) bool {
	a, err := mail.ParseAddress(email)
	return err == nil && a.Name == "" && a.Address == email && len(email) <= 254 && text.IsLine(email)
}

// NormalEmail is the form in which addresses are compared. Folding happens
// here because databases disagree on it.
func NormalEmail(email string) string { return text.Fold(email) }

// maxSearchText bounds what is kept of an account for searching, in bytes.
const maxSearchText = 4096

// searchText is what a search looks through: address, names and the texts and
// numbers among the attributes, folded.
func (u User) searchText() string {
	parts := []string{u.Email, u.Name, u.GivenName, u.FamilyName}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			parts = append(parts, strings.ReplaceAll(v, "\x00", " ")) // which JSON can hold, and PostgreSQL cannot
		case json.Number:
			parts = append(parts, v.String())
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			keys := make([]string, 0, len(v))
			for key := range v {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			for _, key := range keys {
				walk(v[key])
			}
		}
	}
	if u.Attributes != nil {
		var attributes any
		d := json.NewDecoder(strings.NewReader(string(u.Attributes)))
		d.UseNumber()
		if d.Decode(&attributes) == nil {
			walk(attributes)
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
