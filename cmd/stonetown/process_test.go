package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stonetown/internal/pgtest"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("STONETOWN_TEST_MAIN") != "" {
		main()
		return
	}
	pgtest.Main(m)
}

// TestProcess starts the program as a process, pastes what it prints into a
// shell, and ends it with SIGTERM.
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
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if script.Len() > 0 || strings.HasPrefix(lines.Text(), "BASE=") {
			script.WriteString(lines.Text() + "\n")
		}
		if strings.Contains(lines.Text(), `"id":"bob"`) { // the last command
			break
		}
	}
	// A proxy of the machine's environment must not see the requests.
	paste := strings.ReplaceAll(script.String(), "curl -sS", "curl -sS --noproxy '*'")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+paste).CombinedOutput()
	if err != nil {
		t.Errorf("the pasted commands failed: %v\n%s", err, out)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != 4 || !strings.Contains(answers[2], `"allowed":true`) || !strings.Contains(answers[3], `"allowed":false`) {
		t.Errorf("the pasted commands answered:\n%s\nlog:\n%s", out, log.String())
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

// TestReadme pastes the walk of the README.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Five minutes with curl\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var script strings.Builder
	for i, block := range strings.Split(section, "```") {
		if commands, ok := strings.CutPrefix(block, "sh\n"); ok && i%2 == 1 {
			script.WriteString(commands)
		}
	}

	dir := t.TempDir()
	start(t, "--dev", "--data-dir", filepath.Join(dir, "data"))
	shell := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+strings.ReplaceAll(script.String(), "curl -sS", "curl -sS --noproxy '*'"))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("the commands failed: %v", err)
	}
	var allowed []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, `"error"`) {
			t.Errorf("refused: %s", line)
		}
		for _, answer := range regexp.MustCompile(`"allowed":(true|false)`).FindAllStringSubmatch(line, -1) {
			allowed = append(allowed, answer[1])
		}
	}
	// Bob through his group; Eve, herself, the document but not the folder; Eve, banned.
	if want := []string{"true", "true", "false", "false"}; !slices.Equal(allowed, want) {
		t.Errorf("answers %v, want %v\n%s", allowed, want, out)
	}
}
