package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
)

// federationMetrics are the metrics of sign-ins at identity providers. Their labels have a fixed set
// of values, and do not name tenants or connections.
type federationMetrics struct {
	signIns  *prometheus.CounterVec
	requests *prometheus.HistogramVec
}

// newFederationMetrics registers the metrics.
func newFederationMetrics(with prometheus.Registerer) (*federationMetrics, error) {
	m := &federationMetrics{
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stonetown_federation_sign_ins_total",
			Help: "Starts and callbacks of sign-ins at identity providers, by the kind of the connection and the outcome.",
		}, []string{"kind", "outcome"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                        "stonetown_federation_request_duration_seconds",
			Help:                        "Duration of requests to identity providers, by the step of the protocol and the result.",
			NativeHistogramBucketFactor: 1.1,
			Buckets:                     []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}, []string{"step", "result"}),
	}
	for _, c := range []prometheus.Collector{m.signIns, m.requests} {
		if err := with.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// signIn counts a start or a callback.
func (m *federationMetrics) signIn(kind federation.Kind, outcome string) {
	m.signIns.WithLabelValues(string(kind), outcome).Inc()
}

// request counts a request to a provider.
func (m *federationMetrics) request(step relyingparty.Step, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.requests.WithLabelValues(string(step), result).Observe(took.Seconds())
}
