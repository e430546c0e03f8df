package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteHTML(t *testing.T) {
	r := &Report{Go: "go", CPUs: 2, Figures: []Figure{
		{Target: "a<b", Workload: "docs", Measure: "check", Workers: 16, PerCall: 1, PerSecond: 1234567.4, P50: 12.34, P99: 4321},
		{Target: "c", Workload: "docs", Measure: "check", Workers: 16, PerCall: 1, PerSecond: 12},
		{Target: "c", Workload: "docs", Measure: "batch", Workers: 1, PerCall: 500, PerSecond: 999, P50: 2.5e6, P99: 2.5e6, Reads: 1890.2},
		{Target: "d", Workload: "docs", Measure: "batch", Workers: 1, PerCall: 500, Failed: "it was <too> slow"},
	}}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := r.WriteHTML(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, want := range []string{"a&lt;b", "1,234,567/s, p50 12.3 µs, p99 4.32 ms", ">12/s<", "999/s, p50 2.5 s", "failed: it was &lt;too&gt; slow", "<td>failed<td>", "<td>1,890</tr>", "docs: batch, 1 at once"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, "<h2>"); n != 2 {
		t.Errorf("%d charts, want 2", n)
	}
}
