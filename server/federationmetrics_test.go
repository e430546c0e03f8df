package server

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
)

// The metrics of sign-ins at providers are registered once, and count by their labels.
func TestFederationMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newFederationMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newFederationMetrics(registry); err == nil {
		t.Error("registered twice")
	}
	m.signIn(federation.OIDC, "accepted")
	m.signIn(federation.OIDC, "accepted")
	m.request(relyingparty.Token, time.Second, nil)
	m.request(relyingparty.Token, time.Second, errors.New("x"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, one := range f.Metric {
			name := f.GetName()
			for _, label := range one.Label {
				name += " " + label.GetValue()
			}
			got[name] = one.GetCounter().GetValue() + one.GetHistogram().GetSampleSum()
		}
	}
	for name, want := range map[string]float64{
		"stonetown_federation_sign_ins_total oidc accepted":           2,
		"stonetown_federation_request_duration_seconds success token": 1,
		"stonetown_federation_request_duration_seconds failure token": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v: %v", name, got[name], want, got)
		}
	}
}
