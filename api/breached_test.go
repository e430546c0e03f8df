package api_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

// ranges is a service with some breached passwords.
type ranges struct {
	mu     sync.Mutex
	stolen []string // digests in hexadecimal digits
	asked  map[string]int
	answer map[string]http.HandlerFunc // by prefix, in its place
}

func (s *ranges) start(t testing.TB) (serviceURL string) {
	s.asked, s.answer = map[string]int{}, map[string]http.HandlerFunc{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prefix := strings.TrimPrefix(r.URL.Path, "/range/")
		s.mu.Lock()
		s.asked[prefix]++
		answer := s.answer[prefix]
		if answer == nil {
			for _, digest := range s.stolen {
				if rest, ok := strings.CutPrefix(digest, prefix); ok {
					fmt.Fprintf(w, "%s:%d\r\n", rest, 3)
				}
			}
			fmt.Fprintf(w, "%035X:0\r\n", len(s.asked))
		}
		s.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/range/"
}

func digest(password string) string {
	sum := sha1.Sum([]byte(password))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// steal adds a password to the breached ones.
func (s *ranges) steal(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stolen = append(s.stolen, digest(password))
}

// answers replaces the handler for a password; nil restores the service.
func (s *ranges) answers(password string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer[digest(password)[:5]] = h
}

// questions counts the requests for the range of a password.
func (s *ranges) questions(password string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[digest(password)[:5]]
}

// waitFor waits until a condition holds.
func waitFor(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// told returns the data and the actors of the events of a type.
func (w *world) told(t testing.TB, c *client, typ eventlog.Type) (told []object) {
	t.Helper()
	for _, e := range w.events(t, c, 0) {
		if e.Type == typ {
			told = append(told, object{"actor": e.Origin.Actor.Type + " " + e.Origin.Actor.ID, "data": parse(t, string(e.Data))})
		}
	}
	return told
}

// nowhere fails if a password, or its digest, is in the log or in an event.
func (w *world) nowhere(t testing.TB, c *client, password string) {
	t.Helper()
	places := map[string]string{"log": w.log.String()}
	for _, e := range w.events(t, c, 0) {
		places["event "+e.ID] = string(e.Data)
	}
	for place, text := range places {
		text = strings.ToUpper(text)
		for _, secret := range []string{strings.ToUpper(password), digest(password), digest(password)[5:], "/RANGE/"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in the %s", secret, place)
			}
		}
	}
}

// breachedPasswords refuses breached passwords wherever a user chooses one, and notifies users
// who sign in with one.
func breachedPasswords(t *testing.T, w *world, c *client) {
	const stolen, inUse = "trustno1 trustno1", "letmein letmein"
	w.ranges.steal(stolen)
	refused := func(c *client, method, target string, form object) {
		t.Helper()
		a := c.want(t, 400, "password_policy_violation", method, target, form)
		equal(t, "violations", a.details()["violations"], []any{object{"rule": "breached"}})
		if a.details()["policy"].(map[string]any)["min_length"] == nil {
			t.Errorf("no policy: %s", a.text)
		}
	}
	id := member(t, c, "ann@example.com")
	anon, me := c.with(""), signedIn(t, c, "ann@example.com")
	refused(anon, "POST", authPath+"/sign-up", object{"email": "bob@example.com", "password": stolen})
	refused(me, "POST", mePath+"/password", object{"current": secret, "next": stolen})
	anon.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": "ann@example.com"})
	token := link(t, w.mailbox.take(t, "ann@example.com", "Choose a new password"))
	refused(anon, "POST", authPath+"/password/reset", object{"token": token, "password": stolen})
	refused(c, "PATCH", usersPath+"/"+id, object{"password": stolen})
	refused(c, "POST", usersPath, object{"email": "bob@example.com", "password": stolen})

	// The event names the actor and the user, if they are known.
	ann := object{"id": id, "email": "ann@example.com"}
	told := w.told(t, c, eventlog.SecurityBreachedPasswordUsed)
	admin := ""
	if len(told) == 4 {
		admin, _ = told[2]["actor"].(string)
	}
	equal(t, "events", told, []object{
		{"actor": "user " + id, "data": object{"user": ann, "refused": true}},
		{"actor": "user " + id, "data": object{"user": ann, "refused": true}},
		{"actor": admin, "data": object{"user": ann, "refused": true}},
		{"actor": admin, "data": object{"user": nil, "refused": true}},
	})
	if !strings.HasPrefix(admin, "application ") {
		t.Errorf("the administrator is %q", admin)
	}
	// The pages say it in words.
	page := c.visit(t, "POST", "/account/password", asBrowser(me.token), url.Values{"current": {secret}, "next_password": {stolen}})
	if !strings.Contains(page.html, "a list of stolen passwords") {
		t.Errorf("page: %s", page.html)
	}

	// A breached password in use still signs in, and the response does not wait for the service.
	bob := c.want(t, 201, "", "POST", usersPath, object{"email": "bob@example.com", "password": secret, "email_verified": true}).data()["id"].(string)
	w.ranges.answers(inUse, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) })
	c.want(t, 200, "", "PATCH", usersPath+"/"+bob, object{"password": inUse}) // the service cannot say
	release := make(chan struct{})
	w.ranges.answers(inUse, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		fmt.Fprintf(w, "%s:1\n", digest(inUse)[5:])
	})
	w.later(5 * time.Second) // the service that failed is left alone
	signIn(t, c, "bob@example.com", inUse, "complete")
	waitFor(t, "it is looked up", func() bool { return w.ranges.questions(inUse) == 2 })
	w.ranges.steal(inUse)
	w.ranges.answers(inUse, nil)
	close(release)
	mail := w.mailbox.take(t, "bob@example.com", "Please change your "+c.name()+" password")
	if !strings.Contains(mail.Text, c.base()+"/account/password\n") || !strings.Contains(mail.HTML, `href="`+c.base()+`/account/password"`) ||
		strings.Contains(mail.Text, inUse) {
		t.Errorf("mail: %s\n%s", mail.Text, mail.HTML)
	}
	told = w.told(t, c, eventlog.SecurityBreachedPasswordUsed)
	equal(t, "event", told[len(told)-1], object{"actor": "user " + bob, "data": object{"user": object{"id": bob, "email": "bob@example.com"}, "refused": false}})

	// There is one notification for each password.
	count := len(told)
	asked := w.ranges.questions(inUse)
	signIn(t, c, "bob@example.com", inUse, "complete")
	signIn(t, c, "ann@example.com", secret, "complete") // its job is later
	waitFor(t, "the good one is looked up", func() bool { return w.jobs(t, "password") == 0 })
	equal(t, "events", len(w.told(t, c, eventlog.SecurityBreachedPasswordUsed)), count)
	equal(t, "questions", w.ranges.questions(inUse), asked)

	// Imported passwords are looked up at the first sign-in.
	imported := "imported " + inUse
	w.ranges.steal(imported)
	job := c.upload(t, rows(t, object{"email": "eve@example.com", "email_verified": true, "password": imported}), nil)
	equal(t, "imported", ended(t, c, job.data()["id"]).data()["imported"], 1.0)
	signIn(t, c, "eve@example.com", imported, "complete")
	w.mailbox.take(t, "eve@example.com", "Please change your")
	for _, password := range []string{stolen, inUse, imported} {
		w.nowhere(t, c, password)
	}
}

