package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
)

func TestConsistencyTokens(t *testing.T) {
	w := newFixture(t, engine.Config{MaxStaleness: time.Hour})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	req := request("user:ann", "view", "doc:1")
	w.waitResident(req)

	// Within bounded staleness the engine need not read; with the token of a write it must.
	other := open(t, hideHead{w.store}, engine.Config{MaxStaleness: time.Hour})
	waitResident(t, other, req)
	if err := w.remove("doc:1#viewer@user:ann"); err != nil {
		t.Fatal(err)
	}
	token := w.write("doc:2#viewer@user:ann")
	stale := req
	stale.Consistency = engine.Consistency{Mode: engine.MinimizeLatency}
	if _, allowed := ask(t, other, stale); !allowed {
		t.Error("a minimize_latency check went to the store although its data is fresh enough")
	}
	fresh := req
	fresh.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: token}
	if _, allowed := ask(t, other, fresh); allowed {
		t.Error("a check with the token of a later write missed the write before it")
	}
	if _, allowed := ask(t, other, req); allowed {
		t.Error("a fully consistent check missed an acknowledged write")
	}

	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"garbage":      {"%%%", engine.ErrTokenInvalid},
		"not a token":  {"aGVsbG8", engine.ErrTokenInvalid},
		"other tenant": {tokenOf("v1|tnt_b|%s|1", token, t), engine.ErrTokenInvalid},
		"other format": {tokenOf("v2|tnt_a|%s|1", token, t), engine.ErrTokenInvalid},
		"negative":     {tokenOf("v1|tnt_a|%s|-1", token, t), engine.ErrTokenInvalid},
		"from ahead":   {tokenOf("v1|tnt_a|%s|999", token, t), engine.ErrTokenUnknown},
	} {
		r := req
		r.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: c.token}
		if _, err := w.engine.Check(context.Background(), tenant, r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// A token of another history cannot be compared: the answer is fully consistent and has
	// TokenIgnored.
	r := req
	r.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: tokenOf("v1|tnt_a|x%s|1", token, t)}
	if res, allowed := ask(t, w.engine, r); allowed || !res.TokenIgnored {
		t.Errorf("token of another epoch: allowed %v, ignored %v", allowed, res.TokenIgnored)
	}
}

// hideHead is a store of which this process is not the only writer.
type hideHead struct{ tuplestore.Store }

func (hideHead) KnownHead(string) (tuplestore.Head, bool) { return tuplestore.Head{}, false }

func TestChecksShareTheTailRead(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	slow := &slowStore{Store: hideHead{w.store}, gate: make(chan struct{}, 1000)}
	for range 1000 {
		slow.gate <- struct{}{}
	}
	e := open(t, slow, engine.Config{})
	req := request("user:ann", "view", "doc:1")
	waitResident(t, e, req)
	for len(slow.gate) > 0 { // from now on a tail read waits
		<-slow.gate
	}
	before := e.Stats().TailReads
	var checks sync.WaitGroup
	for range 100 {
		checks.Go(func() { ask(t, e, req) })
	}
	time.Sleep(50 * time.Millisecond) // all of them wait
	for range 100 {
		slow.gate <- struct{}{}
	}
	checks.Wait()
	if reads := e.Stats().TailReads - before; reads > 4 {
		t.Errorf("100 checks at once took %d tail reads, want a few that they share", reads)
	}
}

// rememberingStore has all commits in memory.
type rememberingStore struct{ tuplestore.Store }

func (s rememberingStore) KnownChanges(tenant, _ string, after tuplestore.Revision) ([]tuplestore.Commit, bool) {
	commits, err := s.Changes(context.Background(), tenant, after, 1000)
	return commits, err == nil && len(commits) > 0
}

