package reporting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const tenant = "tnt_a"

// people are n users without a second factor.
type people struct {
	People
	n       int
	read    func(after string) // is called before a page of users is read
	members int                // of the group staff; 0: there is no group
	refused map[string]string  // why users get no mails
}

func (p *people) EnabledUsers(_ context.Context, _, after string, limit int) (page []User, err error) {
	if p.read != nil {
		p.read(after)
	}
	for n := range p.n {
		if id := fmt.Sprintf("usr_%05d", n); id > after && len(page) < limit {
			page = append(page, User{ID: id, Email: id + "@example.com"})
		}
	}
	return page, nil
}

func (p *people) Groups(context.Context, string, int) ([]Group, error) {
	if p.members == 0 {
		return nil, nil
	}
	return []Group{{"grp_1", "staff"}}, nil
}

func (p *people) MemberIDs(_ context.Context, _, _, after string, limit int) (page []string, err error) {
	next := 0
	if after != "" {
		if next, err = strconv.Atoi(after); err != nil {
			return nil, err
		}
	}
	for ; next < p.members && len(page) < limit; next++ {
		page = append(page, strconv.Itoa(next+1))
	}
	return page, nil
}

func (p *people) Addresses(_ context.Context, _ string, ids []string) (map[string]string, error) {
	found := map[string]string{}
	for _, id := range ids {
		found[id] = id
	}
	return found, nil
}

func (p *people) MayReceive(_ context.Context, _, userID string, scopes []string) (string, error) {
	if !slices.Equal(scopes, []string{"audit:read", "users:read"}) {
		return "", fmt.Errorf("asked for %q", scopes)
	}
	return p.refused[userID], nil
}

// reviewed is an engine with three resources, and more beyond the limit, each of which ann may view, by
// two relations that hold and one that has expired.
type reviewed struct{ Engine }

// reviewTime is the time of the reviews.
var reviewTime = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func (reviewed) Newest(context.Context, string) (string, error) { return "token", nil }

func (reviewed) RecordsAt(_ context.Context, _, _ string, f tuplestore.Filter, _ *tuplestore.Record, _ int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	if f.Presence != tuplestore.OnlyPresence {
		for relation, expires := range map[string]time.Time{"viewer": {}, "editor": reviewTime.Add(time.Hour), "owner": reviewTime} {
			page = append(page, tuplestore.Record{Fact: tuplestore.Fact{
				Tuple:     tuplestore.Tuple{Object: tuplestore.Object{Type: f.ObjectType, ID: f.ObjectID}, Relation: relation, Subject: tuplestore.Subject{Type: "user", ID: "ann"}},
				Qualifier: tuplestore.Qualifier{ExpiresAt: sqldb.Micros(expires)},
			}})
		}
		return page, nil, nil
	}
	for _, id := range []string{"a", "b", "c"} {
		page = append(page, tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{Object: tuplestore.Object{Type: f.ObjectType, ID: id}}}})
	}
	return page, &page[2], nil
}

func (reviewed) ListSubjects(context.Context, string, engine.ListSubjectsRequest) (*engine.SubjectList, error) {
	return &engine.SubjectList{Entries: []engine.SubjectEntry{{Subject: tuplestore.Subject{Type: "user", ID: "ann"}}}}, nil
}

type mails struct {
	mu      sync.Mutex
	sent    []string
	figures []string // of the last
}

func (m *mails) SendReport(_ context.Context, _, userID string, message Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.figures = append(m.sent, userID), message.Figures
	return nil
}

func both(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(t.Context(), Migrations(), sqlstore.Migrations(), jobs.Migrations(), eventlog.Migrations()); err != nil {
				t.Fatal(err)
			}
			test(t, &fixture{db: db, people: &people{}, now: reviewTime})
		})
	}
}

type fixture struct {
	db     *sqldb.DB
	people *people
	mails  mails
	now    time.Time
	found  func() // is called after due reports were found, before they are started; nil: not
}

// process returns a registry, as another process would have it.
func (f *fixture) process(t *testing.T) *Registry {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	q, err := jobs.New(jobs.Config{DB: f.db, Seal: key})
	if err != nil {
		t.Fatal(err)
	}
	inactive := func(context.Context) ([]string, error) {
		if found := f.found; found != nil {
			f.found = nil
			found()
		}
		return []string{"tnt_suspended"}, nil
	}
	return New(Config{DB: f.db, People: f.people, Engine: reviewed{}, Mail: &f.mails, Inactive: inactive, Jobs: q, Clock: func() time.Time { return f.now }})
}

// work runs the jobs of a process until there are none.
func (f *fixture) work(t *testing.T, r *Registry) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.jobs.Run(ctx) })
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		var n int64
		if err := f.db.QueryRow(ctx, `SELECT COUNT(*) FROM jobs`).Scan(&n); err != nil || time.Now().After(end) {
			t.Fatalf("%d jobs are left, %v", n, err)
		}
		if n == 0 {
			break
		}
	}
	stop()
	running.Wait()
}

