package api_test

import (
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"stonetown/identity/password"
	"stonetown/internal/sqldb"
	"stonetown/server"
)

// TestPaceOfWrongPasswords measures the response time of wrong passwords: it is equal for fast hashes, imported
// hashes and addresses without an account.
func TestPaceOfWrongPasswords(t *testing.T) {
	const pace = 300 * time.Millisecond
	w := newWorldOn(t, sqldb.Config{URL: databases["SQLite"](t)}, nil, func(c *server.Config) { c.Pace = pace })
	c := w.tenant(t, "pace")
	member(t, c, "own@example.com")
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := password.ImportHash(password.Bcrypt, string(hash))
	if err != nil {
		t.Fatal(err)
	}
	member(t, c, "imported@example.com")
	if _, err := w.db.Exec(t.Context(), `UPDATE users SET password_hash = $1 WHERE email = 'imported@example.com'`, string(imported)); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"own@example.com", "imported@example.com", "nobody@example.com"} {
		began := time.Now()
		c.with("").want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": email, "password": "a wrong password"})
		if took := time.Since(began); took < pace {
			t.Errorf("%s: answered after %v, before the step of %v", email, took, pace)
		}
	}
	signIn(t, c, "imported@example.com", secret, "complete")
}
