package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("STONETOWN_TEST_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
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
	// Alias every name under localhost to loopback, as resolvers should.
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
