package eventlog

import (
	"testing"
	"time"
)

func TestBefore(t *testing.T) {
	everywhere(t, func(f *fixture) {
		before := func(position int64, limit int) []string {
			f.Helper()
			events, err := f.Before(f.Context(), "a", position, limit)
			if err != nil {
				f.Fatal(err)
			}
			return texts(events)
		}
		f.equal("empty", before(0, 2), []string(nil))
		f.append("a", `{"n":1}`, `{"n":2}`)
		f.append("b", `{"n":9}`)
		f.append("a", `{"n":3}`)
		f.equal("newest", before(0, 2), []string{`3{"n":3}`, `2{"n":2}`})
		f.equal("next", before(2, 2), []string{`1{"n":1}`})
		f.equal("last", before(1, 2), []string(nil))
		f.equal("of the future", before(99, 9), []string{`3{"n":3}`, `2{"n":2}`, `1{"n":1}`})
		f.now = f.now.Add(Retention + time.Hour)
		if err := f.Collect(f.Context()); err != nil {
			f.Fatal(err)
		}
		f.equal("no longer kept", before(0, 2), []string(nil))
		f.append("a", `{"n":4}`)
		f.equal("since then", before(0, 9), []string{`4{"n":4}`})
	})
}