// Two processes find a report due that was due seven times: it runs once, with one mail. A suspended
// tenant gets none.
func TestScheduledOnce(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		r := f.process(t)
		for _, tenantID := range []string{tenant, "tnt_suspended"} {
			report, err := r.Create(ctx, tenantID, MFACoverage, Settings{Name: "MFA", Schedule: &Schedule{Interval: Daily, Hour: 6, Recipients: []string{"usr_1"}}})
			if err != nil || !report.NextRunAt.Equal(time.Date(2026, 11, 26, 6, 0, 0, 0, time.UTC)) {
				t.Fatalf("%+v, %v", report, err)
			}
		}
		f.now = f.now.AddDate(0, 0, 7)
		var running sync.WaitGroup
		failures := make([]error, 4)
		for n := range failures {
			process := f.process(t)
			running.Go(func() { _, failures[n] = process.StartDue(ctx) })
		}
		running.Wait()
		if err := errors.Join(failures...); err != nil {
			t.Fatal(err)
		}
		f.work(t, r)
		if len(f.mails.sent) != 1 || f.mails.sent[0] != "usr_1" {
			t.Errorf("mails: %v", f.mails.sent)
		}
		for tenantID, want := range map[string]int{tenant: 1, "tnt_suspended": 0} {
			reports, err := r.List(ctx, tenantID, "", 9)
			if err != nil || len(reports) != 1 || !reports[0].NextRunAt.Equal(time.Date(2026, 12, 3, 6, 0, 0, 0, time.UTC)) {
				t.Fatalf("%+v, %v", reports, err)
			}
			runs, err := r.Runs(ctx, tenantID, reports[0].ID, "", 9)
			if err != nil || len(runs) != want {
				t.Errorf("%s: %d runs, %v", tenantID, len(runs), err)
			}
		}
	})
}

// A run that another attempt takes over in the middle has the rows of that attempt only, and ends once.
func TestTakenOver(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.people.n = 2*chunkRows + 7
		first, second := f.process(t), f.process(t)
		report, err := first.Create(ctx, tenant, MFACoverage, Settings{Name: "MFA"})
		if err != nil {
			t.Fatal(err)
		}
		run, err := first.Start(ctx, tenant, report.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Start(ctx, tenant, report.ID); !errors.Is(err, ErrUnderway) {
			t.Errorf("a second run: %v", err)
		}
		j := runJob{report.ID, run.ID}
		taken := false
		f.people.read = func(after string) {
			if after != "" && !taken {
				taken = true
				if err := second.run(ctx, tenant, j); err != nil {
					t.Error(err)
				}
			}
		}
		if err := first.run(ctx, tenant, j); err != nil {
			t.Fatal(err)
		}
		after, _, err := first.GetRun(ctx, tenant, report.ID, run.ID)
		if err != nil || after.State != Completed || after.Rows != f.people.n {
			t.Fatalf("%+v, %v", after, err)
		}
		seen := map[any]bool{}
		for from := 0; from < after.Rows; from += 300 { // not in steps of chunks
			rows, err := first.Rows(ctx, after, from, 300)
			if err != nil || len(rows) != min(300, after.Rows-from) {
				t.Fatalf("%d rows from %d, %v", len(rows), from, err)
			}
			for _, row := range rows {
				seen[row[0]] = true
			}
		}
		if len(seen) != f.people.n {
			t.Errorf("%d users, want %d", len(seen), f.people.n)
		}
		var ends int
		if err := f.db.QueryRow(ctx, `SELECT COUNT(*) FROM events WHERE type = 'report.completed'`).Scan(&ends); err != nil || ends != 1 {
			t.Errorf("%d events, %v", ends, err)
		}
	})
}

// A process that has found a report due does not start it if another one has, although that run has ended.
func TestFoundTwice(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		first, second := f.process(t), f.process(t)
		report, err := first.Create(ctx, tenant, MFACoverage, Settings{Name: "MFA", Schedule: &Schedule{Interval: Daily, Hour: 6}})
		if err != nil {
			t.Fatal(err)
		}
		f.now = f.now.AddDate(0, 0, 1)
		f.found = func() {
			if _, err := second.StartDue(ctx); err != nil {
				t.Error(err)
			}
			f.work(t, second)
		}
		if _, err := first.StartDue(ctx); err != nil {
			t.Fatal(err)
		}
		if runs, err := first.Runs(ctx, tenant, report.ID, "", 9); err != nil || len(runs) != 1 || runs[0].State != Completed {
			t.Errorf("%+v, %v", runs, err)
		}
	})
}

