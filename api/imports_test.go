package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"

	"stonetown/identity"
	"stonetown/identity/userimport"
)

const importPath = "/api/v1/users/bulk-import"

// upload sends rows with optional headers.
func (c *client) upload(t testing.TB, body []byte, header http.Header) answer {
	t.Helper()
	h := http.Header{"Content-Type": {"application/x-ndjson"}}
	for name, values := range header {
		h[name] = values
	}
	return c.send(t, "POST", importPath, h, body)
}

func rows(t testing.TB, of ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, row := range of {
		if text, ok := row.(string); ok {
			b.WriteString(text + "\n")
		} else if err := json.NewEncoder(&b).Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// ended waits for the end of a job.
func ended(t testing.TB, c *client, id any) answer {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a := c.want(t, 200, "", "GET", fmt.Sprint(importPath, "/", id), nil)
		if a.data()["finished_at"] != nil {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("the import does not end: %s", a.text)
		}
	}
}

func importUsers(t *testing.T, w *world, c *client) {
	crew := group(t, c, "imported")
	c.want(t, 201, "", "POST", usersPath, object{"email": "taken@example.com"})
	hash := func(algorithm, value string) object { return object{"algorithm": algorithm, "value": value} }
	b, err := bcrypt.GenerateFromPassword([]byte("bcrypt password"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawStdEncoding.EncodeToString
	s, err := scrypt.Key([]byte("scrypt password"), []byte("saltsalt"), 1<<10, 8, 1, 32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pbkdf2.Key(sha256.New, "pbkdf2 password", []byte("saltsalt"), 1000, 32)
	if err != nil {
		t.Fatal(err)
	}
	p512, err := pbkdf2.Key(sha512.New, "pbkdf2 password", []byte("saltsalt"), 1000, 64)
	if err != nil {
		t.Fatal(err)
	}
	moved := c.upload(t, rows(t, object{
		"email": "p@example.com", "disabled": true,
		"password_hash": hash("pbkdf2_sha512", "$pbkdf2-sha512$i=1000$"+b64([]byte("saltsalt"))+"$"+b64(p512)),
	}), nil)
	equal(t, "a disabled user", ended(t, c, moved.data()["id"]).data()["imported"], 1.0)
	disabled := c.want(t, 200, "", "GET", usersPath+"?email=p@example.com", nil).list()[0].(map[string]any)
	equal(t, "state", disabled["state"], "disabled")
	c.with("").want(t, 403, "user_disabled", "POST", authPath+"/sign-in", object{"email": "p@example.com", "password": "pbkdf2 password"})
	c.want(t, 200, "", "POST", fmt.Sprint(usersPath, "/", disabled["id"], "/enable"), nil)
	signIn(t, c, "p@example.com", "pbkdf2 password", "complete")
	before := len(w.events(t, c, 0))
	body := rows(t,
		object{"email": "a@example.com", "name": "A", "email_verified": true, "attributes": object{"x": 1}, "password": "plain password"},
		object{"email": "b@example.com", "password_hash": hash("bcrypt", string(b)), "groups": []any{"imported", "imported"}},
		"",
		object{"email": "c@example.com", "password_hash": hash("scrypt", "$scrypt$ln=10,r=8,p=1$"+b64([]byte("saltsalt"))+"$"+b64(s))},
		object{"email": "d@example.com", "password_hash": hash("pbkdf2_sha256", "pbkdf2_sha256$1000$saltsalt$"+base64.StdEncoding.EncodeToString(p))},
		object{"email": "e@example.com", "password_hash": hash("pbkdf2_sha256", "$pbkdf2-sha256$i=1000$"+b64([]byte("saltsalt"))+"$"+b64(p)), "groups": []any{"imported"}},
		`{"email":`, `[]`, `{"email":1}`, `{"name":"nobody"}`,
		object{"email": "not an address"},
		object{"email": "TAKEN@example.com"},
		object{"email": "A@example.com"}, // twice
		object{"email": "f@example.com", "password": "short"},
		object{"email": "g@example.com", "password_hash": hash("md5", "x")},
		object{"email": "h@example.com", "password": "plain password", "password_hash": hash("bcrypt", string(b))},
		object{"email": "i@example.com", "groups": []any{"nothing"}},
		`{"email":"j@example.com","name":"`+strings.Repeat("x", userimport.MaxLine)+`"}`,
		object{"email": "k@example.com", "name": strings.Repeat("x", 501)},
	)
	body = append(body, `{"email":"last@example.com"}`...) // without an end of line
	a := c.upload(t, body, http.Header{"Idempotency-Key": {"import"}})
	equal(t, "status", a.status, 202)
	id := a.data()["id"]
	equal(t, "location", a.header.Get("Location"), fmt.Sprint(importPath, "/", id))
	equal(t, "job id", a.data()["job_id"], id)
	equal(t, "total", a.data()["total"], 19.0)

	done := ended(t, c, id).data()
	equal(t, "state", done["state"], "completed")
	equal(t, "imported", done["imported"], 6.0)
	equal(t, "failed", done["failed"], 13.0)
	equal(t, "truncated", done["errors_truncated"], false)
	var failures []string
	for _, item := range done["errors"].([]any) {
		e := item.(map[string]any)
		failures = append(failures, fmt.Sprint(e["line"], " ", e["code"], " ", e["email"]))
	}
	equal(t, "errors", failures, []string{
		"7 invalid_json <nil>", "8 validation_failed <nil>", "9 validation_failed <nil>", "10 validation_failed <nil>",
		"11 email_invalid not an address", "12 user_exists TAKEN@example.com", "13 user_exists A@example.com",
		"14 password_policy_violation f@example.com", "15 validation_failed g@example.com", "16 validation_failed h@example.com",
		"17 group_not_found i@example.com", "18 line_too_long <nil>", "19 validation_failed k@example.com",
	})
	d := w.config.Users.(*identity.Directory)
	tenant, err := w.tenants.TenantByHost(context.Background(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	for email, password := range map[string]string{
		"a@example.com": "plain password", "b@example.com": "bcrypt password", "c@example.com": "scrypt password",
		"d@example.com": "pbkdf2 password", "e@example.com": "pbkdf2 password", "p@example.com": "pbkdf2 password",
	} {
		if _, err := d.VerifyPassword(context.Background(), tenant.ID, email, password); err != nil {
			t.Errorf("%s: %v", email, err)
		}
		if _, err := d.VerifyPassword(context.Background(), tenant.ID, email, password+"x"); !errors.Is(err, identity.ErrUserNotFound) {
			t.Errorf("%s, wrong password: %v", email, err)
		}
	}
	equal(t, "members", c.want(t, 200, "", "GET", groupsPath+"/"+crew, nil).data()["member_count"], 2.0)
	first := c.want(t, 200, "", "GET", usersPath+"?email=a@example.com", nil).list()[0].(map[string]any)
	equal(t, "state", first["state"], "active")

	count := map[string]int{}
	for _, e := range w.events(t, c, before) {
		count[string(e.Type)]++
		if e.Origin.RequestID != a.header.Get("X-Request-Id") || e.Origin.Actor.ID == "" {
			t.Errorf("%s: origin %+v", e.Type, e.Origin)
		}
		if strings.Contains(string(e.Data), "password\"") || strings.Contains(string(e.Data), "$2") {
			t.Errorf("%s tells a secret: %s", e.Type, e.Data)
		}
	}
	equal(t, "events", count, map[string]int{"user.created": 6, "group.member_added": 2, "user.import_completed": 1})

	// The same request again is the same job; without its key it is another.
	again := c.upload(t, body, http.Header{"Idempotency-Key": {"import"}})
	equal(t, "again", again.data()["id"], id)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(body)
	z.Close()
	other := c.upload(t, zipped.Bytes(), http.Header{"Content-Encoding": {"gzip"}})
	equal(t, "status", other.status, 202)
	done = ended(t, c, other.data()["id"]).data()
	equal(t, "imported by another", done["imported"], 0.0)
	equal(t, "failed in another", done["failed"], 19.0)

	stranger := w.tenant(t, "import-other")
	stranger.want(t, 404, "job_not_found", "GET", fmt.Sprint(importPath, "/", id), nil)
	stranger.want(t, 404, "job_not_found", "POST", fmt.Sprint(importPath, "/", id, "/cancel"), nil)
	// The list has the newest first, a page at a time, and not those of other tenants.
	var listed []any
	for cursor := ""; ; {
		page := c.want(t, 200, "", "GET", importPath+"?limit=1"+cursor, nil)
		listed = append(listed, page.list()[0].(map[string]any)["id"])
		next, more := page.meta("next_cursor").(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	equal(t, "listed", listed, []any{other.data()["id"], id, moved.data()["id"]})
	newest := c.want(t, 200, "", "GET", importPath, nil).list()[0].(map[string]any)
	equal(t, "the newest", []any{newest["state"], newest["total"], newest["imported"], newest["failed"], newest["finished_at"] != nil}, []any{"completed", 19.0, 0.0, 19.0, true})
	equal(t, "of another tenant", len(stranger.want(t, 200, "", "GET", importPath, nil).list()), 0)
	c.want(t, 400, "cursor_invalid", "GET", importPath+"?cursor=x", nil)
	c.want(t, 400, "validation_failed", "GET", importPath+"?limit=0", nil)
	equal(t, "cancelled too late", c.want(t, 200, "", "POST", fmt.Sprint(importPath, "/", id, "/cancel"), nil).data()["state"], "completed")

	// A sign-in replaces a foreign hash by one with the product's parameters.
	for email, password := range map[string]string{"b@example.com": "bcrypt password", "c@example.com": "scrypt password", "d@example.com": "pbkdf2 password"} {
		for range 2 {
			signIn(t, c, email, password, "email_verification_required")
			if u, err := d.UserByEmail(context.Background(), tenant.ID, email); err != nil || !u.PasswordHash.Current() {
				t.Errorf("%s: the hash is still the other system's (%v)", email, err)
			}
		}
	}
	verified := c.send(t, "POST", importPath+"?send_verification=true", http.Header{"Content-Type": {"application/x-ndjson"}},
		rows(t, object{"email": "verify@example.com"}, object{"email": "verified@example.com", "email_verified": true}))
	ended(t, c, verified.data()["id"])
	w.mailbox.take(t, "verify@example.com", "Confirm your e-mail address")
	if n := len(w.mailbox.items["verified@example.com"]) + len(w.mailbox.items["last@example.com"]); n > 0 {
		t.Errorf("%d unrequested mails", n)
	}
}

// importRefused sends invalid imports.
func importRefused(t *testing.T, w *world, c *client) {
	row := rows(t, object{"email": "a@example.com"})
	a := c.upload(t, row, http.Header{"Content-Type": {"application/json"}})
	equal(t, "media type", fmt.Sprint(a.status, a.code()), "415unsupported_media_type")
	a = c.upload(t, row, http.Header{"Content-Encoding": {"br"}})
	equal(t, "encoding", fmt.Sprint(a.status, a.code()), "415unsupported_media_type")
	a = c.upload(t, row, http.Header{"Content-Encoding": {"gzip"}})
	equal(t, "no gzip", fmt.Sprint(a.status, a.code()), "400validation_failed")
	a = c.upload(t, []byte("\n \n"), nil)
	equal(t, "no rows", fmt.Sprint(a.status, a.code()), "400validation_failed")
	a = c.upload(t, append(row, bytes.Repeat([]byte("{}\n"), userimport.MaxRows)...), nil)
	equal(t, "too many rows", fmt.Sprint(a.status, a.code()), "413payload_too_large")
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(row)
	z.Write(bytes.Repeat([]byte("\n"), 4<<20))
	z.Close()
	a = c.upload(t, bomb.Bytes(), http.Header{"Content-Encoding": {"gzip"}})
	equal(t, "a bomb", fmt.Sprint(a.status, a.code()), "413payload_too_large")
	a = c.upload(t, row, http.Header{"Idempotency-Key": {""}})
	equal(t, "no key", fmt.Sprint(a.status, a.code()), "400idempotency_key_invalid")
	equal(t, "users", len(c.want(t, 200, "", "GET", usersPath, nil).list()), 0)
	reader := c.with(w.token(t, c, w.application(t, c, "users:read")))
	equal(t, "without the right", reader.upload(t, row, nil).status, 403)
	var left int64
	for _, table := range []string{"user_imports", "user_import_chunks"} {
		var n int64
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM `+table+` WHERE NOT EXISTS (SELECT 1 FROM users WHERE users.tenant_id = `+table+`.tenant_id)
			AND EXISTS (SELECT 1 FROM tenants WHERE tenants.id = `+table+`.tenant_id AND tenants.slug = 'import-refused')`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		left += n
	}
	equal(t, "rows left", left, int64(0))
}

// importCancelled cancels an import, which then stops.
func importCancelled(t *testing.T, _ *world, c *client) {
	var of []any
	for i := range 2000 {
		of = append(of, object{"email": fmt.Sprintf("u%d@example.com", i), "password": "a password to hash"})
	}
	id := c.upload(t, rows(t, of...), nil).data()["id"]
	a := c.want(t, 200, "", "POST", fmt.Sprint(importPath, "/", id, "/cancel"), nil)
	equal(t, "state", a.data()["state"], "cancelled")
	imported := a.data()["imported"].(float64)
	if imported >= 2000 {
		t.Error("it was done before")
	}
	time.Sleep(300 * time.Millisecond)
	equal(t, "later", c.want(t, 200, "", "GET", fmt.Sprint(importPath, "/", id), nil).data()["imported"], imported)
	c.want(t, 404, "job_not_found", "GET", importPath+"/job_nothing", nil)
	c.want(t, 404, "job_not_found", "POST", importPath+"/job_nothing/cancel", nil)
}
