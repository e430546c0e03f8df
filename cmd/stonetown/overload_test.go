package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	overloadConnections = flag.Int("overload-connections", 1000, "how many connections send batches at the same time")
	overloadTime        = flag.Duration("overload-time", 4*time.Second, "for how long they do")
	// overloadMiB is the memory that the server may use.
	overloadMiB = 3 << 9
)

// A thousand connections send batches of the maximum size continuously. Each gets a response or
// a Retry-After, or is closed. The memory of the server stays within the limits in
// docs/operations.md, and afterwards the server works as before. Connections that do not
// complete their headers are closed.
func TestOverloadedServer(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, "--data-dir", dir, "--log-level", "error")
	token := p.token(t, readJSON(t, dir+"/bootstrap.json"))
	documents := map[string]any{"name": "document", "relations": []any{map[string]string{"name": "viewer"}}}
	if status, _, text := p.send(token, "", "POST", "resource-types", documents); status != 201 {
		t.Fatal(text)
	}
	ann := map[string]string{"type": "user", "id": "ann"}
	if status, _, text := p.send(token, "", "POST", "resources/document/d0/relations", map[string]any{"subject": ann, "relation": "viewer"}); status != 201 {
		t.Fatal(text)
	}
	one := map[string]any{"subject": ann, "action": "view", "resource": map[string]string{"type": "document", "external_id": "d0"}}
	if status, _, text := p.send(token, "", "POST", "resources/check", one); status != 200 {
		t.Fatal(text)
	}
	before := p.memoryMiB(t, "VmRSS")

	// 500 checks with contexts that fill the body.
	var checks []any
	for i := range 500 {
		checks = append(checks, map[string]any{
			"action": "view", "resource": map[string]string{"type": "document", "external_id": fmt.Sprintf("d%d", i)},
			"context": map[string]any{"note": strings.Repeat("x", 1900), "numbers": []int{1, 2, 3, 4, 5, 6, 7, 8, 9, i}, "deep": map[string]any{"er": map[string]any{"still": true}}},
		})
	}
	body, err := json.Marshal(map[string]any{"subject": ann, "checks": checks})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 1<<20 {
		t.Fatalf("%d bytes are too many", len(body))
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: *overloadConnections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var slow []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST /api/v1/resources/check HTTP/1.1\r\nHost:")
		slow = append(slow, conn)
	}
	var answered, refused, cut atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), *overloadTime)
	defer cancel()
	for range *overloadConnections {
		wg.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				req, err := http.NewRequestWithContext(t.Context(), "POST", p.base+"/api/v1/resources/check-batch", bytes.NewReader(body))
				if err != nil {
					panic(err)
				}
				req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
				resp, err := client.Do(req)
				if err != nil { // refused before the body was sent; not every client can read the response then
					if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
						t.Error(err)
						return
					}
					cut.Add(1)
					continue
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch {
				case err != nil:
					t.Error(err)
				case resp.StatusCode == 200 && strings.Count(string(text), `"allowed":`) == 500:
					answered.Add(1)
				case resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("%s %.300s", resp.Status, text)
				}
			}
		})
	}
	wg.Wait()
	most := p.memoryMiB(t, "VmHWM")
	t.Logf("%d bytes on each of %d connections: %d answered, %d refused, %d cut off; memory before %d MiB, at most %d MiB",
		len(body), *overloadConnections, answered.Load(), refused.Load(), cut.Load(), before, most)
	if most > overloadMiB || answered.Load() == 0 {
		t.Errorf("the server took %d MiB, want at most %d", most, overloadMiB)
	}
	for _, conn := range slow {
		if err := conn.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection without a complete header is not closed")
		}
	}
	if status, _, text := p.send(token, "", "POST", "resources/check", one); status != 200 {
		t.Errorf("afterwards: %d %s", status, text)
	}
}

// memoryMiB is a line of the kernel's statistics of the process.
func (p *process) memoryMiB(t *testing.T, line string) int {
	t.Helper()
	if runtime.GOOS != "linux" { // other systems do not have them
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.Atoi(kib)
	if err != nil {
		t.Fatal(err)
	}
	return n >> 10
}
