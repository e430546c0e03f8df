package resources

import (
	"testing"

	"github.com/go-json-experiment/json"
)

// The encoding by hand is the one by reflection.
func TestBulkAnswer(t *testing.T) {
	for _, results := range [][]BulkResult{
		{},
		{{Index: 0, Op: "create", Status: "created"}},
		{{Index: 0, Op: "create", Status: "exists"}, {Index: 1, Op: "delete", Status: "missing"}},
	} {
		a := bulkAnswer{Meta: TokenMeta{ConsistencyToken: "token", RequestID: "request"}}
		a.Data.Applied, a.Data.Results = 17, results
		want, err := json.Marshal(BulkWritten(a))
		if err != nil {
			t.Fatal(err)
		}
		if got := a.AppendJSON([]byte("before ")); string(got) != "before "+string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
