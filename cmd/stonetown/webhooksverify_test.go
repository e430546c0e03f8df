package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stonetown/webhooks/signature"
)

// verify runs the command with an environment and an input.
func verify(t *testing.T, environ []string, stdin string, args ...string) (out string, err error) {
	t.Helper()
	var text strings.Builder
	cmd := webhooksCommand(environ)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&text)
	cmd.SetErr(&text)
	cmd.SetArgs(append([]string{"verify"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return text.String(), err
}

// capture is a signed delivery as a raw request.
func capture(body string, at time.Time, current, previous signature.Secret, more string) string {
	h := http.Header{
		"Content-Type": {"application/json"}, signature.HeaderEvent: {"user.created"},
		signature.HeaderDelivery: {"whd_1"}, signature.HeaderAttempt: {"2"},
	}
	signature.Sign(h, "evt_1", at, []byte(body), current, previous)
	var text strings.Builder
	text.WriteString("POST /hook HTTP/1.1\r\nHost: example.com\r\n" + more)
	_ = h.Write(&text) // a Builder does not fail
	return text.String() + "\r\n" + body
}

func TestWebhooksVerify(t *testing.T) {
	const body = `{"event_id":"evt_1","event_type":"user.created","data":{}}`
	current, previous, other := signature.NewSecret(), signature.NewSecret(), signature.NewSecret()
	environment := func(s signature.Secret) []string { return []string{"STONETOWN_WEBHOOK_SECRET=" + s.Text()} }
	at := time.Date(2026, 11, 20, 19, 27, 0, 0, time.UTC)
	right := capture(body, at, current, previous, "")
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	report := func(standard, service, kind, age string) string {
		return "Standard Webhooks: " + standard + "\nX-Service:         " + service +
			"\nevent type:        " + kind + "\nevent id:          evt_1\ndelivery:          whd_1\nattempt:           2\nage:               " + age + "\n"
	}
	const now, noMatch = "2026-11-20T19:27:12Z", "not valid: no signature matches"
	for _, tc := range []struct {
		name, stdin string
		environ     []string
		args        []string
		out         string
		code        int
	}{
		{"right", right, environment(current), []string{"--at", now}, report("valid", "valid", "user.created", "12s"), 0},
		{"previous secret", right, environment(previous), []string{"--at", now}, report("valid", "valid", "user.created", "12s"), 0},
		{"other secret", right, environment(other), []string{"--at", now}, report(noMatch, noMatch, "user.created", "12s"), 1},
		{"changed body", strings.Replace(right, `"data":{}`, `"data":1`, 1), environment(current), []string{"--at", now}, report(noMatch, noMatch, "user.created", "12s"), 1},
		{"too old", right, environment(current), []string{"--at", "2026-11-20T19:32:01Z"}, report("not valid: the timestamp is too old", "not valid: the timestamp is too old", "user.created", "5m1s"), 1},
		{"longer tolerance", right, environment(current), []string{"--at", "2026-11-20T19:32:01Z", "--tolerance", "301s"}, report("valid", "valid", "user.created", "5m1s"), 0},
		{"in the future", right, environment(current), []string{"--at", "2026-11-20T19:00:00Z"}, report("not valid: the timestamp is in the future", "not valid: the timestamp is in the future", "user.created", "-27m0s"), 1},
		{"X-Service only", strings.Replace(right, "Webhook-Signature", "X-Other", 1), environment(current), []string{"--at", now}, report("not valid: a header is missing: Webhook-Signature", "valid", "user.created", "12s"), 1},
		{"Standard Webhooks only", strings.Replace(right, "X-Service-Signature:", "X-Other:", 1), environment(current), []string{"--at", now}, report("valid", "not valid: a header is missing: X-Service-Signature", "user.created", "12s"), 0},
		{"with a length, and a line more", capture(body, at, current, previous, length) + "\n", environment(current), []string{"--at", now}, report("valid", "valid", "user.created", "12s"), 0},
		{"chunked", strings.TrimSuffix(capture(body, at, current, previous, "Transfer-Encoding: chunked\r\n"), body) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), environment(current), []string{"--at", now}, report("valid", "valid", "user.created", "12s"), 0},
		{"lines without CR", strings.ReplaceAll(right, "\r\n", "\n"), environment(current), []string{"--at", now}, report("valid", "valid", "user.created", "12s"), 0},
		{"body without a type", capture("x", at, current, previous, ""), environment(current), []string{"--at", now}, report("valid", "valid", "user.created", "12s"), 0},
		{"type of the body counts", capture(`{"event_type":"user.deleted"}`, at, current, previous, ""), environment(current), []string{"--at", now}, report("valid", "valid", "user.deleted", "12s"), 0},
		{"control characters", capture(`{"event_type":"a\u001b[31m"}`, at, current, previous, ""), environment(current), []string{"--at", now}, report("valid", "valid", `"a\x1b[31m"`, "12s"), 0},
	} {
		out, err := verify(t, tc.environ, tc.stdin, append(tc.args, "-")...)
		if out != tc.out || exitCode(err) != tc.code || err != nil && err.Error() != "" {
			t.Errorf("%s: code %d, %v\n%s\nwant code %d\n%s", tc.name, exitCode(err), err, out, tc.code, tc.out)
		}
	}

	// From files, and by the time that it is.
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fresh := write("fresh", capture(body, time.Now(), current, signature.Secret{}, ""))
	if out, err := command(t, "webhooks", "verify", fresh, "--secret-file", write("secret", current.Text()+"\n")); err != nil || !strings.HasPrefix(out, "Standard Webhooks: valid\nX-Service:         valid\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := verify(t, environment(other), right, fresh, "--secret-file", filepath.Join(dir, "secret")); err != nil {
		t.Errorf("the file does not win over the environment: %v\n%s", err, out)
	}

	for _, tc := range []struct {
		want, stdin string
		environ     []string
		args        []string
	}{
		{"the signing secret is required: set --secret-file or STONETOWN_WEBHOOK_SECRET", right, nil, []string{"-"}},
		{"STONETOWN_WEBHOOK_SECRET: not a signing secret", right, []string{"STONETOWN_WEBHOOK_SECRET=" + current.Text() + "A"}, []string{"-"}},
		{"not a signing secret", right, nil, []string{"-", "--secret-file", write("empty", "")}},
		{"no such file", right, nil, []string{"-", "--secret-file", filepath.Join(dir, "none")}},
		{"no such file", "", environment(current), []string{filepath.Join(dir, "none")}},
		{"not a raw HTTP/1.1 request: no empty line", "", environment(current), []string{"-"}},
		{"not a raw HTTP/1.1 request: no empty line", "POST / HTTP/1.1\r\nHost: a\r\n", environment(current), []string{"-"}},
		{"not a raw HTTP/1.1 request", body, environment(current), []string{"-"}},
		{"is incomplete", "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nfour", environment(current), []string{"-"}},
		{"longer than 1 MiB", right + strings.Repeat(" ", maxCapture), environment(current), []string{"-"}},
		{"--at is", right, environment(current), []string{"-", "--at", "now"}},
		{"--tolerance is -1s", right, environment(current), []string{"-", "--tolerance", "-1s"}},
		{"unknown flag", right, environment(current), []string{"-", "--secret", current.Text()}},
		{"FILE", right, environment(current), nil},
	} {
		out, err := verify(t, tc.environ, tc.stdin, tc.args...)
		if exitCode(err) != exitNoRequest || !strings.Contains(err.Error(), tc.want) || out != "" {
			t.Errorf("%v: %v, want %s\n%s", tc.args, err, tc.want, out)
		}
		if err != nil && strings.Contains(err.Error(), current.Text()[6:]) {
			t.Errorf("%v quotes the secret", err)
		}
	}
	if _, err := command(t, "webhooks", "verfy"); err == nil {
		t.Error("a misspelt command ran")
	}
}
