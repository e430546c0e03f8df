package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
)

// member reads a member of a patch and returns its change of a module's settings. otherwise are
// the defaults, which null restores.
type member[S any] func(v *web.Validation, field string, value jsontext.Value) func(s *S, otherwise S)

// members are the settings of a module, by their path in a patch.
type members[S any] map[string]member[S]

// read reads those members of a merge patch (RFC 7396) that were given.
func (m members[S]) read(given map[string]jsontext.Value, otherwise S) (change func(*S), err error) {
	var v web.Validation
	var changes []func(*S, S)
	for _, path := range slices.Sorted(maps.Keys(m)) {
		name, inner, nested := strings.Cut(path, "/")
		value := given[name]
		if nested && value.Kind() != 0 && value.Kind() != 'n' { // null takes all of it back
			var object map[string]jsontext.Value
			if json.Unmarshal(value, &object) != nil {
				v.Add(name, "type_invalid", "must be an object or null")
				given[name] = nil // said once
				continue
			}
			value = object[inner]
		}
		if value.Kind() == 0 {
			continue
		}
		changes = append(changes, m[path](&v, path, value))
	}
	return func(s *S) {
		for _, change := range changes {
			change(s, otherwise)
		}
	}, v.Err()
}

// set is a member that is one value of the settings.
func set[S, T any](read func(v *web.Validation, field string, value jsontext.Value, into *T), of func(*S) *T) member[S] {
	return func(v *web.Validation, field string, value jsontext.Value) func(*S, S) {
		if value.Kind() == 'n' {
			return func(s *S, otherwise S) { *of(s) = *of(&otherwise) }
		}
		var now T
		read(v, field, value, &now)
		return func(s *S, _ S) { *of(s) = now }
	}
}

func integer[S any](least, most int, of func(*S) *int) member[S] {
	return set(func(v *web.Validation, field string, value jsontext.Value, into *int) {
		if json.Unmarshal(value, into) != nil || *into < least || *into > most {
			v.Add(field, "out_of_range", fmt.Sprintf("must be between %d and %d, or null", least, most))
		}
	}, of)
}

func word[S any](words []string, of func(*S) *string) member[S] {
	return set(func(v *web.Validation, field string, value jsontext.Value, into *string) {
		if json.Unmarshal(value, into) != nil || !slices.Contains(words, *into) {
			v.Add(field, "unknown_value", "must be one of "+strings.Join(words, ", ")+", or null")
		}
	}, of)
}

func flag[S any](of func(*S) *bool) member[S] {
	return set(func(v *web.Validation, field string, value jsontext.Value, into *bool) {
		if json.Unmarshal(value, into) != nil {
			v.Add(field, "type_invalid", "must be true, false or null")
		}
	}, of)
}
