package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestStatement(t *testing.T) {
	text, err := statement(strings.NewReader(sum+"  stonetown-1-linux-amd64\n"+sum+"  stonetown-1.cdx.json\n"), state{commit: strings.Repeat("a", 40), version: "go1.26.8"})
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != predicate || len(s.Subject) != 2 || s.Subject[1].Name != "stonetown-1.cdx.json" || s.Subject[0].Digest["sha256"] != sum ||
		s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != strings.Repeat("a", 40) || s.Predicate.RunDetails.Builder.ID != localBuilder {
		t.Errorf("%s", text)
	}
	for _, sums := range []string{"", "x", sum + " one-space", sum[1:] + "  short", sum + "  a\n\n"} {
		if _, err := statement(strings.NewReader(sums), state{}); err == nil {
			t.Errorf("%q was accepted", sums)
		}
	}
}
