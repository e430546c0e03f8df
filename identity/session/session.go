// Package session stores the sessions of users.
//
// A session is a row. Its token is the session's id and 256 random bits, of which only
// the hash is stored. Every use of a token, and of an access token that names a session,
// reads the row: a session whose row is deleted has ended, on every process and at once.
// There is no cache to invalidate.
//
// A session also expires: after a time without use, and at the end of its lifetime. One that was
// opened from the control plane lives only while its reasons do ([Origins]), which is found out at
// each use.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

// ErrEnded is returned for a token or an id without a live session.
var ErrEnded = errors.New("the session does not exist or has ended")

const (
	// Prefix is the prefix of session tokens.
	Prefix = "st_"
	// MostPerUser is the maximum number of sessions of a user. A further one replaces the
	// least recently used.
	MostPerUser = 100
	// touchAfter is the precision of LastActiveAt.
	touchAfter = time.Minute
	// maxAgent bounds the stored user agent, in bytes.
	maxAgent = 500
)

// Session is a session of a user on a device.
type Session struct {
	ID       string
	TenantID string
	UserID   string
	Device   Device
	// Methods are the authentication methods of the user (RFC 8176).
	Methods      []string
	AuthTime     time.Time // of the last authentication; all times are UTC
	SecondFactor time.Time // of the last authentication with two factors; zero: none
	// MustEnrol restricts the session to adding a second factor.
	MustEnrol    bool
	Claims       string // that the sign-in flow added for tokens, a JSON object; empty: none
	CreatedAt    time.Time
	LastActiveAt time.Time // to within a minute
	ExpiresAt    time.Time // the end of the lifetime
	Origin       Origin
	idle         time.Duration // 0 with an origin: processes that do not know of origins find it expired
}

// Lifetimes are the lifetimes of sessions.
type Lifetimes struct {
	Idle     time.Duration // without use
	Absolute time.Duration
}

// New describes a new session.
type New struct {
	TenantID, UserID string
	Device           Device
	Methods          []string
	SecondFactor     bool // the authentication had two factors
	// AuthTime is the time of the authentication; zero: now.
	AuthTime  time.Time
	MustEnrol bool
	Claims    string    // see [Session]
	Lifetimes Lifetimes // [OpenedFor] with an origin
	Origin    Origin
}

// Store stores sessions. It is safe for concurrent use.
type Store struct {
	db      *sqldb.DB
	origins Origins
	clock   func() time.Time
}

// NewStore returns a store in db. Its tables are [Migrations].
func NewStore(db *sqldb.DB, origins Origins, clock func() time.Time) *Store {
	return &Store{db, origins, clock}
}

func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Begin adds a session and returns it with its token, which is not stored. It deletes expired
// sessions of the user, and the least recently used ones beyond [MostPerUser].
func (s *Store) Begin(ctx context.Context, tx *sqldb.Tx, n New) (Session, string, error) {
	now := s.now()
	have, err := selectOfUser(ctx, tx, n.TenantID, n.UserID)
	if err != nil {
		return Session{}, "", fmt.Errorf("begin session: %w", err)
	}
	slices.SortFunc(have, func(a, b Session) int { return b.LastActiveAt.Compare(a.LastActiveAt) })
	var b sqldb.Batch
	kept := 0
	for _, one := range have {
		if kept++; !one.live(now) || kept >= MostPerUser {
			End(&b, n.TenantID, one.ID)
			kept--
		}
	}
	if n.AuthTime.IsZero() {
		n.AuthTime = now
	}
	if n.Origin != (Origin{}) {
		n.Lifetimes = Lifetimes{Absolute: OpenedFor}
	}
	session := Session{
		ID: id.New(id.Session), TenantID: n.TenantID, UserID: n.UserID, Device: n.Device, Methods: n.Methods, AuthTime: n.AuthTime,
		MustEnrol: n.MustEnrol, Claims: n.Claims, CreatedAt: now, LastActiveAt: now, ExpiresAt: now.Add(n.Lifetimes.Absolute), Origin: n.Origin, idle: n.Lifetimes.Idle,
	}
	session.Device.UserAgent = strings.ToValidUTF8(session.Device.UserAgent[:min(len(session.Device.UserAgent), maxAgent)], "")
	if n.SecondFactor {
		session.SecondFactor = n.AuthTime
	}
	token, hash := newToken(session.ID)
	insert(&b, session, hash)
	return session, token, tx.Send(ctx, &b)
}

// StepUp queues that the user of a session has proved a second factor. It replaces the token, so
// that a stolen token is not raised as well.
func (s *Store) StepUp(b *sqldb.Batch, session Session, method string) (Session, string) {
	session = s.raise(session, method)
	token, hash := newToken(session.ID)
	update(b, session, hash)
	return session, token
}

// Enrolled queues that the user of a session has proved a second factor by adding it. The token
// stays valid.
func (s *Store) Enrolled(b *sqldb.Batch, session Session, method string) Session {
	session = s.raise(session, method)
	update(b, session, nil)
	return session
}

func (s *Store) raise(session Session, method string) Session {
	now := s.now()
	session.AuthTime, session.SecondFactor, session.MustEnrol = now, now, false
	session.Methods = slices.Clone(session.Methods)
	for _, m := range []string{method, "mfa"} {
		if !slices.Contains(session.Methods, m) {
			session.Methods = append(session.Methods, m)
		}
	}
	return session
}

