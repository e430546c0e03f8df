package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The log can be read while the server that writes it runs, and after its end.
func TestAuditExport(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--dev", "--data-dir", dir)
	c := readJSON(t, s.config.bootstrapFile())
	token := s.token(c)
	for _, name := range []string{"document", "folder"} {
		if got := s.define(c, token, name, name); got.StatusCode != 201 {
			t.Fatal(got.Status)
		}
	}
	lines := func(args ...string) []map[string]any {
		t.Helper()
		out, err := command(t, append([]string{"audit", "export", "--data-dir", dir}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var all []map[string]any
		for text := range strings.Lines(out) {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			all = append(all, line)
		}
		return all
	}
	all := lines()
	if len(all) != 2 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	for i, name := range []string{"document", "folder"} {
		line := all[i]
		actor, _ := line["actor"].(map[string]any)
		data, _ := line["data"].(map[string]any)
		definition, _ := data["resource_type"].(map[string]any)
		if line["event_type"] != "resource_type.created" || line["sequence"] != float64(i+1) || line["tenant_id"] != c.TenantID ||
			actor["type"] != "application" || actor["id"] != c.ClientID || line["client_ip"] != "127.0.0.1" ||
			!strings.HasPrefix(line["request_id"].(string), "req_") || definition["name"] != name {
			t.Errorf("line %d: %v", i, line)
		}
	}
	second := all[1]["occurred_at"].(string)
	at, err := time.Parse(time.RFC3339Nano, second)
	if err != nil {
		t.Fatal(err)
	}
	later := at.Add(time.Minute).Format(time.RFC3339)
	if got := lines("--since", later); len(got) != 0 {
		t.Errorf("since %s: %v", later, got)
	}
	if got := lines("--until", later, "--tenant", "dev"); len(got) != 2 {
		t.Errorf("until %s: %v", later, got)
	}
	if got := lines("--until", at.Add(-time.Minute).Format(time.RFC3339), "--tenant", c.TenantID); len(got) != 0 {
		t.Errorf("too early: %v", got)
	}
	ofOrganization := lines("--organization", "dev")
	if len(ofOrganization) != 3 || ofOrganization[0]["event_type"] != "organization.created" || ofOrganization[0]["org_id"] != c.OrgID || ofOrganization[0]["tenant_id"] != nil {
		t.Errorf("events of the organisation: %v", ofOrganization)
	}
	for want, args := range map[string][]string{
		"organisation not found": {"--organization", "other"},
		"tenant not found":       {"--tenant", "other"}, "--since": {"--since", "yesterday"}, "--until": {"--until", "1"},
	} {
		if _, err := command(t, append([]string{"audit", "export", "--data-dir", dir}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	lines(file)
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%s, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := command(t, "audit", "export", "--data-dir", filepath.Join(dir, "nothing")); err == nil {
		t.Error("there is no database to read")
	}
}
