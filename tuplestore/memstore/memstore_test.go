package memstore

import (
	"testing"

	"stonetown/tuplestore"
	"stonetown/tuplestore/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) tuplestore.Store { return New(Config{}) })
}

func TestQueue(t *testing.T) {
	storetest.RunQueue(t, func(_ *testing.T, l storetest.Limits) tuplestore.Store {
		return New(Config{PerResource: l.PerResource, PerTenant: l.PerTenant})
	})
}
