package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/webhooks"
)

// oldestDueTimeout bounds the query of a scrape.
const oldestDueTimeout = time.Second

// webhookMetrics are the metrics of webhooks. Those of attempts, dead letters and events are of
// this process; the oldest due delivery is that of all processes, and is absent while the
// database does not respond.
type webhookMetrics struct{ service *webhooks.Service }

var (
	webhookAttempts = prometheus.NewDesc("stonetown_webhook_attempts_total",
		"Attempts at webhook deliveries, by result (success, or the class of the failure) and by receiver (failing: its attempts before had failed repeatedly).",
		[]string{"result", "receiver"}, nil)
	webhookDeadLetters = prometheus.NewDesc("stonetown_webhook_dead_letters_total", "Webhook deliveries that became dead letters after their last attempt.", nil, nil)
	webhookOldestDue   = prometheus.NewDesc("stonetown_webhook_oldest_due_seconds", "How long the oldest due webhook delivery of all processes has been due.", nil, nil)
	webhookBehind      = prometheus.NewDesc("stonetown_webhook_events_behind", "Events that were not compared with the webhook subscriptions at the last poll.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (webhookMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{webhookAttempts, webhookDeadLetters, webhookOldestDue, webhookBehind} {
		descriptions <- d
	}
}

// Collect implements [prometheus.Collector].
func (m webhookMetrics) Collect(metrics chan<- prometheus.Metric) {
	stats := m.service.Stats()
	for class, n := range stats.Attempts {
		receiver := "healthy"
		if class.Failing {
			receiver = "failing"
		}
		metrics <- prometheus.MustNewConstMetric(webhookAttempts, prometheus.CounterValue, float64(n), class.Result, receiver)
	}
	metrics <- prometheus.MustNewConstMetric(webhookDeadLetters, prometheus.CounterValue, float64(stats.DeadLettered))
	metrics <- prometheus.MustNewConstMetric(webhookBehind, prometheus.GaugeValue, float64(stats.Behind))
	ctx, cancel := context.WithTimeout(context.Background(), oldestDueTimeout)
	defer cancel()
	if oldest, err := m.service.OldestDue(ctx); err == nil {
		metrics <- prometheus.MustNewConstMetric(webhookOldestDue, prometheus.GaugeValue, oldest.Seconds())
	}
}
