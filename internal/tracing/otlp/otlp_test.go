package otlp

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A receiver that fails, or does not answer, delays nothing.
func TestExportErrors(t *testing.T) {
	release := make(chan struct{})
	for name, answer := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) },
		"silent":  func(_ http.ResponseWriter, r *http.Request) { <-release },
	} {
		t.Run(name, func(t *testing.T) {
			receiver := httptest.NewServer(answer)
			defer receiver.Close()
			if name == "silent" {
				defer close(release)
			}
			var out bytes.Buffer
			tracer, err := New(Config{URL: receiver.URL + "/v1/traces", Sample: 1, Logger: slog.New(slog.NewTextHandler(&out, nil))})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for range 3 * queueSize {
				_, span := tracer.Request(t.Context(), httptest.NewRequest("GET", "http://a.test/path", nil))
				span.End(nil)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("spans took %v", took)
			}
			began = time.Now()
			tracer.Close()
			if took := time.Since(began); took > flushTime+time.Second {
				t.Errorf("Close took %v", took)
			}
			// An export that Close interrupts may fail before or after Close has given up.
			most := map[string]int{"refuses": 1, "silent": 2}[name]
			if n := strings.Count(out.String(), "level=WARN"); n < 1 || n > most {
				t.Errorf("%d warnings\n%s", n, out.String())
			}
		})
	}
}
