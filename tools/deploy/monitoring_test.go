package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promtool runs a command of promtool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The alerts fire when they should, by their tests in testdata.
func TestAlerts(t *testing.T) {
	rules, err := filepath.Abs(filepath.Join(folder, "prometheus/stonetown.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", rules)
	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(tests), "[RULES]", "["+rules+"]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}

// dashboard returns the queries of the dashboard, with values for its variables.
func dashboard(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "grafana/stonetown.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$job", "stonetown")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries = append(queries, values.Replace(q.Expr))
		}
	}
	if len(queries) < 20 {
		t.Fatalf("the dashboard has only %d queries", len(queries))
	}
	return queries
}

// Prometheus parses the queries of the dashboard.
func TestDashboard(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, q := range dashboard(t) {
		if strings.Contains(q, "$") {
			t.Errorf("%s has a variable that the dashboard does not define", q)
		}
		fmt.Fprintf(&rules, "  - {record: \"query:%d\", expr: %q}\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// The alerts and the dashboard are about metrics that docs/operations.md has, and the dashboard about
// all of these.
func TestMonitoredMetrics(t *testing.T) {
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(filepath.Join(folder, "prometheus/stonetown.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`stonetown_[a-z_]+`)
	_, table, _ := strings.Cut(string(operations), "\n## Metrics\n")
	table, _, _ = strings.Cut(table, "\n\nLog lines")
	documented := metric.FindAllString(table, -1)
	var shown []string
	for _, name := range append(metric.FindAllString(strings.Join(dashboard(t), "\n"), -1), "") {
		shown = append(shown, regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, ""))
	}
	for _, name := range documented {
		if !slices.Contains(shown, name) {
			t.Errorf("the dashboard lacks %s", name)
		}
	}
	alerted := regexp.MustCompile(`_(bucket|count|sum)\b`).ReplaceAllString(string(rules), "")
	for _, name := range append(shown, metric.FindAllString(alerted, -1)...) {
		if name != "" && !slices.Contains(documented, name) {
			t.Errorf("%s is not a metric of the product", name)
		}
	}
}
