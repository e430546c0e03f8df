package eventtest

import (
	"encoding/json"
	"testing"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failures int
}

func (*recorder) Helper()                 {}
func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Fatal(args ...any)     { r.TB.Fatal(args...) }

func TestData(t *testing.T) {
	for _, test := range []struct {
		eventType, data string
		valid           bool
	}{
		{"user.deleted", `{"user": {"id": "usr_a"}}`, true},
		{"user.deleted", `{"user": {"id": "usr_a"}, "more": 1}`, true},
		{"user.deleted", `{"user": {"id": 1}}`, false},
		{"user.deleted", `{"truncated": true}`, false},
		{"user.deleted", `{`, false},
		{"user.lost", `{"user": {"id": "usr_a"}}`, false},
	} {
		r := &recorder{TB: t}
		if Data(r, test.eventType, []byte(test.data)); (r.failures == 0) != test.valid {
			t.Errorf("%s %s: %d failures", test.eventType, test.data, r.failures)
		}
	}
}

func TestBody(t *testing.T) {
	type object = map[string]any
	for name, test := range map[string]struct {
		member string
		value  any
		valid  bool
	}{
		"as documented": {"sequence", 3, true},
		"more":          {"more", 1, true},
		"no actor":      {"actor", nil, true},
		"truncated":     {"data", object{"truncated": true}, true},
		"other data":    {"data", object{"group": object{"id": "grp_a"}}, false},
		"other type":    {"event_type", "user.created", false},
		"unknown type":  {"event_type", "user.lost", false},
		"no type":       {"event_type", nil, false},
		"other version": {"api_version", "v2", false},
		"no tenant":     {"tenant", nil, false},
		"other actor":   {"actor", object{"type": "service", "id": "x"}, false},
		"local time":    {"occurred_at", "2026-11-20T19:27:00", false},
	} {
		body := object{
			"event_id": "evt_a", "event_type": "user.deleted", "api_version": "v1", "occurred_at": "2026-11-20T19:27:00.123Z", "sequence": 1,
			"tenant": object{"id": "tnt_a", "slug": "a"}, "actor": object{"type": "user", "id": "usr_a"}, "data": object{"user": object{"id": "usr_a"}},
		}
		body[test.member] = test.value
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{TB: t}
		if Body(r, text); (r.failures == 0) != test.valid {
			t.Errorf("%s: %d failures", name, r.failures)
		}
	}
}
