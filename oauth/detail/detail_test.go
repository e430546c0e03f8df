package detail

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"stonetown/oauth/protocol"
)

// FuzzParse: a parameter is refused as the protocol has it, or leads to details within the
// bounds, whose text leads to the same details.
func FuzzParse(f *testing.F) {
	f.Add(`[{"type":"document","actions":["view","edit","view"],"identifiers":["plans/q1","notes"]}]`)
	f.Add(`[{"type":"b","actions":["x"],"identifiers":["1"]},{"type":"a","actions":["y","x"],"identifiers":["1","2"]},{"type":"b","actions":["y"],"identifiers":["1"]}]`)
	f.Add(`[null]`)
	f.Add(`[{"type":"document","actions":[],"identifiers":["a"]}]`)
	f.Add(`[{"type":"\ud800","actions":["view"],"identifiers":["\u202e"]}]`)
	f.Fuzz(func(t *testing.T, parameter string) {
		details, err := Parse(parameter)
		var refused *protocol.Error
		if err != nil {
			if !errors.As(err, &refused) || refused.Code != protocol.InvalidAuthorizationDetails || details != nil {
				t.Fatalf("%v %v", details, err)
			}
			return
		}
		if parameter == "" {
			if details != nil {
				t.Fatal(details)
			}
			return
		}
		count := 0
		for _, d := range details {
			count += len(d.Actions) * len(d.Identifiers)
			if d.Type == "" || !slices.IsSorted(d.Actions) || !slices.IsSorted(d.Identifiers) {
				t.Errorf("%+v", d)
			}
		}
		if len(details) == 0 || count == 0 || count > maxActions {
			t.Errorf("%d actions in %+v", count, details)
		}
		if again := fold(permissions(details)); !reflect.DeepEqual(again, details) {
			t.Errorf("%+v, then %+v", details, again)
		}
		if narrowed, err := Narrow(details, details); err != nil || !reflect.DeepEqual(narrowed, details) {
			t.Errorf("%+v %v", narrowed, err)
		}
		if len(details) > 1 {
			if _, err := Narrow(details[1:], details); err == nil {
				t.Errorf("%+v has less than %+v", details[1:], details)
			}
		}
		text, err := json.Marshal(details)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxBytes { // the form of the service can be longer
			return
		}
		if again, err := Parse(string(text)); err != nil || !reflect.DeepEqual(again, details) {
			t.Errorf("%s: %+v %v", text, again, err)
		}
	})
}

func TestFold(t *testing.T) {
	details, err := Parse(`[{"type":"b","actions":["x"],"identifiers":["1"]},{"type":"a","actions":["y","x"],"identifiers":["2","1"]},{"type":"b","actions":["y"],"identifiers":["1"]},{"type":"b","actions":["x"],"identifiers":["0","2"]}]`)
	want := []Detail{{"a", []string{"x", "y"}, []string{"1", "2"}}, {"b", []string{"x"}, []string{"0", "2"}}, {"b", []string{"x", "y"}, []string{"1"}}}
	if err != nil || !reflect.DeepEqual(details, want) {
		t.Errorf("%+v %v, want %+v", details, err, want)
	}
}
