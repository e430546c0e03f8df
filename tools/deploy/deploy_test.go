package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const folder = "../../deploy"

func load(t *testing.T, files ...string) *types.Project {
	t.Helper()
	for i, f := range files {
		files[i] = filepath.Join(folder, f)
	}
	options, err := cli.NewProjectOptions(files, cli.WithEnv([]string{"DOMAIN=auth.example.com"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompose(t *testing.T) {
	p := load(t, "compose.yaml")
	s := p.Services["stonetown"]
	if subnet := p.Networks["front"].Ipam.Config[0].Subnet; *s.Environment["STONETOWN_TRUSTED_PROXIES"] != subnet {
		t.Errorf("trusted_proxies is %s, and the network of the proxy %s", *s.Environment["STONETOWN_TRUSTED_PROXIES"], subnet)
	}
	if *s.Environment["STONETOWN_MASTER_KEY_FILE"] != "/run/secrets/master-key" || len(s.Secrets) != 1 || s.Secrets[0].Source != "master-key" {
		t.Errorf("the master key: %v, %v", *s.Environment["STONETOWN_MASTER_KEY_FILE"], s.Secrets)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
		t.Errorf("the root is writable or there are capabilities: %v, %v", s.ReadOnly, s.CapDrop)
	}
	if grace := time.Duration(*s.StopGracePeriod); grace <= 30*time.Second {
		t.Errorf("the server is killed after %s, before drain_timeout", grace)
	}
	if len(s.Ports) > 0 {
		t.Errorf("clients reach the server without the proxy: %v", s.Ports)
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
}

func TestComposePostgreSQL(t *testing.T) {
	p := load(t, "compose.yaml", "compose.postgres.yaml")
	s := p.Services["stonetown"]
	if *s.Deploy.Replicas != 2 || *s.Environment["STONETOWN_DATABASE_URL_FILE"] != "/run/secrets/database-url" || len(s.Secrets) != 2 {
		t.Errorf("%+v", s)
	}
	if !s.ReadOnly || len(s.Networks) != 2 {
		t.Errorf("the settings of one machine are lost: %+v", s.Networks)
	}
	if _, public := p.Services["postgres"].Networks["front"]; public || !p.Networks["back"].Internal {
		t.Error("the database is on the network of the proxy, or reaches others")
	}
}

// Three nodes know each other, the database is made before the processes start, and these have all
// nodes in their URL.
func TestComposeCockroachDB(t *testing.T) {
	p := load(t, "compose.yaml", "compose.cockroach.yaml")
	s := p.Services["stonetown"]
	if *s.Deploy.Replicas != 2 || *s.Environment["STONETOWN_DATABASE_URL_FILE"] != "/run/secrets/database-url" || len(s.Secrets) != 2 || !s.ReadOnly || len(s.Networks) != 2 {
		t.Errorf("%+v", s)
	}
	if c := s.DependsOn["cockroach-init"].Condition; c != types.ServiceConditionCompletedSuccessfully {
		t.Errorf("the processes start when the database is %s", c)
	}
	nodes := []string{"cockroach-1", "cockroach-2", "cockroach-3"}
	initial := p.Services["cockroach-init"]
	for _, name := range nodes {
		node := p.Services[name]
		if !slices.Contains(node.Command, "--advertise-addr="+name) || !slices.Contains(node.Command, "--join="+strings.Join(nodes, ",")) || len(node.Volumes) != 1 || node.Volumes[0].Source != name {
			t.Errorf("%s: %v, %v", name, node.Command, node.Volumes)
		}
		if initial.DependsOn[name].Condition != types.ServiceConditionHealthy {
			t.Errorf("the cluster is initialized before %s runs", name)
		}
		if _, public := node.Networks["front"]; public || len(node.Ports) > 0 {
			t.Errorf("%s, which asks for no password, is reached from outside", name)
		}
	}
	if !p.Networks["back"].Internal || initial.Restart != types.RestartPolicyOnFailure {
		t.Error("the network of the database reaches others, or its initialization is never repeated")
	}
	text, err := os.ReadFile(filepath.Join(folder, "compose.cockroach.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "printf '")
	address, _, _ := strings.Cut(after, "'")
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{config.Host}
	for _, other := range config.Fallbacks {
		hosts = append(hosts, other.Host)
		if other.Port != 26257 {
			t.Errorf("%s is reached at port %d", other.Host, other.Port)
		}
	}
	if !slices.Equal(hosts, nodes) || config.Port != 26257 || config.Database != "stonetown" {
		t.Errorf("%s leads to %v, port %d, database %s", address, hosts, config.Port, config.Database)
	}
}

func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is based on %s", last.BaseName)
	}
	user, health := "", false
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.HealthCheckCommand:
			health = slices.Equal(c.Health.Test, []string{"CMD", "/usr/bin/stonetown", "health"})
		}
	}
	if user != "65532:65532" || !health {
		t.Errorf("user %q, health check %v", user, health)
	}
}

func TestCaddyfile(t *testing.T) {
	command := exec.Command("caddy", "validate", "--adapter", "caddyfile", "--config", filepath.Join(folder, "Caddyfile"))
	command.Env = append(os.Environ(), "DOMAIN=auth.example.com", "HOME="+t.TempDir())
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The lines for affinity send all requests of a host to one process, and those of hosts whose
// process has ended to others, while the rest stay where they are.
func TestCaddyfileAffinity(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	upstreams := map[string]*httptest.Server{}
	to := "to"
	for range 3 {
		var s *httptest.Server
		s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.Listener.Addr().String()) }))
		defer s.Close()
		upstreams[s.Listener.Addr().String()] = s
		to += " " + s.Listener.Addr().String()
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(address, ":")
	config := strings.NewReplacer("{$DOMAIN}", "http://:"+port, "dynamic a stonetown 8080", to, "# lb_", "lb_", "# fail_", "fail_").Replace(string(text))
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte("{\n\tadmin off\n}\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", file)
	command.Env, command.Stderr = append(os.Environ(), "HOME="+t.TempDir()), &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait() // the error says that it was killed
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	ask := func(host string) string {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				if time.Now().After(deadline) {
					t.Fatal(err)
				}
				continue // it has not started yet
			}
			text, err := io.ReadAll(response.Body)
			err = errors.Join(err, response.Body.Close())
			if response.StatusCode == http.StatusBadGateway && time.Now().Before(deadline) {
				continue // by this, Caddy knows that the process has ended
			}
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v: %s", response.Status, err, text)
			}
			return string(text)
		}
	}
	at := map[string]string{}
	hosts := map[string]int{}
	for i := range 30 {
		host := fmt.Sprintf("tenant%d.example.com", i)
		at[host] = ask(host)
		hosts[at[host]]++
		for range 3 {
			if got := ask(host); got != at[host] {
				t.Fatalf("%s is at %s and at %s", host, at[host], got)
			}
		}
	}
	if len(hosts) != len(upstreams) {
		t.Errorf("30 hosts are at %v", hosts)
	}
	gone := at["tenant0.example.com"]
	upstreams[gone].Close()
	for host, before := range at {
		if got := ask(host); got == gone || before != gone && got != before {
			t.Errorf("%s was at %s and is at %s after the end of %s", host, before, got, gone)
		}
	}
}

// The program of the unit is not installed here; the rest must be as systemd wants it.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "stonetown.service"))
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "stonetown.service")
	replaced := strings.Replace(string(text), "ExecStart=/usr/local/bin/stonetown", "ExecStart=/bin/true", 1)
	if err := os.WriteFile(unit, []byte(replaced), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", unit}, {"security", "--offline=true", "--threshold=20", unit}} {
		if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
