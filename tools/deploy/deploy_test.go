package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
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
