package engine_test

import (
	"context"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// An arrow to a relation that no type has adds nothing to a tree.
func TestExpandArrowToNoRelation(t *testing.T) {
	for name, resident := range map[string]int64{"resident": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, engine.Config{ResidentBytes: resident})
			w.define(`folder
  parent [folder, elsewhere, application, audience, group, scope, webhook_subscription]
  viewer [user]
  reader: parent->viewer | parent->absent`)
			w.write("folder:b#viewer@user:ann", "folder:b#parent@folder:c", "folder:a#parent@folder:b")
			for _, other := range []string{"application", "audience", "group", "scope", "webhook_subscription"} { // the last one has a viewer, too
				w.write("folder:a#parent@" + other + ":x")
			}
			for _, limit := range []int{0, 100} { // at once and in a page
				tree, err := w.engine.Expand(context.Background(), tenant, engine.ExpandRequest{
					Resource: tuplestore.Object{Type: "folder", ID: "a"}, Action: "reader", Depth: 5, Limit: limit,
				})
				if err != nil {
					t.Fatal(err)
				}
				viewer, absent := tree.Root.Children[0], tree.Root.Children[1]
				if len(viewer.Children) != 2 || len(absent.Children) != 0 || len(absent.Links) != 6 {
					t.Errorf("limit %d: the arrows have %d and %d children", limit, len(viewer.Children), len(absent.Children))
				}
			}
		})
	}
}