// ByToken returns the session with a token. It fails with [ErrEnded].
func (s *Store) ByToken(ctx context.Context, tenantID, token string) (Session, error) {
	sessionID, ok := idOf(token)
	if !ok {
		return Session{}, ErrEnded
	}
	session, hash, err := selectSession(ctx, s.db, tenantID, sessionID)
	if err != nil {
		return Session{}, err
	}
	if subtle.ConstantTimeCompare(hash, hashOf(token)) != 1 {
		return Session{}, ErrEnded
	}
	return s.use(ctx, session)
}

// ByID returns a session. It fails with [ErrEnded].
func (s *Store) ByID(ctx context.Context, tenantID, sessionID string) (Session, error) {
	session, _, err := selectSession(ctx, s.db, tenantID, sessionID)
	if err != nil {
		return Session{}, err
	}
	return s.use(ctx, session)
}

// QueueByID queues the read of a session. When the batch was sent, result returns it, as
// [Store.ByID] does.
func (s *Store) QueueByID(b *sqldb.Batch, tenantID, sessionID string) (result func(context.Context) (Session, error)) {
	found, err := Session{}, ErrEnded
	if sqldb.IsText(sessionID) {
		b.Queue(selectByID, []any{tenantID, sessionID}, func(rows *sqldb.Rows) error {
			found, _, err = scan(rows.First(), tenantID)
			return nil
		})
	}
	return func(ctx context.Context) (Session, error) {
		if err != nil {
			return Session{}, err
		}
		return s.use(ctx, found)
	}
}

// use refuses an expired session, and one whose origin does not hold, and updates the last use of
// others.
func (s *Store) use(ctx context.Context, session Session) (Session, error) {
	now := s.now()
	if !session.live(now) {
		return Session{}, ErrEnded
	}
	if err := s.holds(ctx, session); err != nil {
		return Session{}, err
	}
	if now.Sub(session.LastActiveAt) > touchAfter {
		if err := touch(ctx, s.db, session, now); err != nil {
			return Session{}, fmt.Errorf("use session: %w", err)
		}
		session.LastActiveAt = now
	}
	return session, nil
}

func (s Session) live(now time.Time) bool {
	return now.Before(s.ExpiresAt) && (s.Opened() || now.Before(s.LastActiveAt.Add(s.idle)))
}

// Live returns the live sessions among several hundred ids at most.
func (s *Store) Live(ctx context.Context, tenantID string, ids []string) ([]Session, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args, places := make([]any, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		args[i], places[i] = id, fmt.Sprintf("$%d", i+2)
	}
	all, err := selectSessions(ctx, s.db, tenantID, `id IN (`+strings.Join(places, ", ")+`)`, args...)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return s.live(ctx, all)
}

// live returns those of some sessions that have neither expired nor lost their origin.
func (s *Store) live(ctx context.Context, all []Session) (live []Session, err error) {
	now := s.now()
	for _, session := range all {
		if !session.live(now) {
			continue
		}
		switch err := s.holds(ctx, session); {
		case err == nil:
			live = append(live, session)
		case !errors.Is(err, ErrEnded):
			return nil, err
		}
	}
	return live, nil
}

// holds fails with [ErrEnded] for a session whose origin does not hold any more.
func (s *Store) holds(ctx context.Context, session Session) error {
	if !session.Opened() {
		return nil
	}
	_, err := s.origins.Origin(ctx, session.TenantID, session.Origin)
	return err
}

// List returns the live sessions of a user, newest first.
func (s *Store) List(ctx context.Context, tenantID, userID string) ([]Session, error) {
	all, err := selectOfUser(ctx, s.db, tenantID, userID)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return s.live(ctx, all)
}

// OfUser returns the sessions of a user within a transaction, including expired ones.
func OfUser(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) ([]Session, error) {
	return selectOfUser(ctx, tx, tenantID, userID)
}

// End queues the end of a session.
func End(b *sqldb.Batch, tenantID, sessionID string) {
	end(b, `tenant_id = $1 AND id = $2`, tenantID, sessionID)
}

// EndAll queues the end of all sessions of a user except one; of all if except is empty.
func EndAll(b *sqldb.Batch, tenantID, userID, except string) {
	end(b, `tenant_id = $1 AND user_id = $2 AND user_id <> '' AND id <> $3`, tenantID, userID, except)
}

// A token consists of Prefix, the id without its prefix, and the secret.
var (
	idLen    = len(id.New(id.Session)) - len(id.Session+"_")
	tokenLen = len(Prefix) + idLen + base64.RawURLEncoding.EncodedLen(32)
)

func newToken(sessionID string) (token string, hash []byte) {
	secret := make([]byte, 32)
	rand.Read(secret)
	token = Prefix + strings.TrimPrefix(sessionID, id.Session+"_") + base64.RawURLEncoding.EncodeToString(secret)
	return token, hashOf(token)
}

func idOf(token string) (sessionID string, ok bool) {
	if len(token) != tokenLen || !strings.HasPrefix(token, Prefix) {
		return "", false
	}
	return id.Session + "_" + token[len(Prefix):len(Prefix)+idLen], true
}

func hashOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
