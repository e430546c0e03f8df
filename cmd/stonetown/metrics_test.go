package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The table of metrics in docs/operations.md names each metric of the product, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	config, err := resolve(t, []string{"--dev", "--data-dir", t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(config, new(bytes.Buffer), newLogger(config, new(syncBuffer)))
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	registry := prometheus.NewRegistry()
	if err := p.openServer(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	if _, err := p.server.Handler(); err != nil {
		t.Fatal(err)
	}
	registerMetrics(registry, p.server)

	metric := regexp.MustCompile(`stonetown_[a-z_]+`)
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	var have []string
	for d := range descriptions {
		if name := metric.FindString(d.String()); name != "" && !slices.Contains(have, name) {
			have = append(have, name)
		}
	}
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(operations), "\n## Metrics\n")
	table, _, _ = strings.Cut(table, "\n\nLog lines")
	documented := metric.FindAllString(table, -1)
	for _, name := range have {
		if !slices.Contains(documented, name) {
			t.Errorf("the table lacks %s", name)
		}
	}
	for _, name := range metric.FindAllString(string(operations), -1) {
		if !slices.Contains(have, name) {
			t.Errorf("the docs name %s, which there is not", name)
		}
	}
	if len(have) < 20 {
		t.Errorf("only %d metrics", len(have))
	}
}
