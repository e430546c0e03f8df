package main

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/signature"
)

var newPicture = flag.String("picture", "", "make a picture of the tables of this version, for TestReleasedSchemas")

const picturesDir = "testdata/schemas"

// picture is what is known about the data in a picture: a database of an earlier version, as SQL
// statements, in the folder of the version.
type picture struct {
	At            time.Time // when it was made
	Credentials   credentials
	App           app    // with a refresh token, and a session
	TOTP          string // the key of the second factor of ann@example.com, who has the password of App
	BackupCodes   []string
	Keyed         answered // to a request with the idempotency key "picture"
	Receiver      string   // of a subscription with SigningSecret; its delivery about the group Pending failed
	SigningSecret string
	Pending       string
	Token         string // of consistency
	Events        []string
	Served        []answered
}

// answered is a request with its response.
type answered struct {
	Method, Path string
	Body         any `json:",omitempty"`
	Status       int
	Data         any
}

func (p *process) answer(t *testing.T, token, key, method, path string, body any) (a answered, replayed bool) {
	t.Helper()
	a = answered{Method: method, Path: path, Body: body}
	status, replayed, text := p.send(token, key, method, path, body)
	var of struct{ Data any }
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	a.Status, a.Data = status, of.Data
	return a, replayed
}

// pictureFlags are the settings of a deployment in a folder, without its database.
func pictureFlags(dir string) []string {
	return []string{"--data-dir", dir, "--control-url", "http://control.localhost:8080"}
}

// Tables of each earlier version are brought to the newest one, and everything in them is served. A
// migration that was edited, and not added, makes other tables of them than of an empty database.
//
// The pictures are made once for each release, with the flag -picture.
func TestReleasedSchemas(t *testing.T) {
	if *newPicture != "" {
		makePicture(t, filepath.Join(picturesDir, *newPicture))
		return
	}
	pictures, err := filepath.Glob(picturesDir + "/*")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("there are no pictures: %v", err)
	}
	for _, dir := range pictures {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Run("SQLite", func(t *testing.T) {
				pic, statements, received := readPicture(t, dir, "sqlite")
				place, file := openPicture(t, dir), filepath.Join(t.TempDir(), "backup.db")
				restoreSQLite(t, statements, file)
				if out, err := command(t, append([]string{"restore", file}, place...)...); err != nil {
					t.Fatal(out, err)
				}
				serves(t, pic, place, pictureFlags(t.TempDir()), received)
			})
			t.Run("PostgreSQL", func(t *testing.T) {
				pic, statements, received := readPicture(t, dir, "postgres")
				place, fresh := pgtest.URL(t), pgtest.URL(t)
				restorePostgres(t, statements, place)
				serves(t, pic, append(openPicture(t, dir), "--database-url", place), append(pictureFlags(t.TempDir()), "--database-url", fresh), received)
			})
		})
	}
}

// openPicture returns the settings of a deployment with the master key of a picture.
func openPicture(t *testing.T, dir string) (flags []string) {
	t.Helper()
	place := t.TempDir()
	key, err := os.ReadFile(filepath.Join(dir, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(place, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pictureFlags(place)
}

// microseconds matches an instant in microseconds since 1970, between 2017 and 2096.
var microseconds = regexp.MustCompile(`\b(1[5-9]|[23]\d)\d{14}\b`)

// readPicture returns a picture and its statements, as if it had been made ten minutes ago: what expires
// has not expired, and what was to be repeated is due. Received is told when the delivery arrives.
func readPicture(t *testing.T, dir, name string) (pic picture, statements string, received <-chan struct{}) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &pic)
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(filepath.Join(dir, name+".sql")); err != nil {
		t.Fatal(err)
	}
	passed := time.Now().Add(-10 * time.Minute).Sub(pic.At).Microseconds()
	statements = microseconds.ReplaceAllStringFunc(string(text), func(number string) string {
		at, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatInt(at+passed, 10)
	})
	url, received := receivePending(t, pic)
	return pic, strings.ReplaceAll(statements, pic.Receiver, url), received
}

// receivePending receives the deliveries of the subscription in a picture.
func receivePending(t *testing.T, pic picture) (url string, received <-chan struct{}) {
	t.Helper()
	secret, err := signature.ParseSecret(pic.SigningSecret)
	if err != nil {
		t.Fatal(err)
	}
	pending := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = signature.Verify(r.Header, body, secret, time.Now(), signature.Tolerance)
		}
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), pic.Pending) {
			pending <- struct{}{}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, pending
}

