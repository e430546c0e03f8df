package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/tuplestore/readlease"
)

// TestMain makes the test binary act as the program.
func TestMain(m *testing.M) {
	if os.Getenv("STONETOWN_TEST_MAIN") != "" {
		if rate, err := strconv.ParseFloat(os.Getenv("STONETOWN_TEST_CLOCK"), 64); err == nil {
			leaseClock = readlease.Drifting(rate)
		}
		main()
		return
	}
	pgtest.Main(m)
}

// TestProcess starts the program as a process, runs the printed commands in a shell, and ends
// it with SIGTERM.
func TestProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), self, "serve", "--dev", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	server.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
	var log bytes.Buffer
	server.Stderr = &log
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	script := printed(stdout)
	// The proxy of the environment must not receive the requests.
	paste := strings.ReplaceAll(script, "curl -sS", "curl -sS --noproxy '*'")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+paste).CombinedOutput()
	if err != nil {
		t.Errorf("the pasted commands failed: %v\n%s", err, out)
	}
	if got := decisions(string(out)); !slices.Equal(got, quickstartDecisions) || strings.Contains(string(out), `"error"`) {
		t.Errorf("the pasted commands answered:\n%s\nlog:\n%s", out, log.String())
	}
	// Of the two minutes from a fresh clone to the first answer (make first-minutes), this is what
	// is left after the build.
	took := time.Since(begun)
	t.Logf("%v from the start to the answers", took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("the first answers took %v", took)
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { _ = server.Process.Kill() })
	defer kill.Stop()
	if err := server.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if !strings.Contains(log.String(), "draining") || !strings.Contains(log.String(), "stopped") {
		t.Errorf("log:\n%s", log.String())
	}
}

// printed returns the commands that a development server prints.
func printed(stdout io.Reader) string {
	var script strings.Builder
	commands := strings.Split(strings.TrimSpace(quickstart), "\n")
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if script.Len() > 0 || strings.HasPrefix(lines.Text(), "get() {") {
			script.WriteString(lines.Text() + "\n")
		}
		if lines.Text() == commands[len(commands)-1] {
			break
		}
	}
	return script.String()
}

// quickstartDecisions are the results of these commands: Bob may view the plan through his
// group; Eve may view the plan, and not the folder.
var quickstartDecisions = []string{"true", "true", "false"}

// decisions returns the answers to checks, and the codes of errors, in the output of commands.
func decisions(out string) (all []string) {
	for line := range strings.Lines(out) {
		for _, answer := range regexp.MustCompile(`"allowed":(true|false)|"error":"(\w+)"`).FindAllStringSubmatch(line, -1) {
			all = append(all, answer[1]+answer[2])
		}
	}
	return all
}

// section returns the commands of a section of the README, up to the next section of the same
// level.
func section(t *testing.T, readme, title string) string {
	t.Helper()
	_, text, found := strings.Cut(readme, "\n## "+title+"\n")
	if !found {
		t.Fatalf("the README has no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var script strings.Builder
	for i, block := range strings.Split(text, "```") {
		if commands, ok := strings.CutPrefix(block, "sh\n"); ok && i%2 == 1 {
			script.WriteString(commands)
		}
	}
	return script.String()
}

// TestReadme runs the commands of the README.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, target := range map[string]string{"stonetown": self, "examples": examples} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	server := start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	paste := func(script string) string {
		t.Helper()
		script = strings.NewReplacer("curl -sS", "curl -sS --noproxy '*'", "bin/stonetown", "./stonetown").Replace(script)
		shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+script)
		shell.Dir = dir
		shell.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("the commands failed: %v\n%s", err, out)
		}
		return string(out)
	}

	// The README begins with the commands that the server prints.
	first := strings.ReplaceAll(quickstart, "{{.File}}", "data/bootstrap.json")
	if commands := section(t, readme, "Five minutes with curl"); !strings.HasPrefix(commands, first) {
		t.Errorf("the README does not begin with quickstart.sh:\n%s", commands)
	}
	script := printed(strings.NewReader(server.out.String()))
	if want := strings.ReplaceAll(quickstart, "{{.File}}", filepath.Join(dir, "data", "bootstrap.json")); script != want {
		t.Errorf("the server printed\n%s\nwant\n%s", script, want)
	}
	if out := paste(script); !slices.Equal(decisions(out), quickstartDecisions) || strings.Contains(out, `"error"`) {
		t.Errorf("what the server prints answers:\n%s", out)
	}
	out := paste(section(t, readme, "Five minutes with curl"))
	answers := decisions(out)
	// Bob through his group; Eve the document and not the folder; Eve after a ban; Ann and not
	// Eve the folder; Bob the folder, since a write; Cid from the office, and without an address; Dan, an auditor; an
	// application before and after it may call an API.
	if want := []string{"true", "true", "false", "false", "true", "false", "true", "true", "condition_context_missing", "true", "invalid_target"}; !slices.Equal(answers, want) {
		t.Errorf("answers %v, want %v\n%s", answers, want, out)
	}
	for _, part := range []string{`"plans/q1 draft"`, `"consistency_token"`, `"next_cursor":null`, `"slug":"auditors"`, `"count":1,"exact":true`, `"actions":["delete","owner","view","viewer"]`, `"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"`} {
		if !strings.Contains(out, part) {
			t.Errorf("no answer has %s", part)
		}
	}

	out = paste(section(t, readme, "From the terminal"))
	for _, part := range []string{"allowed\n", "folder:2026#owner@user:ann\n", "from_office", "relation.bulk_applied"} {
		if !strings.Contains(out, part) {
			t.Errorf("the terminal does not show %q:\n%s", part, out)
		}
	}
	out = paste(section(t, readme, "Testing a model"))
	for _, part := range []string{"assertions hold", "documents"} {
		if !strings.Contains(out, part) {
			t.Errorf("the terminal does not show %q:\n%s", part, out)
		}
	}
	out = paste(section(t, readme, "Coming from OpenFGA or SpiceDB"))
	for _, part := range []string{"10 of 10 assertions hold", "12 of 12 assertions hold", "wrote 8 relations\nallowed\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("the terminal does not show %q:\n%s", part, out)
		}
	}
}
