package keys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/oauth/protocol"

	"github.com/google/go-cmp/cmp"
)

// A key's life, told by the plans alone.
func TestPlans(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	next := func(kid string, alg Alg, created time.Duration) Key {
		return Key{KID: kid, Alg: alg, State: Next, CreatedAt: ago(created)}
	}
	active := func(kid string, alg Alg, since time.Duration) Key {
		return Key{KID: kid, Alg: alg, State: Active, CreatedAt: ago(since + day), ActivatedAt: ago(since)}
	}
	retired := func(kid string, since time.Duration) Key {
		return Key{KID: kid, Alg: ES256, State: Retired, CreatedAt: ago(since + 91*day), ActivatedAt: ago(since + 90*day), RetiredAt: ago(since)}
	}
	removed := Key{KID: "gone", Alg: ES256, State: Removed, CreatedAt: ago(300 * day), RemovedAt: ago(200 * day)}
	rs := active("rs", RS256, time.Hour) // of which nothing is due

	const publishing, retiring = day + time.Minute, day + time.Hour
	for name, tc := range map[string]struct {
		by   plan
		keys []Key
		want []step
	}{
		"the first":                {due, nil, []step{{"", ES256, Active}}},
		"the first of two":         {missing(ES256, RS256), nil, []step{{"", ES256, Active}, {"", RS256, Active}}},
		"the second":               {missing(ES256, RS256), []Key{active("a", ES256, 500*day)}, []step{{"", RS256, Active}}},
		"one is missing":           {due, []Key{rs, removed}, []step{{"", ES256, Active}}},
		"one was never needed":     {due, []Key{active("a", ES256, 0)}, nil},
		"one was removed":          {due, []Key{active("a", ES256, 0), {KID: "s", Alg: RS256, State: Removed, RemovedAt: now}}, []step{{"", RS256, Active}}},
		"new":                      {due, []Key{active("a", ES256, 0), rs}, nil},
		"before a successor":       {due, []Key{active("a", ES256, 90*day-publishing-1), rs}, nil},
		"a successor":              {due, []Key{active("a", ES256, 90*day-publishing), rs}, []step{{"", ES256, Next}}},
		"a late successor":         {due, []Key{active("a", ES256, 500*day), rs}, []step{{"", ES256, Next}}},
		"too early to sign":        {due, []Key{active("a", ES256, 500*day), next("n", ES256, publishing-1), rs}, nil},
		"to sign":                  {due, []Key{active("a", ES256, 90*day), next("n", ES256, publishing), rs}, []step{{"a", ES256, Retired}, {"n", ES256, Active}}},
		"to sign, asked for":       {due, []Key{active("a", ES256, 2*day), next("n", ES256, publishing), rs}, []step{{"a", ES256, Retired}, {"n", ES256, Active}}},
		"both algorithms":          {due, []Key{active("a", ES256, 89*day), active("b", RS256, 89*day)}, []step{{"", ES256, Next}, {"", RS256, Next}}},
		"published while retired":  {due, []Key{active("a", ES256, day), rs, retired("r", retiring-1)}, nil},
		"to remove":                {due, []Key{active("a", ES256, day), rs, retired("r", retiring), retired("s", time.Hour)}, []step{{"r", ES256, Removed}}},
		"removed for good":         {due, []Key{active("a", ES256, day), rs, removed}, nil},
		"asked for":                {succeed, []Key{active("a", ES256, 0), rs}, []step{{"", ES256, Next}, {"", RS256, Next}}},
		"asked for again":          {succeed, []Key{active("a", ES256, 0), next("n", ES256, 0), rs, next("m", RS256, 2*day)}, nil},
		"asked for, one has it":    {succeed, []Key{active("a", ES256, 0), rs, next("m", RS256, day), retired("r", 9*day)}, []step{{"", ES256, Next}}},
		"asked for without any":    {succeed, nil, []step{{"", ES256, Active}}},
		"asked for, one algorithm": {succeed, []Key{active("a", ES256, 0)}, []step{{"", ES256, Next}}},
		"an emergency without any": {replace, nil, []step{{"", ES256, Active}}},
		"one in an emergency":      {replace, []Key{active("a", ES256, 0)}, []step{{"a", ES256, Removed}, {"", ES256, Active}}},
		"an emergency": {
			replace,
			[]Key{active("a", ES256, 0), next("n", ES256, 0), removed, retired("r", 0), rs},
			[]step{{"a", ES256, Removed}, {"n", ES256, Removed}, {"r", ES256, Removed}, {"rs", RS256, Removed}, {"", ES256, Active}, {"", RS256, Active}},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.by(tc.keys, now), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What has to hold at any time, whenever somebody looks after the keys and whatever they
// ask for.
func TestLivesOfKeys(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var keys []Key
	asked := false
	var firstKeys []string // of each algorithm
	for i := range Algs {
		firstKeys = append(firstKeys, fmt.Sprint(i+1))
	}
	for made := 0; made < 2000; {
		by := plan(due)
		if made == 0 {
			by = missing(Algs...)
		} else if rand.IntN(50) == 0 {
			by, asked = succeed, true
		}
		for _, s := range by(keys, now) {
			if s.kid == "" {
				made++
				key := Key{KID: fmt.Sprint(made), Alg: s.alg, CreatedAt: now}
				keys = append(keys, key.enter(s.to, now))
				continue
			}
			i := slices.IndexFunc(keys, func(k Key) bool { return k.KID == s.kid })
			keys[i] = keys[i].enter(s.to, now)
		}
		count, nothing := map[step]int{}, len(due(keys, now)) == 0
		for _, k := range keys {
			if nothing && !dueAt(keys, k).After(now) && k.State != Removed {
				t.Fatalf("it is due, and there is no step: %+v", k)
			}
			count[step{"", k.Alg, k.State}]++
			first := slices.Contains(firstKeys, k.KID)
			switch {
			case k.State != Next && !first && k.ActivatedAt.Sub(k.CreatedAt) < 24*time.Hour:
				t.Fatalf("published for %v before it signed: %+v", k.ActivatedAt.Sub(k.CreatedAt), k)
			case k.State == Removed && k.RemovedAt.Sub(k.RetiredAt) < protocol.MaxAccessTokenTTL+time.Hour:
				t.Fatalf("removed too early: %+v", k)
			case k.State == Active && now.Sub(k.ActivatedAt) > signsFor+time.Minute+publishedFor:
				t.Fatalf("signs for too long: %+v", k)
			case k.State == Retired && !asked && !first && k.RetiredAt.Sub(k.ActivatedAt) < signsFor:
				t.Fatalf("signed too shortly: %+v", k)
			}
		}
		for _, alg := range Algs {
			if count[step{"", alg, Active}] != 1 || count[step{"", alg, Next}] > 1 {
				t.Fatalf("%s: %v", alg, count)
			}
		}
		keys = slices.DeleteFunc(keys, func(k Key) bool { return k.State == Removed })
		now = now.Add(rand.N(2 * time.Minute))
	}
}
