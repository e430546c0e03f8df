package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An invalid file ends the server at its start, with an error that names the problem.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, "--data-dir", dir)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "stonetown.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may look into the database: %v, %v", info.Mode(), err)
	}
	database, err := os.ReadFile(filepath.Join(dir, "stonetown.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"a database that may only be read": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, "stonetown.db")
			must(t, os.Chmod(path, 0o444))
		}, "stonetown.db: permission denied"},
		"another master key": {func(t *testing.T, dir string) {
			key := make([]byte, 32)
			_, err := io.ReadFull(rand.Reader, key)
			must(t, err, os.WriteFile(filepath.Join(dir, "master.key"), []byte(base64.StdEncoding.EncodeToString(key)), 0o644))
		}, "is not the master key of this database"},
		"no database": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "stonetown.db"), []byte(strings.Repeat("not a database. ", 1000)), 0o644))
		}, "not a database"},
		"half a database": {func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "stonetown.db"), int64(len(database)/2)))
		}, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			copied := filepath.Join(base, "data")
			must(t, os.CopyFS(copied, os.DirFS(dir)))
			c.damage(t, copied)
			cmd := unprivileged(t, base, "serve", "--dev", "--data-dir", copied, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = io.Discard, &out
			if err := cmd.Run(); err == nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("it ended with %v, saying\n%s\nwant %q", err, &out, c.want)
			}
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// unprivileged runs the program with the rights of an ordinary user, to whom file modes apply,
// and who can use the files in dir.
func unprivileged(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	const nobody = 65534
	if os.Getuid() == 0 {
		program, err := os.ReadFile(self)
		must(t, err)
		self = filepath.Join(dir, "stonetown")
		must(t, os.WriteFile(self, program, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
		files, err := filepath.Glob(filepath.Join(dir, "data", "*"))
		must(t, err)
		for _, file := range append(files, filepath.Join(dir, "data")) {
			info, err := os.Stat(file)
			must(t, err)
			if info.Mode().Perm()&0o200 != 0 {
				must(t, os.Chown(file, nobody, nobody))
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "STONETOWN_TEST_MAIN=1")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}
