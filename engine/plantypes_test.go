package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"stonetown/internal/fair"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// TestIllegalIsBounded counts tuples beyond the limit: of further reasons only the samples.
func TestIllegalIsBounded(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	var w tuplestore.Write
	for _, relation := range []string{"a", "b", "c"} {
		for i := range 30 {
			w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Tuple{
				Object: tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)}, Relation: relation, Subject: tuplestore.Subject{Type: "user", ID: "ann"},
			}})
		}
	}
	result, err := store.Write(t.Context(), "t", w)
	if err != nil {
		t.Fatal(err)
	}
	filters := []tuplestore.Filter{{ObjectType: "doc", Relation: "a"}, {ObjectType: "doc", Relation: "b"}, {ObjectType: "doc", Relation: "c"}}
	for most, want := range map[int][]int{90: {30, 30, 30}, 89: {30, 30, 29}, 45: {30, 15, 10}, 0: {10, 10, 10}} {
		found, err := illegal(t.Context(), store.Snapshot("t", result.Revision), filters, most, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range want {
			if found[i].Count != n || found[i].Exact != (n == 30) || len(found[i].Samples) != MaxSamples {
				t.Errorf("at most %d: reason %d has %d, exact %v, %d samples, want %d", most, i, found[i].Count, found[i].Exact, len(found[i].Samples), n)
			}
		}
	}
}

// TestPlansReportProgress counts many tuples with progress, until it fails.
func TestPlansReportProgress(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	var w tuplestore.Write
	for i := range 2*progressEvery + 1 {
		w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Presence(tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)})})
	}
	result, err := store.Write(t.Context(), "t", w)
	if err != nil {
		t.Fatal(err)
	}
	filters := []tuplestore.Filter{{ObjectType: "doc", Presence: tuplestore.WithPresence}}
	var reported []int
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		reported = nil
		_, err := illegal(t.Context(), store.Snapshot("t", result.Revision), filters, MaxIllegal, func(counted int) error {
			reported = append(reported, counted)
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		if want == nil && !slices.Equal(reported, []int{progressEvery, 2 * progressEvery}) || want != nil && len(reported) != 1 {
			t.Errorf("reported %v before error %v", reported, err)
		}
	}
}

// TestPlansWaitForTheirTenant plans while another plan of the tenant counts. Plans of other
// tenants, and those that have nothing to count, do not wait.
func TestPlansWaitForTheirTenant(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	e, err := New(Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, tenant := range []string{"a", "b"} {
		if _, err := e.ApplyTypes(t.Context(), tenant, TypesChange{Put: []schema.Type{{Name: "doc"}}}, Origin{Actor: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	place, err := e.counts.Enter(t.Context(), fair.Caller{Tenant: "a"})
	if err != nil {
		t.Fatal(err)
	}
	gone := PlanRequest{TypesChange: TypesChange{Delete: []string{"doc"}}}
	if _, err := e.PlanTypes(t.Context(), "b", gone); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := e.PlanTypes(t.Context(), "a", PlanRequest{}); err != nil {
		t.Errorf("nothing to count: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = e.PlanTypes(ctx, "a", gone)
	if busy, ok := errors.AsType[*fair.ExhaustedError](err); !ok || busy.Share != fair.OfTenant || busy.Limit != 1 {
		t.Errorf("the same tenant: %v", err)
	}
	place.Leave()
	if _, err := e.PlanTypes(t.Context(), "a", gone); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