// A recipient who may not read the run gets no mail, the run says why, and nobody gets a second mail.
// Mails have no figures of single groups.
func TestMails(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.people.n, f.people.members, f.people.refused = 2, 1, map[string]string{"usr_2": "scope_missing"}
		r := f.process(t)
		report, err := r.Create(ctx, tenant, MFACoverage, Settings{Name: "MFA", Schedule: &Schedule{Interval: Daily, Hour: 6, Recipients: []string{"usr_1", "usr_2"}}})
		if err != nil {
			t.Fatal(err)
		}
		f.now = f.now.AddDate(0, 0, 1)
		if _, err := r.StartDue(ctx); err != nil {
			t.Fatal(err)
		}
		f.work(t, r)
		runs, err := r.Runs(ctx, tenant, report.ID, "", 9)
		if err != nil || len(runs) != 1 {
			t.Fatalf("%+v, %v", runs, err)
		}
		if err := r.send(ctx, tenant, mailJob{report.ID, runs[0].ID, "usr_1"}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.mails.sent, []string{"usr_1"}) || !slices.Equal(f.mails.figures, []string{"Rows: 2", "Users: 2", "Users without factor: 2"}) {
			t.Errorf("mails to %q with %q", f.mails.sent, f.mails.figures)
		}
		_, mails, err := r.GetRun(ctx, tenant, report.ID, runs[0].ID)
		if err != nil || !slices.Equal(mails, []Mail{{"usr_1", "sent", ""}, {"usr_2", "skipped", "scope_missing"}}) {
			t.Errorf("%+v, %v", mails, err)
		}
	})
}

// An attempt that was overtaken by one that did not end yet stores neither rows nor an end.
func TestOvertaken(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		r := f.process(t)
		for users := range 2 {
			report, err := r.Create(ctx, tenant, MFACoverage, Settings{Name: "MFA"})
			if err != nil {
				t.Fatal(err)
			}
			run, err := r.Start(ctx, tenant, report.ID)
			if err != nil {
				t.Fatal(err)
			}
			f.people.n = users
			f.people.read = func(string) {
				err := f.db.Tx(ctx, func(tx *sqldb.Tx) error {
					_, err := claimRun(ctx, tx, tenant, report.ID, run.ID, "other", f.now)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			if err := r.run(ctx, tenant, runJob{report.ID, run.ID}); err != nil {
				t.Fatal(err)
			}
			if after, _, err := r.GetRun(ctx, tenant, report.ID, run.ID); err != nil || after.State != Running || after.Rows != 0 {
				t.Errorf("%d users: %+v, %v", users, after, err)
			}
		}
	})
}

// The memberships that a report has in memory are bounded.
func TestManyMembers(t *testing.T) {
	p := &production{Registry: &Registry{people: &people{members: 2 * MaxMemberships}}}
	of, _, err := p.memberships(t.Context())
	if err != nil || len(of) != MaxMemberships || !p.truncated {
		t.Errorf("%d users, truncated: %v, %v", len(of), p.truncated, err)
	}
}

// A review of a type with too many resources has the first of them.
func TestManyResources(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		r := f.process(t)
		report, err := r.Create(ctx, tenant, AccessReview, Settings{Name: "Review", Parameters: Parameters{ResourceType: "document", Action: "view"}})
		if err != nil {
			t.Fatal(err)
		}
		run, err := r.Start(ctx, tenant, report.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.run(ctx, tenant, runJob{report.ID, run.ID}); err != nil {
			t.Fatal(err)
		}
		after, _, err := r.GetRun(ctx, tenant, report.ID, run.ID)
		if err != nil || after.State != Completed || after.Rows != 6 || !after.Truncated || after.Figures[0].Value != 3 || after.Figures[2] != (Figure{Name: "direct_relations", Value: 6}) {
			t.Errorf("%+v, %v", after, err)
		}
	})
}

// A run has a bounded number of rows, and only the last runs are kept, for a while.
func TestBounds(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		r := f.process(t)
		report, err := r.Create(ctx, tenant, MFACoverage, Settings{Name: "MFA"})
		if err != nil {
			t.Fatal(err)
		}
		var last Run
		for n := range KeptRuns + 2 {
			f.people.n = 1
			if n == KeptRuns+1 {
				f.people.n = 3
			}
			if last, err = r.Start(ctx, tenant, report.ID); err != nil {
				t.Fatal(err)
			}
			f.now = f.now.Add(time.Second)
			if err := r.run(ctx, tenant, runJob{report.ID, last.ID}); err != nil {
				t.Fatal(err)
			}
		}
		runs, err := r.Runs(ctx, tenant, report.ID, "", 99)
		if err != nil || len(runs) != KeptRuns || runs[0].ID != last.ID || runs[0].Rows != 3 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		p := &production{Registry: r, run: runs[0], chunks: MaxRows / chunkRows}
		if err := p.add(ctx, "one more"); err != nil || !p.truncated || len(p.pending) > 0 {
			t.Errorf("%v %v %v", p.truncated, p.pending, err)
		}
		f.now = f.now.Add(KeptFor - 5*time.Second)
		for more := true; more; {
			if more, err = r.removeOld(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if runs, err = r.Runs(ctx, tenant, report.ID, "", 99); err != nil || len(runs) == 0 || len(runs) == KeptRuns {
			t.Errorf("%d runs, %v", len(runs), err)
		}
		var chunks int
		if err := f.db.QueryRow(ctx, `SELECT COUNT(*) FROM report_chunks`).Scan(&chunks); err != nil || chunks != len(runs) {
			t.Errorf("%d chunks of %d runs, %v", chunks, len(runs), err)
		}
	})
}