// jobs counts the unfinished jobs of a kind.
func (w *world) jobs(t testing.TB, kind string) (n int64) {
	t.Helper()
	if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM jobs WHERE kind = $1`, kind).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// breachedUnknown accepts passwords while the service does not answer.
func breachedUnknown(t *testing.T, w *world, c *client) {
	const password = "nobody can say about this"
	w.ranges.steal(password)
	w.ranges.answers(password, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com"+r.URL.Path, http.StatusFound)
	})
	id := member(t, c, "ann@example.com")
	c.want(t, 200, "", "PATCH", usersPath+"/"+id, object{"password": password})
	if !strings.Contains(w.log.String(), "password accepted without a breach check") {
		t.Error("that is not in the log")
	}
	// A lookup that failed at a sign-in is repeated at a later one; no job is kept for it.
	signIn(t, c, "ann@example.com", password, "complete")
	waitFor(t, "it was tried", func() bool { return w.jobs(t, "password") == 0 })
	equal(t, "events", w.told(t, c, eventlog.SecurityBreachedPasswordUsed), []object(nil))
	w.ranges.answers(password, nil)
	w.later(5 * time.Second)
	signIn(t, c, "ann@example.com", password, "complete")
	w.mailbox.take(t, "ann@example.com", "Please change your")
	w.nowhere(t, c, password)
}

// newDevices notifies users of a sign-in on a new device, except of their first.
func newDevices(t *testing.T, w *world, c *client) {
	const phone, phoneLater, desktop = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Mobile/15E148", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_2_1) Mobile/15E148", "Mozilla/5.0 (X11; Linux x86_64) Chrome/148.0"
	id := member(t, c, "ann@example.com")
	on := func(agent string) (session map[string]any) {
		t.Helper()
		header := http.Header{"User-Agent": {agent}, "Content-Type": {"application/json"}}
		a := c.with("").send(t, "POST", authPath+"/sign-in", header, []byte(`{"email":"ann@example.com","password":"`+secret+`"}`))
		equal(t, "status", a.data()["status"], "complete")
		return a.data()["session"].(map[string]any)
	}
	on(phone)
	on(phone)
	on(phoneLater)
	equal(t, "events", w.told(t, c, eventlog.SecurityNewDeviceSignIn), []object(nil))
	begun := on(desktop)
	on(desktop)
	on(phone)
	equal(t, "events", w.told(t, c, eventlog.SecurityNewDeviceSignIn), []object{{"actor": "user " + id, "data": object{
		"session": object{"id": begun["id"], "ip": "127.0.0.1", "user_agent": desktop},
		"device":  begun["device"], "user": object{"id": id, "email": "ann@example.com"},
	}}})
	equal(t, "order", w.types(t, c, "user.signed_in", "session.created", "security")[6:9], []string{"user.signed_in", "session.created", "security.new_device_sign_in"})

	mail := w.mailbox.take(t, "ann@example.com", "New sign-in to your "+c.name()+" account")
	at, err := time.Parse(time.RFC3339, begun["created_at"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"Device: Computer", "Place: DE", "Time: " + at.UTC().Format("2006-01-02 15:04") + " UTC", "IP address: 127.0.0.1", c.base() + "/account/sessions"} {
		if !strings.Contains(mail.Text, said+"\n") || !strings.Contains(mail.HTML, said) {
			t.Errorf("want %q: %s\n%s", said, mail.Text, mail.HTML)
		}
	}

	// Mails do not contain the User-Agent, and their number is limited.
	for i := range 11 {
		on(fmt.Sprintf("see https://evil.test (%d)", i))
	}
	for range 9 {
		if l := w.mailbox.take(t, "ann@example.com", "New sign-in"); strings.Contains(l.Text+l.HTML, "evil") || !strings.Contains(l.Text, "Device: Other device\n") {
			t.Errorf("mail: %s", l.Text)
		}
	}
	waitFor(t, "the rest is given up", func() bool { return w.jobs(t, "mail.sign_in") == 0 })
	equal(t, "events", len(w.told(t, c, eventlog.SecurityNewDeviceSignIn)), 12)

	// Devices belong to a user, and are deleted with the user.
	known := func(user string) (n int64) {
		t.Helper()
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM known_devices WHERE user_id = $1`, user).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	bob := member(t, c, "bob@example.com")
	signIn(t, c, "bob@example.com", secret, "complete")
	equal(t, "events", len(w.told(t, c, eventlog.SecurityNewDeviceSignIn)), 12)
	equal(t, "devices", []int64{known(id), known(bob)}, []int64{13, 1})
	c.want(t, 204, "", "DELETE", usersPath+"/"+id, nil)
	equal(t, "devices", []int64{known(id), known(bob)}, []int64{0, 1})
}