// A check after a write that the store has in memory must not read, and must reflect it.
func TestKnownChangesAreApplied(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	e := open(t, rememberingStore{w.store}, engine.Config{})
	req := request("user:ann", "view", "doc:1")
	waitResident(t, e, req)
	before := e.Stats().TailReads
	for range 10 {
		if err := w.remove("doc:1#viewer@user:ann"); err != nil {
			t.Fatal(err)
		}
		if _, allowed := ask(t, e, req); allowed {
			t.Fatal("a check missed an acknowledged write")
		}
		fresh := req
		fresh.Consistency = engine.Consistency{Mode: engine.AtLeast, Token: w.write("doc:1#viewer@user:ann")}
		if _, allowed := ask(t, e, fresh); !allowed {
			t.Fatal("a check with the token of a write missed it")
		}
	}
	if reads := e.Stats().TailReads - before; reads != 0 {
		t.Errorf("20 checks after writes took %d tail reads, want none", reads)
	}
	// A change of the model is a commit like others.
	w.define("doc\n  owner [user]\n  viewer [user]: this & owner")
	if _, allowed := ask(t, e, req); allowed {
		t.Error("a check missed a change of the model")
	}
}

// slowStore lets a changelog read pass for each token in the gate.
type slowStore struct {
	tuplestore.Store
	gate chan struct{}
}

func (s *slowStore) Changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	<-s.gate
	return s.Store.Changes(ctx, tenant, after, limit)
}

// If the database hangs, only the checks that read it fail.
func TestTailReadsAreBounded(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]")
	w.write("doc:1#viewer@user:ann")
	hanging := &hangingStore{Store: hideHead{w.store}}
	e := open(t, hanging, engine.Config{TailTimeout: 50 * time.Millisecond})
	req := request("user:ann", "view", "doc:1")
	waitResident(t, e, req)
	hanging.hangs.Store(true)
	if _, err := e.Check(context.Background(), tenant, req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the database hangs: %v", err)
	}
	cancelAt, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := e.Check(cancelAt, tenant, req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller with less patience: %v", err)
	}
	stale := req
	stale.Consistency = engine.Consistency{Mode: engine.MinimizeLatency}
	if _, allowed := ask(t, e, stale); !allowed {
		t.Error("what needs no read was refused")
	}
	hanging.hangs.Store(false)
	if _, err := e.Check(context.Background(), tenant, req); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err) // it may have joined a read that hung
	}
	if _, allowed := ask(t, e, req); !allowed {
		t.Error("denied after the database came back")
	}
}

// hangingStore does not answer while it hangs.
type hangingStore struct {
	tuplestore.Store
	hangs atomic.Bool
}

func (s *hangingStore) Changes(ctx context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Changes(ctx, tenant, after, limit)
}

// A changed rewrite and a deleted relation are as consistent as a tuple, also if another
// engine made the change.
func TestSchemaChangesAreConsistent(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  owner [user]\n  viewer [user]: this | owner")
	w.write("doc:1#owner@user:ann")
	other := open(t, hideHead{w.store}, engine.Config{})
	req := request("user:ann", "view", "doc:1")
	waitResident(t, other, req)
	w.define("doc\n  owner [user]\n  viewer [user]")
	if _, allowed := ask(t, other, req); allowed {
		t.Error("the other engine answered by the old rewrite")
	}
	// It also validates writes by the new schema, which it has not read yet.
	w.define("doc\n  owner [user]\n  viewer [user]\n  signer [user]")
	_, err := other.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#signer@user:ann")}})
	if err != nil {
		t.Errorf("writing a relation that was just defined elsewhere: %v", err)
	}
	w.define("doc\n  owner [user]\n  viewer [application]\n  signer [user]")
	_, err = other.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:1#viewer@user:ann")}})
	if !reason("type_not_allowed")(err) {
		t.Errorf("writing what was just forbidden elsewhere: %v", err)
	}
}

// tokenOf builds a token of this form with the epoch of a real one.
func tokenOf(format, real string, t *testing.T) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(real)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, strings.Split(string(text), "|")[2]))
}
