package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ServeEcho answers every POST as the fastest possible check endpoint would: it
// decodes a JSON object and encodes one. What it reaches is the floor under
// every figure that is taken over HTTP.
func ServeEcho(l net.Listener) error {
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var check wireCheck
		if err := json.NewDecoder(r.Body).Decode(&check); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var answer struct {
			Data wireDecision `json:"data"`
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(http.ErrAbortHandler) // the client is gone
		}
	}))
}

// echo measures an echo server with the client, and the questions, that the
// HTTP target is measured with.
func echo(ctx context.Context, url string, d *Docs, workers int, duration time.Duration) (Figure, error) {
	h := &HTTP{BaseURL: url, client: newClient(workers)}
	f := Figure{Target: "echo", Measure: "check", Workers: workers, PerCall: 1}
	return measure(ctx, f, duration, func(worker int) func(context.Context) error {
		draw := d.Questioner(3, uint64(worker))
		questions := make([]Question, prepared)
		for i := range questions {
			questions[i] = draw.Next()
		}
		n := 0
		return func(ctx context.Context) error {
			q := &questions[n%prepared]
			n++
			if allowed, err := h.Check(ctx, q); err != nil || allowed {
				return fmt.Errorf("echo: allowed %v: %w", allowed, err)
			}
			return nil
		}
	})
}
