package stonetown_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSetup runs tools/setup on machines that lack things. Programs are stubs.
func TestSetup(t *testing.T) {
	script, err := filepath.Abs("tools/setup")
	if err != nil {
		t.Fatal(err)
	}
	const (
		root   = "echo 0"
		person = "echo 1000"
		// apt-get notes what it was asked for, and installs it.
		apt = `echo "$@" >>"$LOG"
[ "$1" = install ] || exit 0
for package in "$@"; do
	case $package in
	postgresql) echo '#!/bin/sh' >"$BIN/initdb"; chmod +x "$BIN/initdb" ;;
	libapache2-mod-auth-mellon) : >"$MODULES/mod_auth_mellon.so" ;;
	libapache2-mod-auth-openidc) : >"$MODULES/mod_auth_openidc.so" ;;
	systemd) echo '#!/bin/sh' >"$BIN/systemd-analyze"; chmod +x "$BIN/systemd-analyze" ;;
	prometheus) echo '#!/bin/sh' >"$BIN/promtool"; chmod +x "$BIN/promtool" ;;
	chromium|npm|python3|xmlsec1|curl|caddy) echo '#!/bin/sh' >"$BIN/$package"; chmod +x "$BIN/$package" ;;
	esac
done`
	)
	const install = "install -yq --no-install-recommends"
	for name, tc := range map[string]struct {
		has       map[string]string // programs
		noModules bool              // of Apache
		fail      bool
		ran       string // what apt-get was asked for
		says      string
	}{
		"nothing is missing": {has: map[string]string{"initdb": "", "chromium": "", "npm": "", "python3": "", "xmlsec1": "", "curl": "", "caddy": "", "systemd-analyze": "", "promtool": "", "id": person}},
		"a fresh machine":    {noModules: true, has: map[string]string{"id": root, "apt-get": apt}, ran: "update -q\n" + install + " postgresql chromium npm python3 python3-pysaml2 python3-authlib python3-requests xmlsec1 libapache2-mod-auth-mellon libapache2-mod-auth-openidc curl caddy systemd prometheus\n"},
		"only Chromium":      {has: map[string]string{"initdb": "", "npm": "", "python3": "", "xmlsec1": "", "curl": "", "caddy": "", "systemd-analyze": "", "promtool": "", "id": root, "apt-get": apt}, ran: "update -q\n" + install + " chromium\n"},
		"may not install": {
			has: map[string]string{"initdb": "", "python3": "", "xmlsec1": "", "curl": "", "caddy": "", "systemd-analyze": "", "promtool": "", "id": person, "apt-get": apt}, fail: true,
			says: "sudo sh -c 'apt-get update -q && apt-get " + install + " chromium npm'",
		},
		"a Python without pysaml2": {
			has: map[string]string{"initdb": "", "chromium": "", "npm": "", "python3": "exit 1", "xmlsec1": "", "curl": "", "caddy": "", "systemd-analyze": "", "promtool": "", "id": person, "apt-get": apt}, fail: true,
			says: "apt-get " + install + " python3-pysaml2 python3-authlib python3-requests'",
		},
		"no apt-get":       {noModules: true, has: map[string]string{"id": root}, fail: true, says: "need what is not installed: postgresql chromium npm python3 python3-pysaml2 python3-authlib python3-requests xmlsec1 libapache2-mod-auth-mellon libapache2-mod-auth-openidc curl caddy systemd prometheus"},
		"no packages":      {noModules: true, has: map[string]string{"id": root, "apt-get": `echo "$@" >>"$LOG"; [ "$1" = update ]`}, fail: true, ran: "update -q\n" + install + " postgresql chromium npm python3 python3-pysaml2 python3-authlib python3-requests xmlsec1 libapache2-mod-auth-mellon libapache2-mod-auth-openidc curl caddy systemd prometheus\n", says: "still missing: postgresql chromium npm python3 python3-pysaml2 python3-authlib python3-requests xmlsec1 libapache2-mod-auth-mellon libapache2-mod-auth-openidc curl caddy systemd prometheus"},
		"an empty package": {has: map[string]string{"initdb": "", "npm": "", "python3": "", "xmlsec1": "", "curl": "", "caddy": "", "systemd-analyze": "", "promtool": "", "id": root, "apt-get": `echo "$@" >>"$LOG"`}, fail: true, ran: "update -q\n" + install + " chromium\n", says: "still missing: chromium"},
	} {
		t.Run(name, func(t *testing.T) {
			bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			for program, text := range tc.has {
				if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			// Stubs are written by what is elsewhere in PATH on any machine.
			chmod, err := exec.LookPath("chmod")
			if err == nil {
				err = os.Symlink(chmod, filepath.Join(bin, "chmod"))
			}
			if err != nil {
				t.Fatal(err)
			}
			modules := t.TempDir()
			for _, name := range []string{"mod_auth_mellon.so", "mod_auth_openidc.so"} {
				if tc.noModules {
					break
				}
				if err := os.WriteFile(filepath.Join(modules, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", script)
			cmd.Env = []string{"PATH=" + bin, "BIN=" + bin, "LOG=" + log, "POSTGRESQL=" + t.TempDir(), "PYTHON=" + filepath.Join(bin, "python3"), "MODULES=" + modules}
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if (err != nil) != tc.fail || !strings.Contains(string(out), tc.says) {
				t.Errorf("%v\n%s\nwant %q", err, out, tc.says)
			}
			ran, err := os.ReadFile(log)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if string(ran) != tc.ran {
				t.Errorf("apt-get was asked for %q, want %q", ran, tc.ran)
			}
		})
	}
}
