package bench

import (
	"fmt"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
)

// BenchmarkLargerThanMemory runs [LargerThanMemory] on each database, also without mapped files,
// without memory, and with questions of which some are frequent.
func BenchmarkLargerThanMemory(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		d := NewDocs()
		for i, w := range []*LargerThanMemory{
			{d, d, 4, true},
			{d, d, 4, false},
			{d, d, 0, false},
			{d, d.Zipf(), 4, true},
			{d, d.Zipf(), 4, false},
			{d, d.Zipf(), 0, false},
		} {
			memory := map[int64]string{4: "a quarter", 0: "none"}[w.part]
			if w.files {
				memory += " and a file"
			}
			b.Run(w.draw.Name()+"/"+memory, func(b *testing.B) {
				p := newInProcess(b, openStore(b, sqldb.Config{URL: url}), engine.Config{})
				p.Tenant = fmt.Sprint("tnt_", i) // an empty one
				benchmark(b, p, w, 5*time.Second)
			})
		}
	})
}
