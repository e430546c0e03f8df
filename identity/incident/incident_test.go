package incident

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const tenant = "tnt_a"

// people are n users, and the mails to them.
type people struct {
	n int

	mu    sync.Mutex
	mails map[string]int // by user
}

func userID(n int) string { return fmt.Sprintf("usr_%05d", n) }

func (p *people) UsersByID(_ context.Context, _ string, userIDs []string) (map[string]identity.User, error) {
	found := make(map[string]identity.User)
	for _, id := range userIDs {
		found[id] = identity.User{ID: id}
	}
	return found, nil
}

func (p *people) UserIDs(_ context.Context, _, after string, limit int) (ids []string, err error) {
	for n := range p.n {
		if id := userID(n); id > after && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (p *people) SendAnnouncement(_ context.Context, _, userID, subject, message string) error {
	if userID == "usr_00007" {
		return identity.ErrUserNotFound
	}
	if subject != "Subject" || message != "Message" {
		return errors.New("another message")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mails[userID]++
	return nil
}

// Processes stop while they notify users: every user is notified once.
func TestNotify(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": pgtest.URL,
	} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/all=%t", name, all), func(t *testing.T) { testNotify(t, url(t), all) })
		}
	}
}

func testNotify(t *testing.T, url string, all bool) {
	ctx := t.Context()
	db, err := sqldb.Open(ctx, sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(ctx, Migrations(), sqlstore.Migrations(), jobs.Migrations(), eventlog.Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	p := &people{n: 2*stepUsers + 50, mails: make(map[string]int)}
	process := func() *Registry {
		q, err := jobs.New(jobs.Config{DB: db, Seal: key})
		if err != nil {
			t.Fatal(err)
		}
		return New(Config{DB: db, Users: p, Mail: p, Jobs: q})
	}
	r := process()
	i, err := r.Open(ctx, tenant, Settings{Title: "Title", Severity: Low, AllUsers: all})
	if err != nil {
		t.Fatal(err)
	}
	if !all {
		var ids []string
		for n := range p.n {
			ids = append(ids, userID(n))
		}
		if i, _, err = r.AddAffected(ctx, tenant, i.ID, ids); err != nil || i.Affected != p.n {
			t.Fatalf("%d affected, %v", i.Affected, err)
		}
	}
	n, err := r.Notify(ctx, tenant, i.ID, "Subject", "Message")
	if err != nil {
		t.Fatal(err)
	}
	waiting := int64(1)
	for life := 20 * time.Millisecond; waiting > 0; life += life / 4 {
		if life > time.Minute {
			t.Fatalf("%d jobs are left", waiting)
		}
		stopped, stop := context.WithTimeout(ctx, life)
		process().jobs.Run(stopped)
		stop()
		if err := db.QueryRow(ctx, `SELECT COUNT(*) FROM jobs`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	for n := range p.n {
		want := 1
		if n == 7 { // was deleted
			want = 0
		}
		if got := p.mails[userID(n)]; got != want {
			t.Errorf("user %d got %d mails, want %d", n, got, want)
		}
	}
	// A step that is run again has no effect.
	if err := process().step(ctx, tenant, step{i.ID, n.ID, ""}); err != nil {
		t.Fatal(err)
	}
	found, err := r.Notifications(ctx, tenant, i.ID)
	if err != nil || len(found) != 1 || found[0].Mails != p.n || found[0].FinishedAt.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
}
