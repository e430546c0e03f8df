package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stonetown/internal/masterkey"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
)

// A deployment replaces its master key: at each step the same signing key signs, a response that
// was stored before is repeated, and earlier tokens are valid. At the end the old key is refused.
func TestKeysRotate(t *testing.T) {
	for name, more := range map[string][]string{"SQLite": nil, "PostgreSQL": {"--database-url", pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			flags := newPlace(t, dir, "place", more...)
			file := filepath.Join(dir, "place", "master.key")
			c := readJSON(t, filepath.Join(dir, "place", "bootstrap.json"))
			oldFile, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var first string // the token of the first step
			var user string
			inService := func(t *testing.T) *running {
				t.Helper()
				s := start(t, flags...)
				host, token := hostOf(t, c.BaseURL), s.token(c)
				if first == "" {
					first = token
				}
				if status, answer := s.do("GET", "http://"+s.Addr()+"/api/v1/resource-types", host, first, ""); status != 200 {
					t.Errorf("the first token: %d %v", status, answer)
				}
				if a, b := keyOf(t, token), keyOf(t, first); a != b {
					t.Errorf("the signing key %s, want %s", a, b)
				}
				id := createOnce(t, s, host, token)
				if user == "" {
					user = id
				}
				if id != user {
					t.Errorf("the stored response has the user %v, want %v", id, user)
				}
				return s
			}
			rotate := func(want string) {
				t.Helper()
				if out, err := command(t, append([]string{"keys", "rotate"}, flags...)...); err != nil || !strings.Contains(out, want) {
					t.Fatalf("%q, %v, want %q", out, err, want)
				}
			}
			stop := func(s *running) {
				t.Helper()
				if err := s.wait(); err != nil {
					t.Fatal(err)
				}
			}
			s := inService(t)
			if name == "PostgreSQL" {
				rotate("was added")
				stop(s)
				s = inService(t)
			}
			rotate("encrypts from now on")
			if _, err := command(t, append([]string{"keys", "rotate"}, flags...)...); err == nil || !strings.Contains(err.Error(), "restart") {
				t.Errorf("the next step without a restart: %v", err)
			}
			stop(s)
			s = inService(t)
			until(t, func() bool {
				out, err := command(t, append([]string{"keys", "rotate"}, flags...)...)
				if err != nil && !strings.Contains(err.Error(), "still encrypted") {
					t.Fatal(err)
				}
				return err == nil && strings.Contains(out, "is left")
			})
			if out, err := command(t, append([]string{"keys", "status"}, flags...)...); err != nil || !strings.Contains(out, " encrypts: ") || !strings.Contains(out, "is not in the file: 0 values") {
				t.Errorf("%q, %v", out, err)
			}
			stop(s)
			s = inService(t)
			stop(s)
			if out, err := command(t, append([]string{"keys", "status"}, flags...)...); err != nil || !strings.Contains(out, "was replaced: 0 values") {
				t.Errorf("%q, %v", out, err)
			}
			newFile, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, keys := range []string{string(oldFile), string(oldFile) + string(newFile)} {
				if err := os.WriteFile(file, []byte(keys), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := command(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, flags...)...)
				if !errors.Is(err, masterkey.ErrRetired) {
					t.Errorf("the old key: %v, want %v", err, masterkey.ErrRetired)
				}
				if out, err := command(t, append([]string{"doctor"}, flags...)...); err == nil || !strings.Contains(out, "use the key that replaced it") {
					t.Errorf("doctor: %q, %v", out, err)
				}
			}
		})
	}
}

// until waits until a condition holds.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition does not hold after a minute")
		}
	}
}

// keyOf returns the header of a token, which names its key.
func keyOf(t *testing.T, token string) string {
	t.Helper()
	header, _, ok := strings.Cut(token, ".")
	if !ok {
		t.Fatalf("%q is not a JWT", token)
	}
	return header
}

// createOnce creates a user with an idempotency key that is always the same, and returns its id.
func createOnce(t *testing.T, s *running, host, token string) (userID string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Addr()+"/api/v1/users", strings.NewReader(`{"email":"once@example.com"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "once")
	resp, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusCreated || answer.Data.ID == "" {
		t.Fatalf("create user: %d %v, %v", resp.StatusCode, answer, err)
	}
	return answer.Data.ID
}

// A file with the keys in the order of an earlier step loses none of them.
func TestNextKeys(t *testing.T) {
	first, second := newTestKey(t), newTestKey(t)
	file := first.WithOthers(second)
	for name, test := range map[string]struct {
		uses []masterkey.Use
		want string
	}{
		"order of an earlier step": {[]masterkey.Use{{InFile: true, Known: true}, {InFile: true, Known: true, Newest: true}}, "must be the first one"},
		"values are left":          {[]masterkey.Use{{InFile: true, Known: true, Newest: true}, {InFile: true, Known: true, Values: 3}}, "3 values are still encrypted"},
		"not started yet":          {[]masterkey.Use{{InFile: true}, {InFile: true, Known: true, Newest: true}}, "restart all of them"},
		"a key is missing":         {[]masterkey.Use{{InFile: true, Known: true}, {InFile: true, Known: true}, {Known: true, Newest: true}}, "lacks the key"},
	} {
		if keys, text, err := nextKeys(file, test.uses, false); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d keys, %q, %v, want the error %q", name, len(keys), text, err, test.want)
		}
	}
}

func newTestKey(t *testing.T) *seal.Key {
	t.Helper()
	key, err := seal.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}