func restoreSQLite(t *testing.T, statements, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "BEGIN;\n"+statements+"COMMIT;"); err != nil {
		t.Fatal(err)
	}
}

func restorePostgres(t *testing.T, statements, database string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// serves verifies that a server on a picture serves what is in it.
func serves(t *testing.T, pic picture, place, fresh []string, received <-chan struct{}) {
	for _, flags := range [][]string{place, fresh} {
		if _, err := command(t, append([]string{"migrate"}, flags...)...); err != nil {
			t.Fatal(err)
		}
	}
	got, want := tables(t, place), tables(t, fresh)
	for _, what := range slices.Sorted(maps.Keys(want)) {
		if got[what] != want[what] {
			t.Errorf("%s is %q after the migrations of the picture, and %q in a new database: add a migration, and leave released ones as they are", what, got[what], want[what])
		}
		delete(got, what)
	}
	if len(got) > 0 {
		t.Errorf("no longer in a new database: %v", slices.Sorted(maps.Keys(got)))
	}

	c := pic.Credentials
	s := start(t, append(place, "--allow-insecure-targets")...)
	p := &process{base: "http://" + s.Addr(), host: hostOf(t, c.BaseURL)}
	token := p.token(t, c)
	for _, before := range pic.Served {
		now, _ := p.answer(t, token, "", before.Method, before.Path, before.Body)
		if now.Status != before.Status {
			t.Errorf("%s %s: %d, and it was %d", before.Method, before.Path, now.Status, before.Status)
		} else if different := differs(before.Data, now.Data); different != "" {
			t.Errorf("%s %s: %s", before.Method, before.Path, different)
		}
	}

	// Users, their second factors, sessions and refresh tokens.
	a := pic.App
	if id := p.call(t, a.Session, "GET", "me/profile", nil)["id"]; id != a.User {
		t.Errorf("the session is that of %v", id)
	}
	if err := p.refresh(&a); err != nil {
		t.Error(err)
	}
	if status := p.signIn(t, a.Email, a.Password)["status"]; status != "complete" {
		t.Errorf("sign-in: %v", status)
	}
	code, err := totp.GenerateCode(pic.TOTP, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, proof := range []map[string]any{{"kind": "totp", "code": code}, {"kind": "backup_code", "code": pic.BackupCodes[0]}} {
		proof["mfa_token"] = p.signIn(t, "ann@example.com", a.Password)["mfa_token"]
		if status := p.call(t, " ", "POST", "auth/mfa/verify", proof)["status"]; status != "complete" {
			t.Errorf("sign-in by %s: %v", proof["kind"], status)
		}
	}
	s.signIn(t, c) // the owner, at the control plane

	again, replayed := p.answer(t, token, "picture", pic.Keyed.Method, pic.Keyed.Path, pic.Keyed.Body)
	if !replayed || !reflect.DeepEqual(again, pic.Keyed) {
		t.Errorf("a request under a key that was used: %+v (replayed: %t)", again, replayed)
	}
	if err := p.writeAndCheck(token, "new"); err != nil {
		t.Error(err)
	}
	select {
	case <-received:
	case <-time.After(time.Minute):
		t.Error("the delivery that had failed does not arrive")
	}
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	events := eventIDs(t, place)
	if len(events) <= len(pic.Events) || !slices.Equal(events[:len(pic.Events)], pic.Events) {
		t.Errorf("the events are %v, and were %v", events, pic.Events)
	}
}

// differs says where a value lacks something that it had before. Instants may have changed, and
// members and built-in items may be new.
func differs(before, now any) string {
	switch before := before.(type) {
	case map[string]any:
		members, ok := now.(map[string]any)
		if !ok {
			return fmt.Sprintf("%v, and it was an object", now)
		}
		for name, value := range before {
			if different := differs(value, members[name]); different != "" {
				return name + "." + different
			}
		}
		return ""
	case []any:
		items, ok := now.([]any)
		if len(items) > len(before) {
			items = slices.DeleteFunc(slices.Clone(items), func(item any) bool {
				o, _ := item.(map[string]any)
				return o["built_in"] == true && !slices.ContainsFunc(before, func(known any) bool { return differs(known, item) == "" })
			})
		}
		if !ok || len(items) != len(before) {
			return fmt.Sprintf("%v, and it was %v", now, before)
		}
		for i := range before {
			if different := differs(before[i], items[i]); different != "" {
				return strconv.Itoa(i) + "." + different
			}
		}
		return ""
	case string:
		if _, err := time.Parse(time.RFC3339, before); err == nil {
			return ""
		}
	}
	if !reflect.DeepEqual(before, now) {
		return fmt.Sprintf("%v, and it was %v", now, before)
	}
	return ""
}

// eventIDs returns the ids of all events of the tenants, in their order.
func eventIDs(t *testing.T, flags []string) (ids []string) {
	t.Helper()
	out, err := command(t, append([]string{"audit", "export"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(out) {
		var e struct {
			EventID string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.EventID)
	}
	return ids
}

// What a database consists of: names, each with a definition.
const (
	tablesSQLite   = `SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL`
	tablesPostgres = `
		SELECT 'column ' || table_name || '.' || column_name, data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, '')
		FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT 'constraint ' || conrelid::regclass::text || ' ' || conname, pg_get_constraintdef(oid)
		FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT 'options ' || relname, array_to_string(reloptions, ',') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL`
)

// tables returns what the database of a deployment consists of, and its migrations.
func tables(t *testing.T, flags []string) map[string]string {
	t.Helper()
	config, err := resolve(t, flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: config.DatabaseURL, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]string{}
	read := func(query string) {
		t.Helper()
		rows, err := db.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name, definition string
			if err := rows.Scan(&name, &definition); err != nil {
				t.Fatal(err)
			}
			all[name] = definition
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	query := tablesPostgres
	if db.Dialect() == sqldb.SQLite {
		query = tablesSQLite
	}
	read(query)
	versions, err := db.TablesWith(t.Context(), "version_id")
	if err != nil || len(versions) < 20 {
		t.Fatalf("%v, %v", versions, err)
	}
	for _, table := range versions {
		read(fmt.Sprintf(`SELECT 'migration %s ' || CAST(version_id AS TEXT), '' FROM %[1]s`, table.Name))
	}
	return all
}

// makePicture makes a picture of the tables of this version, on each database.
func makePicture(t *testing.T, dir string) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sqlite", "postgres"} {
		flags := openPicture(t, dir)
		database := filepath.Join(flags[1], "stonetown.db")
		if name == "postgres" {
			database = pgtest.URL(t)
			flags = append(flags, "--database-url", database)
		}
		file := filepath.Join(t.TempDir(), "bootstrap.json")
		if _, err := command(t, append([]string{"bootstrap", "--out", file}, flags...)...); err != nil {
			t.Fatal(err)
		}
		pic := fill(t, readJSON(t, file), flags)
		text, err := json.MarshalIndent(pic, "", " ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		dump := dumpSQLite
		if name == "postgres" {
			dump = dumpPostgres
		}
		if err := os.WriteFile(filepath.Join(dir, name+".sql"), []byte(dump(t, database)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fill adds data to a new deployment.
func fill(t *testing.T, c credentials, flags []string) picture {
	pic := picture{At: time.Now().UTC(), Credentials: c}
	s := start(t, append(flags, "--allow-insecure-targets")...)
	p := &process{base: "http://" + s.Addr(), host: hostOf(t, c.BaseURL)}
	token := p.token(t, c)
	type object = map[string]any

	this := object{"kind": "this"}
	p.call(t, token, "POST", "resource-types/apply", object{"types": []any{
		object{"name": "folder", "relations": []any{
			object{"name": "owner"}, object{"name": "viewer", "rewrites": []any{this, object{"kind": "computed", "relation": "owner"}}},
		}, "conditions": []any{object{
			"name": "from_office", "expression": "address.in_cidr(office)", "parameters": object{"address": "ipaddress", "office": "string"},
		}}},
		object{"name": "document", "relations": []any{
			object{"name": "parent", "subjects": []string{"folder"}},
			object{"name": "banned"},
			object{"name": "viewer", "rewrites": []any{object{"kind": "exclusion", "base": object{"kind": "union", "children": []any{
				this, object{"kind": "tuple_to_userset", "tupleset": "parent", "computed": "viewer"},
			}}, "subtract": object{"kind": "computed", "relation": "banned"}}}},
		}},
	}})
	user := func(id string) object { return object{"type": "user", "id": id} }
	p.call(t, token, "POST", "resources", object{"type": "document", "external_id": "plans/q1 draft", "attributes": object{"pages": 3}})
	write := func(resourceType, id, relation string, subject object, more object) object {
		op := object{"op": "create", "resource": object{"type": resourceType, "external_id": id}, "relation": relation, "subject": subject}
		maps.Copy(op, more)
		return op
	}
	p.call(t, token, "POST", "resources/relations/bulk", object{"operations": []any{
		write("folder", "2026", "owner", user("ann"), nil), write("folder", "2026", "viewer", user("gone"), nil),
		write("folder", "2026", "viewer", user("cid"), object{"expires_at": "2090-12-31T23:59:59Z", "condition": object{"name": "from_office", "context": object{"office": "192.0.2.0/24"}}}),
		write("document", "plans/q1 draft", "parent", object{"type": "folder", "id": "2026"}, nil),
		write("document", "plans/q1 draft", "viewer", user("eve"), nil), write("document", "plans/q1 draft", "banned", user("eve"), nil),
	}})
	if status, _, text := p.send(token, "", "DELETE", "resources/folder/2026/relations", object{"subject": user("gone"), "relation": "viewer"}); status != 204 {
		t.Fatal(text)
	}

	pic.App = *p.newApp(t, token)
	ann := p.call(t, token, "POST", "users", object{"email": "ann@example.com", "name": "Ann", "email_verified": true, "password": pic.App.Password, "attributes": object{"desk": 4}})["id"]
	session := p.signIn(t, "ann@example.com", pic.App.Password)["session_token"].(string)
	begun := p.call(t, session, "POST", "me/mfa/factors/totp/begin", object{"label": "App"})
	pic.TOTP = begun["secret"].(string)
	code, err := totp.GenerateCode(pic.TOTP, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.call(t, session, "POST", "me/mfa/factors/totp/complete", object{"ceremony_id": begun["ceremony_id"], "code": code})
	for _, code := range p.call(t, session, "POST", "me/mfa/backup-codes", nil)["codes"].([]any) {
		pic.BackupCodes = append(pic.BackupCodes, code.(string))
	}

	p.call(t, token, "POST", "scopes", object{"name": "notes:read", "description": "Read notes", "entitlement": "group"})
	group := p.call(t, token, "POST", "groups", object{"slug": "eng", "name": "Engineering", "scopes": []string{"notes:read"}})["id"].(string)
	p.call(t, token, "POST", "groups/"+group+"/members", object{"user_id": ann})
	p.call(t, token, "POST", "resources/folder/2026/relations", object{"subject": object{"type": "group", "id": group, "relation": "member"}, "relation": "viewer"})
	p.call(t, token, "POST", "federation/connections", object{
		"kind": "social.google", "slug": "google", "name": "Google", "client_id": "stonetown", "client_secret": "hush",
	})
	p.call(t, token, "POST", "applications", object{"name": "Wiki", "type": "saml", "entity_id": "https://wiki.example.com/saml", "acs_url": "https://wiki.example.com/saml/acs"})
	p.call(t, token, "PATCH", "settings", object{"dcr_mode": "open"})

	failing := httptest.NewServer(http.NotFoundHandler())
	defer failing.Close()
	subscription := p.call(t, token, "POST", "webhooks/subscriptions", object{"name": "hook", "url": failing.URL, "events": []string{"group.created"}})
	hook := "webhooks/subscriptions/" + subscription["id"].(string)
	pic.Receiver, pic.SigningSecret = failing.URL, subscription["signing_secret"].(string)
	pic.Pending = p.call(t, token, "POST", "groups", object{"slug": "ops", "name": "Operations"})["id"].(string)
	until(t, func() bool {
		deliveries, _ := p.answer(t, token, "", "GET", hook+"/deliveries", nil)
		text, err := json.Marshal(deliveries.Data)
		return err == nil && strings.Contains(string(text), `"retrying"`)
	})
	pic.Keyed, _ = p.answer(t, token, "picture", "POST", "groups", object{"slug": "once", "name": "Once"})
	status, _, text := p.send(token, "", "POST", "resources/document/plans%2Fq1%20draft/relations", object{"subject": user("late"), "relation": "viewer"})
	var written struct {
		Meta struct {
			Token string `json:"consistency_token"`
		}
	}
	if err := json.Unmarshal([]byte(text), &written); status != 201 || err != nil {
		t.Fatal(text)
	}
	pic.Token = written.Meta.Token

	for _, path := range []string{
		"users", "users/" + pic.App.User, "users/" + ann.(string), "users/" + ann.(string) + "/mfa/factors", "groups", "groups/" + group, "groups/" + group + "/members", "scopes",
		"applications", "federation/connections", "settings", "settings/signing-keys", "settings/saml-certificates", "resource-types",
		"relations?resource_type=document", "relations?resource_type=folder", "resources/document/" + url.PathEscape("plans/q1 draft"),
		hook + "/dlq",
	} {
		served, _ := p.answer(t, token, "", "GET", path, nil)
		pic.Served = append(pic.Served, served)
	}
	for _, subject := range []object{user("ann"), user("eve"), user("cid"), user("late"), user("gone"), user(ann.(string)), user("none")} {
		for _, resource := range []object{{"type": "folder", "external_id": "2026"}, {"type": "document", "external_id": "plans/q1 draft"}} {
			served, _ := p.answer(t, token, "", "POST", "resources/check", object{
				"subject": subject, "action": "view", "resource": resource, "context": object{"address": "192.0.2.7"}, "consistency_token": pic.Token,
			})
			pic.Served = append(pic.Served, served)
		}
	}
	served, _ := p.answer(t, token, "", "POST", "resources/list-resources", object{"subject": user("ann"), "action": "view", "type": "document"})
	pic.Served = append(pic.Served, served)
	for _, served := range pic.Served {
		if served.Status != 200 {
			t.Fatalf("%s %s: %d", served.Method, served.Path, served.Status)
		}
	}
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	pic.Events = eventIDs(t, flags)
	return pic
}

// dumpSQLite returns the statements that make a database anew.
func dumpSQLite(t *testing.T, file string) string {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	read := func(query string) (lines []string) {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	var dump strings.Builder
	const own = ` FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' `
	for _, statement := range read(`SELECT sql` + own + `ORDER BY type <> 'table', name`) {
		dump.WriteString(statement + ";\n")
	}
	for _, table := range read(`SELECT name` + own + `AND type = 'table' ORDER BY name`) {
		columns := read(`SELECT 'quote(' || name || ')' FROM pragma_table_info('` + table + `') ORDER BY cid`)
		for _, row := range read(`SELECT ` + strings.Join(columns, ` || ',' || `) + ` FROM ` + table) {
			fmt.Fprintf(&dump, "INSERT INTO %s VALUES (%s);\n", table, row)
		}
	}
	return dump.String()
}

// noise are the lines of pg_dump that other versions of PostgreSQL do not understand, or nobody needs.
var noise = regexp.MustCompile(`(?m)^(--( .*)?|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)?\n`)

func dumpPostgres(t *testing.T, database string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--dbname", database)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, out)
	}
	return noise.ReplaceAllString(string(out), "")
}
