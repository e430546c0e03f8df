package ratelimit

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string, clock func() time.Time) *Limiter {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{DB: db, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t *testing.T, l *Limiter, b Bucket, limit Limit) Decision {
	t.Helper()
	d, err := l.Take(context.Background(), b, limit)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var ann = Bucket{Tenant: "tnt_a", Counted: Counted{Admin, Caller}, Key: "ann"}

func TestAllAtOnceAndThenEvenly(t *testing.T) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	l := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"), func() time.Time { return now })
	limit := Limit{60, time.Minute}
	for i := range 60 {
		if d := take(t, l, ann, limit); d.Limited || d.Remaining != 59-i {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	d := take(t, l, ann, limit)
	if !d.Limited || d.Remaining != 0 || d.RetryAfter != time.Second {
		t.Fatalf("one too many: %+v", d)
	}
	now = now.Add(time.Second)
	if d := take(t, l, ann, limit); d.Limited {
		t.Errorf("after a second: %+v", d)
	}
	if d := take(t, l, ann, limit); !d.Limited {
		t.Errorf("two after a second: %+v", d)
	}
	for name, b := range map[string]Bucket{
		"tenant": {"tnt_b", Counted{Admin, Caller}, "ann"}, "family": {"tnt_a", Counted{Client, Caller}, "ann"},
		"kind": {"tnt_a", Counted{Admin, IP}, "ann"}, "key": {"tnt_a", Counted{Admin, Caller}, "bob"},
	} {
		if take(t, l, b, limit).Limited {
			t.Errorf("another %s shares the bucket", name)
		}
	}
	if d := take(t, l, ann, Limit{}); d.Limited {
		t.Error("no limit is a limit")
	}
	now = now.Add(time.Minute)
	l.local.collect()
	if n := len(l.local.entries); n != 0 {
		t.Errorf("%d full buckets are remembered", n)
	}
}

// Whoever has many addresses can neither fill the memory nor push others out and get
// their limit anew.
func TestBucketsAreBounded(t *testing.T) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	l := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"), func() time.Time { return now })
	l.local.most = 1000
	limit := Limit{2, time.Minute}
	b := ann
	for range 2 {
		take(t, l, ann, limit)
	}
	limited := 0
	for i := range 50_000 {
		b.Key = fmt.Sprint("address ", i)
		if take(t, l, b, limit).Limited {
			limited++
		}
	}
	if n := len(l.local.entries); n > 1000+sharedBuckets {
		t.Errorf("%d buckets are kept", n)
	}
	if limited < 48_000 || !take(t, l, ann, limit).Limited {
		t.Errorf("%d of 50,000 were limited, and the caller that was limited before: %t", limited, take(t, l, ann, limit).Limited)
	}
	now = now.Add(time.Hour)
	b.Key = "another"
	if take(t, l, b, limit); len(l.local.entries) > 1 {
		t.Errorf("%d full buckets are kept", len(l.local.entries))
	}
}

// Two processes on one database share a limit, however many requests race.
func TestSharedLimit(t *testing.T) {
	url := pgtest.URL(t)
	processes := []*Limiter{open(t, url, nil), open(t, url, nil)}
	limit := Limit{20, time.Hour}
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if !take(t, processes[i%2], ann, limit).Limited {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 20 {
		t.Errorf("%d requests were allowed, want 20", allowed.Load())
	}
	before := processes[0].shared.db.Stats().Statements
	if d := take(t, processes[0], ann, limit); !d.Limited || d.RetryAfter <= 0 || d.RetryAfter > 3*time.Minute {
		t.Errorf("%+v", d)
	}
	if asked := processes[0].shared.db.Stats().Statements - before; asked != 0 {
		t.Errorf("a request of a flood asked the database %d times", asked)
	}
}

func TestSharedBucketsAreCollected(t *testing.T) {
	l := open(t, pgtest.URL(t), nil)
	for i := range 20 {
		b := ann
		b.Key = fmt.Sprint(i)
		take(t, l, b, Limit{1000, time.Second})
	}
	take(t, l, ann, Limit{1, time.Hour})
	time.Sleep(10 * time.Millisecond)
	if err := l.shared.collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := l.shared.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM rate_limits`).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d buckets are left, %v", left, err)
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"6000/h": {6000, time.Hour}, "1/s": {1, time.Second}, "60/min": {60, time.Minute}, "5/d": {5, 24 * time.Hour}, "unlimited": {},
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "6000", "6000/", "/h", "x/h", "0/h", "-1/h", "1/week", "99999999/h", "1.5/h"} {
		if got, err := ParseLimit(text); err == nil {
			t.Errorf("%q was accepted as %v", text, got)
		}
	}
}

func TestLimits(t *testing.T) {
	text := map[string]string{"token.ip": "5/s", "authz.caller": "unlimited", "client.ip": "7/d"}
	limits, err := ParseLimits(text)
	if err != nil || !maps.Equal(limits.Text(), text) {
		t.Errorf("%v, %v", limits, err)
	}
	for _, c := range All() {
		if got, err := ParseCounted(c.String()); err != nil || got != c {
			t.Errorf("%s: %v, %v", c, got, err)
		}
	}
	for _, bad := range []map[string]string{{"token": "1/s"}, {"token.user": "1/s"}, {"none.ip": "1/s"}, {"x.ip": "1/s"}, {"token.ip": ""}} {
		if got, err := ParseLimits(bad); err == nil {
			t.Errorf("%v: %v", bad, got)
		}
	}
	own, other := Counted{Token, IP}, Counted{Admin, Caller}
	l := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"), time.Now)
	if got := l.Limit(limits, own); got != limits[own] {
		t.Errorf("the tenant's own: %v", got)
	}
	if got := l.Limit(limits, other); got != Defaults()[other] {
		t.Errorf("the default: %v", got)
	}
	if got := l.Limit(limits, Counted{Authz, Caller}); got != (Limit{}) {
		t.Errorf("none: %v", got)
	}
}
