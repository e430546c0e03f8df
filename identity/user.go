package identity

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

var (
	// ErrUserNotFound is returned by lookups that match no account.
	ErrUserNotFound = errors.New("user not found")

	// ErrUserExists is returned for an e-mail address that has an account in
	// the tenant.
	ErrUserExists = errors.New("a user with this email exists")

	// ErrEmailInvalid is returned for what is not an e-mail address.
	ErrEmailInvalid = errors.New("not an e-mail address")
)

// User is an account.
type User struct {
	ID            string
	TenantID      string
	Email         string // as it was entered
	EmailVerified bool
	Name          string
	PasswordHash  PasswordHash // empty when the account has no password
	CreatedAt     time.Time    // UTC
}

// NewUser is what creating an account takes.
type NewUser struct {
	Email         string
	EmailVerified bool
	Name          string
	PasswordHash  PasswordHash // from HashPassword; hashing is too slow to do in a transaction
}

// Config says what a directory works on.
type Config struct {
	// DB holds the rows. Required; its tables are [Migrations].
	DB *sqldb.DB

	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
}

// Directory knows the users of every tenant. It is safe for concurrent use.
type Directory struct {
	db    *sqldb.DB
	clock func() time.Time
}

// New returns the directory kept in c.DB.
func New(c Config) (*Directory, error) {
	if c.DB == nil {
		return nil, errors.New("identity: Config.DB is required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Directory{c.DB, c.Clock}, nil
}

// CreateUser adds an account within the caller's transaction. It fails with
// [ErrEmailInvalid] or [ErrUserExists].
func (d *Directory) CreateUser(ctx context.Context, tx *sqldb.Tx, tenantID string, n NewUser) (User, error) {
	if !validEmail(n.Email) {
		return User{}, ErrEmailInvalid
	}
	u := User{
		ID: id.New(id.User), TenantID: tenantID, Email: n.Email, EmailVerified: n.EmailVerified,
		Name: n.Name, PasswordHash: n.PasswordHash, CreatedAt: d.clock().UTC().Truncate(time.Microsecond),
	}
	if err := insertUser(ctx, tx, u, normalEmail(u.Email)); err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	return u, nil
}

// UserByEmail finds an account by its address, whatever the case. It fails with
// [ErrUserNotFound].
func (d *Directory) UserByEmail(ctx context.Context, tenantID, email string) (User, error) {
	return selectUserByEmail(ctx, d.db, tenantID, normalEmail(email))
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

// validEmail accepts one bare address, at most 254 bytes (RFC 5321 §4.5.3.1.3).
func validEmail(email string) bool {
	a, err := mail.ParseAddress(email)
	return err == nil && a.Name == "" && a.Address == email && len(email) <= 254
}

// normalEmail is the form in which addresses are compared. Folding happens
// here because databases disagree on it.
func normalEmail(email string) string { return strings.ToLower(norm.NFC.String(email)) }
