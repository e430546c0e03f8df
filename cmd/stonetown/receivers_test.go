package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"stonetown/internal/outbound"
	"stonetown/webhooks/signature"
)

// delivery is a signed delivery, as a receiver with a secret gets it.
type delivery struct {
	Name    string            `json:"name"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"` // names in lower case
	Body    string            `json:"body"`
	Valid   bool              `json:"valid"`
	Expired bool              `json:"expired"` // not valid because of its timestamp only
}

func (d delivery) header() http.Header {
	h := make(http.Header)
	for name, value := range d.Headers {
		h.Set(name, value)
	}
	return h
}

// deliveries are deliveries before, during and after a rotation, and changed ones, to a
// receiver with a secret.
func deliveries(receiver signature.Secret) []delivery {
	const body = `{"event_id":"evt_1","event_type":"user.created","data":{"name":"Zoë","html":"<&>"}}`
	other := signature.NewSecret()
	sign := func(name string, valid bool, at time.Time, current, previous signature.Secret, change func(*delivery)) delivery {
		h := http.Header{}
		signature.Sign(h, "evt_1", at, []byte(body), current, previous)
		d := delivery{Name: name, Secret: receiver.Text(), Body: body, Valid: valid, Headers: map[string]string{}}
		for name := range h {
			d.Headers[strings.ToLower(name)] = h.Get(name)
		}
		if change != nil {
			change(&d)
		}
		return d
	}
	now, none := time.Now(), signature.Secret{}
	expired := func(d *delivery) { d.Expired = true }
	return []delivery{
		sign("before a rotation", true, now, receiver, none, nil),
		sign("rotation, receiver has the previous secret", true, now, other, receiver, nil),
		sign("rotation, receiver has the new secret", true, now, receiver, other, nil),
		sign("after the rotation, receiver has the previous secret", false, now, other, none, nil),
		sign("rotation, receiver has neither", false, now, other, signature.NewSecret(), nil),
		sign("4 minutes ago", true, now.Add(-4*time.Minute), receiver, none, nil),
		sign("6 minutes ago", false, now.Add(-6*time.Minute), receiver, none, expired),
		sign("6 minutes ahead", false, now.Add(6*time.Minute), receiver, none, expired),
		sign("changed body", false, now, receiver, none, func(d *delivery) { d.Body = strings.Replace(body, "Zoë", "Zoe", 1) }),
		sign("the same JSON in other bytes", false, now, receiver, none, func(d *delivery) { d.Body = strings.ReplaceAll(body, ":", ": ") }),
		sign("half a body", false, now, receiver, none, func(d *delivery) { d.Body = body[:10] }),
		sign("changed signature", false, now, receiver, none, func(d *delivery) {
			d.Headers["webhook-signature"] = "v1," + strings.Repeat("A", 43) + "="
			d.Headers["x-service-signature"] = strings.Repeat("0", 64)
		}),
	}
}

// incomplete are deliveries that lack something. They are not for libraries, which do not
// agree on the error.
func incomplete(receiver signature.Secret) []delivery {
	var all []delivery
	for name, value := range map[string]string{
		"webhook-id": "evt_2", "webhook-timestamp": "now", "webhook-signature": "v1",
	} {
		for _, change := range []string{"", value, "é"} {
			d := deliveries(receiver)[0]
			d.Name, d.Valid = name+" is "+change, false
			d.Headers[name] = change
			all = append(all, d)
		}
		d := deliveries(receiver)[0]
		d.Name, d.Valid = "without "+name, false
		delete(d.Headers, name)
		all = append(all, d)
	}
	return all
}

