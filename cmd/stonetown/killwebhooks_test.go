package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/webhooks/signature"
)

// startServer is startProcess without --dev, so that there can be several on one database.
func startServer(t *testing.T, host string, args ...string) *process {
	t.Helper()
	return startServerAt(t, 1, host, args...)
}

// startServerAt starts a server with a clock for read leases that runs at a rate.
func startServerAt(t *testing.T, rate float64, host string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startBinary(t, self, rate, host, args...)
}

// startBinary starts a server of a binary, which may be another release.
func startBinary(t *testing.T, binary string, rate float64, host string, args ...string) *process {
	t.Helper()
	p := &process{host: host, log: new(syncBuffer)}
	p.cmd = exec.Command(binary, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--allow-insecure-targets", "--rate-limits", "admin.caller=unlimited",
	}, args...)...)
	p.cmd.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1", fmt.Sprint("STONETOWN_TEST_CLOCK=", rate))
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	for lines := bufio.NewScanner(io.TeeReader(stderr, p.log)); lines.Scan(); {
		var entry struct {
			Msg, Addr string
			AdminAddr string `json:"admin_addr"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "ready" {
			p.base, p.admin = "http://"+entry.Addr, "http://"+entry.AdminAddr
			go io.Copy(p.log, stderr)
			return p
		}
	}
	t.Fatalf("the server did not start:\n%s", p.log)
	return nil
}

// arrival is a request that a receiver got.
type arrival struct {
	delivery, attempt string
	at                time.Time
}

// recorder is the receiver of some subscriptions; each has a path of its own.
type recorder struct {
	t       *testing.T
	server  *httptest.Server
	mu      sync.Mutex
	secrets map[string]signature.Secret     // by path
	events  map[string]map[string][]arrival // by path and event id
	about   map[string]map[string]string    // the event id by path and change
	bodies  map[string]string               // by event id
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{t: t, secrets: map[string]signature.Secret{}, events: map[string]map[string][]arrival{}, about: map[string]map[string]string{}, bodies: map[string]string{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// changeOf returns the change that an event is about, in the form of load.
func changeOf(t *testing.T, eventType string, data json.RawMessage) string {
	var of struct {
		User     struct{ ID string }
		Relation struct {
			Resource struct {
				ExternalID string `json:"external_id"`
			}
		}
	}
	if err := json.Unmarshal(data, &of); err != nil {
		t.Error(err)
	}
	return eventType + " " + of.User.ID + of.Relation.Resource.ExternalID
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a := arrival{req.Header.Get(signature.HeaderDelivery), req.Header.Get(signature.HeaderAttempt), time.Now()}
	body, err := io.ReadAll(req.Body)
	if err != nil { // the process was killed
		return
	}
	time.Sleep(rand.N(4 * time.Millisecond))
	r.mu.Lock()
	defer r.mu.Unlock()
	var e struct {
		EventID   string `json:"event_id"`
		EventType string `json:"event_type"`
		Data      json.RawMessage
	}
	if err := json.Unmarshal(body, &e); err != nil || e.EventID == "" || e.EventID != req.Header.Get("Webhook-Id") {
		r.t.Errorf("received %s with the id %s: %v", body, req.Header.Get("Webhook-Id"), err)
	}
	path := req.URL.Path
	if err := signature.Verify(req.Header, body, r.secrets[path], time.Now(), signature.Tolerance); err != nil {
		r.t.Errorf("%s: %v", path, err)
	}
	if before, ok := r.bodies[e.EventID]; ok && before != string(body) {
		r.t.Errorf("the event arrived as %s and %s", before, body)
	}
	change := changeOf(r.t, e.EventType, e.Data)
	if before, ok := r.about[path][change]; ok && before != e.EventID {
		r.t.Errorf("%s: events %s and %s", change, before, e.EventID)
	}
	r.bodies[e.EventID], r.about[path][change] = string(body), e.EventID
	r.events[path][e.EventID] = append(r.events[path][e.EventID], a)
	w.WriteHeader(http.StatusNoContent)
}

// subscribe creates a subscription to relations and users that were created.
func (r *recorder) subscribe(p *process, token string) (path string) {
	r.t.Helper()
	r.mu.Lock()
	path = fmt.Sprintf("/%d", len(r.secrets))
	r.mu.Unlock()
	status, _, text := p.send(token, "", "POST", "webhooks/subscriptions", map[string]any{"name": path, "url": r.server.URL + path, "events": []string{"relation.*", "user.created"}})
	var answer struct {
		Data struct {
			SigningSecret string `json:"signing_secret"`
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); status != 201 || err != nil {
		r.t.Fatalf("subscribe: %d %s", status, text)
	}
	secret, err := signature.ParseSecret(answer.Data.SigningSecret)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[path], r.events[path], r.about[path] = secret, map[string][]arrival{}, map[string]string{}
	return path
}

// missing returns the events of a list that did not arrive at a path.
func (r *recorder) missing(path string, want map[string]bool) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range want {
		if len(r.events[path][id]) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// kill is when a process was killed, and when that began.
type kill struct{ from, to time.Time }

// checkRepeated requires that an attempt is repeated only if a process was killed after it.
func (r *recorder) checkRepeated(kills []kill) (requests, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, events := range r.events {
		for id, arrivals := range events {
			last := map[string]time.Time{} // by attempt
			for _, a := range arrivals {
				requests++
				if a.delivery != arrivals[0].delivery {
					r.t.Errorf("%s: event %s has the deliveries %s and %s", path, id, arrivals[0].delivery, a.delivery)
				}
				before, ok := last[a.attempt]
				last[a.attempt] = a.at
				if !ok {
					continue
				}
				repeated++
				excused := false
				for _, k := range kills {
					// The receiver may read a request just after its sender was killed.
					excused = excused || before.Before(k.to.Add(time.Second)) && a.at.After(k.from)
				}
				if !excused {
					r.t.Errorf("%s: attempt %s of %s was made at %v and %v, without a kill between", path, a.attempt, a.delivery, before, a.at)
				}
			}
		}
	}
	return requests, repeated
}

// load is changes by several clients, and those that were acknowledged.
type load struct {
	t     *testing.T
	mu    sync.Mutex
	acked map[string]int // the round by change: the event type, and the document or user id
}

// client makes changes until the process does not respond, or until stop.
func (l *load) client(p *process, token, name string, round int, stop <-chan struct{}) {
	relation := map[string]any{"subject": map[string]string{"type": "user", "id": "ann"}, "relation": "viewer"}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		document := fmt.Sprintf("%s-%d", name, i)
		var status, want int
		var text, change string
		switch i % 8 {
		case 7:
			status, _, text = p.send(token, document, "POST", "users", map[string]any{"email": document + "@example.com"})
			var answer struct{ Data struct{ ID string } }
			if status == 201 {
				if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Data.ID == "" {
					l.t.Errorf("%s: %v", text, err)
				}
			}
			want, change = 201, "user.created "+answer.Data.ID
		case 6: // the relation before
			document = fmt.Sprintf("%s-%d", name, i-1)
			status, _, text = p.send(token, document+"-removed", "DELETE", "resources/document/"+document+"/relations", relation)
			want, change = 204, "relation.deleted "+document
		default:
			status, _, text = p.send(token, document, "POST", "resources/document/"+document+"/relations", relation)
			want, change = 201, "relation.created "+document
		}
		switch status {
		case 0:
			return
		case want:
			l.mu.Lock()
			l.acked[change] = round
			l.mu.Unlock()
		default:
			l.t.Errorf("%s: %d %s", change, status, text)
			return
		}
	}
}

// TestKillWebhooks kills servers while they deliver. Every event that was committed arrives, with
// one id and one delivery for each subscription, and no attempt is made twice unless the process
// that made it was killed.
func TestKillWebhooks(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for name, test := range map[string]struct {
		postgres  bool
		processes int
	}{
		"SQLite":                       {false, 1},
		"PostgreSQL":                   {true, 1},
		"PostgreSQL and two processes": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{"--data-dir", dir}
			if test.postgres {
				args = append(args, "--database-url", pgtest.URL(t))
			}
			defer func() {
				if t.Failed() {
					t.Logf("repeat with -kill-seed=%d", seed)
				}
			}()
			killWebhooks(t, args, dir, test.processes, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func killWebhooks(t *testing.T, args []string, dir string, count int, random *rand.Rand) {
	if _, err := seal.OpenKeyFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bootstrap.json")
	if _, err := command(t, append([]string{"bootstrap", "--out", file}, args...)...); err != nil {
		t.Fatal(err)
	}
	c := readJSON(t, file)
	processes := make([]*process, count)
	for i := range processes {
		processes[i] = startServer(t, hostOf(t, c.BaseURL), args...)
	}
	token := processes[0].token(t, c)
	if status, _, text := processes[0].send(token, "", "POST", "resource-types", map[string]any{"name": "document", "relations": []any{map[string]string{"name": "viewer"}}}); status != 201 {
		t.Fatal(text)
	}
	receiver := newRecorder(t)
	l := &load{t: t, acked: map[string]int{}}
	var paths []string
	var killed []kill
	const clients = 6
	for round := range *kills + 1 {
		// The lanes of the subscriptions before may still be those of a dead process.
		paths = append(paths, receiver.subscribe(processes[random.IntN(count)], token))
		stop := make(chan struct{})
		var working sync.WaitGroup
		for i := range clients {
			p := processes[i%count]
			working.Go(func() { l.client(p, token, fmt.Sprintf("r%d-c%d", round, i), round, stop) })
		}
		time.Sleep(time.Duration(300+random.IntN(600)) * time.Millisecond)
		if round < *kills {
			victim := random.IntN(count)
			began := time.Now()
			processes[victim].kill()
			killed = append(killed, kill{began, time.Now()})
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) // the other process goes on
			close(stop)
			working.Wait()
			processes[victim] = startServer(t, hostOf(t, c.BaseURL), args...)
			continue
		}
		close(stop)
		working.Wait()
	}

	// Every committed event arrives, within the lease of a killed process and a little more.
	out, err := command(t, append([]string{"audit", "export"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	committed := map[string]bool{}
	subscribed := 0 // so far
	want := make([]map[string]bool, len(paths))
	for i := range want {
		want[i] = map[string]bool{}
	}
	for text := range strings.Lines(out) {
		var e struct {
			EventID   string `json:"event_id"`
			EventType string `json:"event_type"`
			Data      json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		switch e.EventType {
		case "webhook.subscription_created":
			subscribed++
		case "relation.created", "relation.deleted", "user.created":
			committed[changeOf(t, e.EventType, e.Data)] = true
			for i := range subscribed {
				want[i][e.EventID] = true
			}
		}
	}
	for change := range l.acked {
		if !committed[change] {
			t.Errorf("%s was acknowledged and has no event", change)
		}
	}
	if subscribed != len(paths) || len(l.acked) < 20*len(paths) {
		t.Fatalf("%d of %d subscriptions, %d changes", subscribed, len(paths), len(l.acked))
	}
	deadline := time.Now().Add(100 * time.Second)
	for i, path := range paths {
		for missing := receiver.missing(path, want[i]); len(missing) > 0; missing = receiver.missing(path, want[i]) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d of %d events did not arrive, such as %s", path, len(missing), len(want[i]), missing[0])
			}
			time.Sleep(100 * time.Millisecond)
		}
		receiver.mu.Lock()
		for change, round := range l.acked {
			if _, ok := receiver.about[path][change]; round >= i && !ok {
				t.Errorf("%s was acknowledged after the subscription to %s, and has not arrived", change, path)
			}
		}
		receiver.mu.Unlock()
	}
	requests, repeated := receiver.checkRepeated(killed)
	t.Logf("%d changes, %d kills, %d deliveries, %d of them repeated", len(l.acked), len(killed), requests, repeated)
}
