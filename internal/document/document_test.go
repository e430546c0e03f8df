package document

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

func TestTimestamp(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	for in, want := range map[time.Time]string{
		time.Date(2026, 11, 20, 21, 27, 0, 120_999_999, zone): "2026-11-20T19:27:00.120Z",
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC):           "2026-01-02T03:04:05.000Z",
	} {
		if got, err := Timestamp(in).MarshalText(); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v, want %s", in, got, err, want)
		}
		var read Timestamp
		if err := read.UnmarshalText([]byte(want)); err != nil || !time.Time(read).Equal(in.Truncate(time.Millisecond)) {
			t.Errorf("%s: read as %v, %v", want, time.Time(read), err)
		}
	}
}

func TestTimestampInvalid(t *testing.T) {
	if err := new(Timestamp).UnmarshalText([]byte("yesterday")); err == nil {
		t.Error("accepted")
	}
}

func TestDifference(t *testing.T) {
	type document struct {
		Name string         `json:"name"`
		Note *string        `json:"note"`
		More jsontext.Value `json:"more"`
	}
	note := "n"
	before := document{"a", nil, jsontext.Value(`{"x":1,"y":[2]}`)}
	after := document{"a", &note, jsontext.Value(`{ "y": [2], "x": 1 }`)}
	if got, want := Difference(before, after), (Changes{"note": {nil, "n"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Difference(after, after); len(got) != 0 {
		t.Errorf("of equal documents: %v", got)
	}
}
