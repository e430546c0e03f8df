package tuplestore_test

import (
	"context"
	"fmt"
	"log"

	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// Two writes, and the tuples of each revision.
func Example() {
	ctx := context.Background()
	store := memstore.New(memstore.Config{})
	defer store.Close()

	plan := tuplestore.Object{Type: "doc", ID: "plan"}
	viewer := func(user string) tuplestore.Tuple {
		return tuplestore.Tuple{Object: plan, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: user}}
	}
	for _, ops := range [][]tuplestore.Op{
		{{Kind: tuplestore.Create, Tuple: tuplestore.Presence(plan)}, {Kind: tuplestore.Create, Tuple: viewer("ann")}},
		{{Kind: tuplestore.Delete, Tuple: viewer("ann")}, {Kind: tuplestore.Create, Tuple: viewer("bob")}},
	} {
		if _, err := store.Write(ctx, "tenant", tuplestore.Write{Actor: "user:admin", Ops: ops}); err != nil {
			log.Fatal(err)
		}
	}

	for rev := range tuplestore.Revision(3) {
		fmt.Print("at ", rev, ":")
		everything := tuplestore.Filter{Presence: tuplestore.WithPresence}
		for r, err := range store.Snapshot("tenant", rev).Scan(ctx, everything) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Print(" ", r)
		}
		fmt.Println()
	}
	commits, err := store.Changes(ctx, "tenant", 1, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range commits[0].Changes {
		fmt.Println("changed:", c.Tuple, "deleted:", c.Deleted)
	}
	// Output:
	// at 0:
	// at 1: doc:plan doc:plan#viewer@user:ann
	// at 2: doc:plan doc:plan#viewer@user:bob
	// changed: doc:plan#viewer@user:ann deleted: true
	// changed: doc:plan#viewer@user:bob deleted: false
}