// Independent implementations verify what the product signs, through a rotation.
func TestWebhookLibraries(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := deliveries(signature.NewSecret())
	setup, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Go", func(t *testing.T) {
		for _, d := range all {
			hook, err := standardwebhooks.NewWebhook(d.Secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := hook.Verify([]byte(d.Body), d.header()); (err == nil) != d.Valid {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	})
	t.Run("npm", func(t *testing.T) {
		t.Log(npmClients(ctx, t)(t, string(setup), "node", "standardwebhooks.mjs"))
	})
	t.Run("Python", func(t *testing.T) {
		cmd := exec.CommandContext(ctx, program(t, "python3"), "testdata/verify.py")
		cmd.Stdin = bytes.NewReader(setup)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
	})
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("make setup installs %s: %v", name, err)
	}
	return path
}

// snippet is a fenced block of a document.
var snippet = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// TestReceivers runs the receivers in docs/webhooks.md, and delivers to them as the product does.
func TestReceivers(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Verify a delivery\n")
	section, _, _ = strings.Cut(section, "\n## ")
	snippets := make(map[string]string)
	for _, match := range snippet.FindAllStringSubmatch(section, -1) {
		if snippets[match[1]] != "" {
			t.Errorf("two snippets in %s", match[1])
		}
		snippets[match[1]] = match[2]
	}
	secret := signature.NewSecret()
	sender := outbound.New(outbound.Config{AllowInsecure: true, KeepAlive: true})
	defer sender.Close()
	for language, file := range map[string]string{"go": "receiver.go", "js": "receiver.mjs", "python": "receiver.py"} {
		t.Run(language, func(t *testing.T) {
			if snippets[language] == "" {
				t.Fatal("there is no snippet")
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, file), []byte(snippets[language]), 0o600); err != nil {
				t.Fatal(err)
			}
			var command []string
			switch language {
			case "js":
				command = []string{program(t, "node"), file}
			case "python":
				command = []string{program(t, "python3"), file}
			case "go":
				build := exec.CommandContext(t.Context(), program(t, "go"), "build", "-o", "receiver", file)
				build.Dir = dir
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				command = []string{filepath.Join(dir, "receiver")}
			}
			// With an empty or a short secret, signatures could be forged.
			for _, secret := range []string{"", "whsec_", secret.Text()[:20]} {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				out, err := receiverCommand(ctx, dir, command, secret, "0").CombinedOutput()
				if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || ctx.Err() != nil {
					t.Errorf("it runs with the secret %q: %v\n%s", secret, err, out)
				}
				cancel()
			}

			url, log := runReceiver(t, dir, command, secret)
			all := append(deliveries(secret), incomplete(secret)...)
			valid := deliveries(secret)[0]
			all = append(all, valid) // it still runs
			for _, d := range all {
				a, err := sender.Post(t.Context(), url, d.header(), []byte(d.Body), 1000)
				want := http.StatusBadRequest
				if d.Valid {
					want = http.StatusNoContent
				}
				if a.Status != want {
					t.Errorf("%s: %d %s (%v), want %d", d.Name, a.Status, a.Body, err, want)
				}
			}
			// Signed, but not JSON.
			h := make(http.Header)
			signature.Sign(h, "evt_1", time.Now(), []byte("{"), secret, signature.Secret{})
			if a, err := sender.Post(t.Context(), url, h, []byte("{"), 1000); a.Status != http.StatusBadRequest {
				t.Errorf("not JSON: %d (%v)", a.Status, err)
			}
			if t.Failed() {
				t.Logf("%s", log)
			}
		})
	}
}

func receiverCommand(ctx context.Context, dir string, command []string, secret, port string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "STONETOWN_WEBHOOK_SECRET="+secret, "PORT="+port)
	return cmd
}

// runReceiver starts a receiver and waits until it accepts connections.
func runReceiver(t *testing.T, dir string, command []string, secret signature.Secret) (url string, log *bytes.Buffer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // the receiver takes the port
	_, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := receiverCommand(ctx, dir, command, secret.Text(), port)
	log = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() }) // it is killed
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return "http://" + address + "/hook", log
		}
		if time.Now().After(deadline) {
			t.Fatalf("the receiver does not listen: %v", err)
		}
	}
}
