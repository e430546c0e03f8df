package memstore

import (
	"testing"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) tuplestore.Store { return New(Config{Clock: storetest.UnsteadyClock}) })
}

func TestNothingIsAttached(t *testing.T) {
	s := New(Config{})
	_, err := s.Write(t.Context(), "t", tuplestore.Write{
		Ops:    []tuplestore.Op{{Tuple: tuplestore.Presence(tuplestore.Object{Type: "doc", ID: "1"})}},
		Attach: func(tuplestore.Result, *sqldb.Batch) { t.Error("there is no SQL to attach") },
		Event: func(tuplestore.Result) string {
			t.Error("there is no event log")
			return ""
		},
	})
	if err != nil {
		t.Error(err)
	}
}

func TestQueue(t *testing.T) {
	storetest.RunQueue(t, func(_ *testing.T, l storetest.Limits) tuplestore.Store {
		return New(Config{PerResource: l.PerResource, PerTenant: l.PerTenant})
	})
}
