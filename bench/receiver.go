package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/webhooks/signature"
)

// receiver receives deliveries on loopback and answers with 204.
type receiver struct {
	URL    string
	server http.Server
	// arrived, if not nil, is called when the headers of a request have arrived. It must be
	// quick and is called concurrently.
	arrived func(at time.Time, r *http.Request)
	// hangs keeps requests without an answer until their clients close them.
	hangs atomic.Bool
	// last is a request that arrived, with its body.
	last atomic.Pointer[http.Request]
}

// receive starts a receiver.
func receive(arrived func(at time.Time, r *http.Request)) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	v := &receiver{URL: "http://" + l.Addr().String() + "/hook", arrived: arrived}
	v.server.Handler = http.HandlerFunc(v.serve)
	go func() { _ = v.server.Serve(l) }() // until Close
	return v, nil
}

func (v *receiver) serve(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	if v.arrived != nil {
		v.arrived(at, r)
	}
	if v.last.Load() == nil {
		body, _ := io.ReadAll(r.Body)
		last := r.Clone(context.Background())
		last.Body, last.GetBody = nil, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		v.last.Store(last)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if v.hangs.Load() {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (v *receiver) Close() error { return v.server.Close() }

// floor sends the last request that a receiver got to it again, from a client that does nothing
// else: workers at a time for a duration, each after a pause. It returns the requests per
// second, and the latencies from the call to the arrival if there is one worker.
func floor(ctx context.Context, v *receiver, workers int, pause, duration time.Duration) (perSecond float64, _ latencies, err error) {
	last := v.last.Load()
	if last == nil {
		return 0, latencies{}, errors.New("the receiver got no request")
	}
	stream, err := last.GetBody()
	if err != nil {
		return 0, latencies{}, err
	}
	body, err := io.ReadAll(stream)
	if err != nil {
		return 0, latencies{}, err
	}
	arrivals := make(chan time.Time, workers)
	again, err := receive(func(at time.Time, _ *http.Request) { arrivals <- at })
	if err != nil {
		return 0, latencies{}, err
	}
	defer again.Close()
	client := newClient(workers)
	defer client.CloseIdleConnections()
	found := newLatencies()
	var n, failed atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range workers {
		wg.Go(func() {
			for time.Since(began) < duration && ctx.Err() == nil {
				time.Sleep(pause)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, again.URL, bytes.NewReader(body))
				if err != nil {
					failed.Add(1)
					return
				}
				req.Header = last.Header.Clone()
				start := time.Now()
				res, err := client.Do(req)
				if err != nil {
					failed.Add(1)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if at := <-arrivals; workers == 1 {
					found.add(at.Sub(start))
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() > 0 {
		return 0, latencies{}, fmt.Errorf("floor: %d workers failed", failed.Load())
	}
	return float64(n.Load()) / time.Since(began).Seconds(), found, ctx.Err()
}

// deliveryOf identifies a delivery by the headers of its request.
type deliveryOf struct{ event, delivery string }

// arrivals collects the arrivals of deliveries. It is safe for concurrent use.
type arrivals struct {
	mu    sync.Mutex
	at    map[deliveryOf]time.Time
	twice int
	last  time.Time
}

func newArrivals() *arrivals { return &arrivals{at: map[deliveryOf]time.Time{}} }

// add is for [receive].
func (a *arrivals) add(at time.Time, r *http.Request) {
	of := deliveryOf{r.Header.Get(signature.HeaderID), r.Header.Get(signature.HeaderDelivery)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.at[of]; ok {
		a.twice++
		return
	}
	a.at[of] = at
	if at.After(a.last) {
		a.last = at
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// await waits until so many deliveries have arrived, and fails if one of them arrived twice.
func (a *arrivals) await(ctx context.Context, want int, patience time.Duration) error {
	for deadline := time.Now().Add(patience); a.count() < want; time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d deliveries arrived, not %d", a.count(), want)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.twice > 0 {
		return fmt.Errorf("%d deliveries arrived twice", a.twice)
	}
	return nil
}
