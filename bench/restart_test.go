package bench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var serverBinary = flag.String("server", "", "the stonetown binary of BenchmarkRestart; default: it is built")

// afterRestart is the number of checks that BenchmarkRestart sends to a process that has started.
const afterRestart = 1000

// BenchmarkRestart measures a process of the product's binary from its start until it has answered
// over HTTP. "new" starts on an empty folder, and answers a request for the keys of the first
// tenant. "restart" starts on the embedded database of a process that has ended, with docs in it and
// in memory, and answers checks. They come from one client, one after the other, with a token from before.
func BenchmarkRestart(b *testing.B) {
	binary := *serverBinary
	if binary == "" {
		binary = filepath.Join(b.TempDir(), "stonetown")
		if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "stonetown/cmd/stonetown").CombinedOutput(); err != nil {
			b.Fatalf("build: %v: %s", err, out)
		}
	}
	served, admin, err := FreeAddresses()
	if err != nil {
		b.Fatal(err)
	}
	at := []string{"--listen", served, "--admin-listen", admin}

	b.Run("new", func(b *testing.B) {
		var first time.Duration
		for b.Loop() {
			h := HTTP{client: newClient(1)}
			took, stop := started(b, binary, b.TempDir(), at, func(ctx context.Context) error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+served+"/.well-known/jwks.json", nil)
				if err != nil {
					return err
				}
				return h.do(req, new(bytes.Buffer))
			})
			first += took
			stop()
		}
		b.ReportMetric(first.Seconds()*1e3/float64(b.N), "first-ms")
	})
	b.Run("restart", func(b *testing.B) {
		dir, d := b.TempDir(), NewDocs()
		h, stop, err := Start(b.Context(), binary, dir, at...)
		if err != nil {
			b.Fatal(err)
		}
		loadAll(b, h, d)
		draw := d.Questioner(1, 0)
		if err := verified(h, draw.Next())(b.Context()); err != nil {
			b.Fatal(err)
		}
		awaitResident(b, "http://"+admin+"/metrics")
		stop()
		var first, all time.Duration
		for b.Loop() {
			h.calls = NewClient() // the connections of the last round lead nowhere
			var calls [afterRestart]func(context.Context) error
			for i := range calls {
				calls[i] = verified(h, draw.Next())
			}
			began := time.Now()
			took, stop := started(b, binary, dir, at, calls[0])
			first += took
			for _, call := range calls[1:] {
				if err := call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			all += time.Since(began)
			stop()
		}
		b.ReportMetric(first.Seconds()*1e3/float64(b.N), "first-ms")
		b.ReportMetric(all.Seconds()*1e3/float64(b.N), "checks-ms")
	})
}

// awaitResident waits until a process has loaded a tenant, by its metrics.
func awaitResident(b *testing.B, metrics string) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(metrics)
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			b.Fatal(err)
		}
		if bytes.Contains(text, []byte(`stonetown_engine_loads_total{outcome="loaded"} 1`)) {
			return
		}
		if time.Now().After(deadline) {
			b.Fatal("the tenant is not resident")
		}
	}
}

// started starts the product and returns the time until it has answered a call, which is repeated
// while nothing listens.
func started(b *testing.B, binary, dir string, args []string, call func(context.Context) error) (took time.Duration, stop func()) {
	b.Helper()
	began := time.Now()
	product, err := launch(b.Context(), binary, dir, args...)
	if err != nil {
		b.Fatal(err)
	}
	for {
		err := call(b.Context())
		took = time.Since(began)
		if err == nil {
			return took, func() { StopProcess(product) }
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || took > 30*time.Second {
			StopProcess(product)
			b.Fatal(err)
		}
		time.Sleep(500 * time.Microsecond)
	}
}

// verified returns a call that asks a question and compares the answer.
func verified(t Target, q Question) func(context.Context) error {
	call := t.Prepare([]Question{q})
	return func(ctx context.Context) error {
		allowed, err := call(ctx)
		if err == nil && allowed[0] != q.Allowed {
			err = wrong(&q, allowed[0])
		}
		return err
	}
}
