package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// Events that come at once commit together, each once and in the order of its own caller;
// one that cannot be committed fails alone.
func TestRecorder(t *testing.T) {
	everywhere(t, func(f *fixture) {
		r := NewRecorder(f.db)
		const callers, each = 50, 20
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				for n := range each {
					tenant := fmt.Sprintf("tnt_%d", caller%3)
					text := jsontext.Value(fmt.Sprintf(`{"caller":%d,"n":%d}`, caller, n))
					if err := r.Record(f.Context(), tenant, New("a", Origin{}, text), New("b", Origin{}, text)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		seen := map[string]int{}
		for tenant := range 3 {
			last := map[string]int{}
			err := f.All(f.Context(), fmt.Sprintf("tnt_%d", tenant), func(e Event) error {
				var caller, n int
				if _, err := fmt.Sscanf(string(e.Data), `{"caller":%d,"n":%d}`, &caller, &n); err != nil {
					return err
				}
				key := fmt.Sprint(e.Type, caller)
				if before, ok := last[key]; ok && n != before+1 || !ok && n != 0 {
					return fmt.Errorf("%s after %d comes %d", key, before, n)
				}
				last[key] = n
				seen[string(e.Type)]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if seen["a"] != callers*each || seen["b"] != callers*each {
			t.Errorf("%v", seen)
		}

		// One that cannot be committed, among others: PostgreSQL takes no NUL.
		bad := New("a\x00", Origin{}, jsontext.Value(`{}`))
		alone := r.Record(f.Context(), "tnt_x", bad)
		errs := make([]error, 20)
		for n := range errs {
			wg.Go(func() {
				e := New("a", Origin{}, jsontext.Value(`{}`))
				if n == 7 {
					e = bad
				}
				errs[n] = r.Record(f.Context(), "tnt_x", e)
			})
		}
		wg.Wait()
		for n, err := range errs {
			if (err == nil) != (n != 7 || alone == nil) {
				t.Errorf("%d: %v", n, err)
			}
		}
		if err := r.Record(f.Context(), "tnt_x", New("a", Origin{}, jsontext.Value(`{}`))); err != nil {
			t.Error("afterwards:", err)
		}
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := r.Record(ctx, "tnt_x", New("a", Origin{}, jsontext.Value(`{}`))); err != nil && !errors.Is(err, context.Canceled) {
			t.Error("canceled:", err)
		}
	})
}
