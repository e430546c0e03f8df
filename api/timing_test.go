package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/password"
)

// TestTimingTellsNothing compares the response times for addresses with and without an account.
// They must not be distinguishable better than by chance.
func TestTimingTellsNothing(t *testing.T) {
	const people = 250
	w := newWorld(t, databases["SQLite"](t), nil)
	c := w.tenant(t, "timing")
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := password.NewHash(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	for i := range people {
		_, err := w.config.Users.Create(context.Background(), tenant.ID, identity.NewUser{
			Email: fmt.Sprintf("known%03d@example.com", i), EmailVerified: true, PasswordHash: hash,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	anon := c.with("")
	for what, form := range map[string]object{
		"/sign-in":         {"password": "a wrong password"},
		"/sign-up":         {"password": "a long enough password"},
		"/password/forgot": {},
		"/email/resend":    {},
		"/identify":        {},
		"/webauthn/begin":  {},
	} {
		t.Run(what[1:], func(t *testing.T) {
			var known, unknown []time.Duration
			ask := func(email string) time.Duration {
				form["email"] = email
				text, err := json.Marshal(form)
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				h := anon.raw(t, "POST", authPath+what, map[string][]string{"Content-Type": {"application/json"}}, string(text))
				took := time.Since(begin)
				if h.Get("X-Request-Id") == "" {
					t.Fatal("no answer")
				}
				return took
			}
			// The order in a pair is random, so that noise of no period is of one of the two.
			for i := range people {
				first, second := fmt.Sprintf("known%03d@example.com", i), fmt.Sprintf("other%03d@example.com", i)
				if rand.IntN(2) == 0 {
					known, unknown = append(known, ask(first)), append(unknown, ask(second))
				} else {
					unknown, known = append(unknown, ask(second)), append(known, ask(first))
				}
			}
			// Mann-Whitney: the share of pairs in which the known address takes longer. Without a
			// difference it is about a half.
			n := float64(people)
			u := rankSum(known, unknown) - n*(n+1)/2
			got := u / (n * n)
			deviation := math.Sqrt((2*n + 1) / (12 * n * n))
			z := (got - .5) / deviation
			t.Logf("P(known > unknown) = %.3f, z = %.1f, medians %v and %v", got, z, median(known), median(unknown))
			if math.Abs(z) > 5 {
				t.Errorf("the time tells who has an account: P(known > unknown) = %.3f, %.1f standard deviations from 1/2", got, z)
			}
		})
	}
}

// rankSum returns the sum of the ranks of a among a and b; equal values share their rank.
func rankSum(a, b []time.Duration) (sum float64) {
	type sample struct {
		d     time.Duration
		fromA bool
	}
	var all []sample
	for _, d := range a {
		all = append(all, sample{d, true})
	}
	for _, d := range b {
		all = append(all, sample{d, false})
	}
	slices.SortFunc(all, func(x, y sample) int { return cmp.Compare(x.d, y.d) })
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].d == all[i].d {
			j++
		}
		rank := float64(i+j+1) / 2
		for ; i < j; i++ {
			if all[i].fromA {
				sum += rank
			}
		}
	}
	return sum
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}
