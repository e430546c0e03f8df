// Package dextest starts Dex, an OpenID provider of another project, for tests.
//
// Dex is a process. Its program is a tool of the module tools/peers, because the product must not
// depend on its libraries. The first start on a machine builds it, which takes minutes.
package dextest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Password is the password of all users.
const Password = "correct horse"

// User is a user of Dex.
type User struct {
	ID         string // Dex derives the subject from it
	Email      string
	Unverified bool // Email is not verified
	Username   string
	Name       string
	Groups     []string
}

// Config is the configuration of Dex, with one client.
type Config struct {
	Users                []User
	ClientID             string
	Secret               string
	RedirectURIs         []string
	PostLogoutURIs       []string
	BackchannelLogoutURI string
	// Sessions: Dex has sessions of its own, so a user who is signed in is not asked for the
	// password again.
	Sessions bool
}

// Server is a running Dex, which keeps its data in memory.
type Server struct {
	Issuer string

	t             *testing.T
	address, file string
	sessions      bool
	process       *exec.Cmd
	log           bytes.Buffer
}

// program builds Dex and returns its path.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		peers := filepath.Join(dir, "tools", "peers")
		if _, err := os.Stat(filepath.Join(peers, "go.mod")); err == nil {
			out, err := exec.Command("go", "-C", peers, "tool", "-n", "dex").Output()
			if failed := new(exec.ExitError); errors.As(err, &failed) {
				return "", fmt.Errorf("build Dex: %s", failed.Stderr)
			}
			return string(bytes.TrimSpace(out)), err
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("the module tools/peers is not in a folder above")
		}
		dir = above
	}
})

// Start starts Dex. It stops with the test.
func Start(t *testing.T, c Config) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, address: listener.Addr().String(), file: filepath.Join(t.TempDir(), "dex.yaml"), sessions: c.Sessions}
	listener.Close()
	s.Issuer = "http://" + s.address + "/dex"
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.DefaultCost) // the least that Dex accepts
	if err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	var users []object
	for _, u := range c.Users {
		users = append(users, object{
			"email": u.Email, "hash": string(hash), "username": u.Username, "name": u.Name, "preferredUsername": u.Username,
			"emailVerified": !u.Unverified, "groups": u.Groups, "userID": u.ID,
		})
	}
	config, err := json.Marshal(object{ // which is YAML as well
		"issuer": s.Issuer, "storage": object{"type": "memory"}, "web": object{"http": s.address}, "enablePasswordDB": true, "staticPasswords": users,
		"staticClients": []object{{
			"id": c.ClientID, "secret": c.Secret, "name": "Web", "redirectURIs": c.RedirectURIs,
			"postLogoutRedirectURIs": c.PostLogoutURIs, "backchannelLogoutURI": c.BackchannelLogoutURI,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("Dex:\n%s", s.log.String())
		}
	})
	return s
}

// Restart starts Dex again. It makes a new signing key.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.start()
}

func (s *Server) start() {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = exec.Command(path, "serve", s.file)
	s.process.Env = append(os.Environ(), fmt.Sprintf("DEX_SESSIONS_ENABLED=%t", s.sessions))
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 100 {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Stop()
	s.t.Fatalf("Dex does not listen:\n%s", s.log.String())
}

// Stop stops Dex. It does nothing if Dex has stopped.
func (s *Server) Stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}
