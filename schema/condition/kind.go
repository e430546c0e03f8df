package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
)

// kind is the type of a parameter: its CEL type and the conversion from JSON.
type kind struct {
	cel *cel.Type
	// convert turns decoded JSON into a value of the type.
	convert func(any) (any, bool)
}

// maxNesting is the maximum depth of lists and maps.
const maxNesting = 4

var simple = map[string]kind{
	"bool":      {cel.BoolType, func(v any) (any, bool) { b, ok := v.(bool); return b, ok }},
	"string":    {cel.StringType, func(v any) (any, bool) { s, ok := v.(string); return s, ok }},
	"int":       {cel.IntType, toInt},
	"uint":      {cel.UintType, toUint},
	"double":    {cel.DoubleType, toDouble},
	"duration":  {cel.DurationType, fromText(time.ParseDuration)},
	"timestamp": {cel.TimestampType, fromText(func(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) })},
	"ipaddress": {addressType, fromText(parseAddress)},
	"any":       {cel.DynType, toAny},
}

func parseKind(text string) (kind, error) { return parseNested(text, maxNesting) }

func parseNested(text string, depth int) (kind, error) {
	if k, ok := simple[text]; ok {
		return k, nil
	}
	if depth == 0 {
		return kind{}, fmt.Errorf("nested more than %d deep", maxNesting)
	}
	outer, inner, ok := strings.Cut(text, "<")
	inner, closed := strings.CutSuffix(inner, ">")
	if !ok || !closed {
		return kind{}, errors.New("not a type")
	}
	of, err := parseNested(inner, depth-1)
	if err != nil {
		return kind{}, err
	}
	switch outer {
	case "list":
		return kind{cel.ListType(of.cel), func(v any) (any, bool) {
			list, ok := v.([]any)
			out := make([]any, len(list))
			for i := 0; ok && i < len(list); i++ {
				out[i], ok = of.convert(list[i])
			}
			return out, ok
		}}, nil
	case "map":
		return kind{cel.MapType(cel.StringType, of.cel), func(v any) (any, bool) {
			object, ok := v.(map[string]any)
			out := make(map[string]any, len(object))
			for name, member := range object {
				if out[name], ok = of.convert(member); !ok {
					break
				}
			}
			return out, ok
		}}, nil
	}
	return kind{}, errors.New("not a type")
}

func toInt(v any) (any, bool) {
	switch n := v.(type) {
	case json.Number:
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err == nil {
			return i, true
		}
		f, err := n.Float64()
		return integral(f, err == nil)
	case float64:
		return integral(n, true)
	case string:
		if isNumber(n) {
			return toInt(json.Number(n))
		}
	}
	return nil, false
}

// isNumber reports whether a text is a JSON number. Such texts are accepted as numbers,
// because not all languages write large ones without loss; SpiceDB and OpenFGA accept them,
// too.
func isNumber(text string) bool {
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	last := text[len(text)-1]
	return last >= '0' && last <= '9' && json.Valid([]byte(text))
}

// integral accepts whole floats that a float represents exactly.
func integral(f float64, ok bool) (any, bool) {
	const exact = 1 << 53
	if !ok || f != math.Trunc(f) || math.Abs(f) > exact {
		return nil, false
	}
	return int64(f), true
}

func toUint(v any) (any, bool) {
	if text, ok := v.(string); ok && isNumber(text) {
		v = json.Number(text)
	}
	if n, ok := v.(json.Number); ok {
		if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
			return u, true
		}
	}
	i, ok := toInt(v)
	if !ok || i.(int64) < 0 {
		return nil, false
	}
	return uint64(i.(int64)), true
}

func toDouble(v any) (any, bool) {
	switch n := v.(type) {
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case float64:
		return n, true
	case string:
		if isNumber(n) {
			return toDouble(json.Number(n))
		}
	}
	return nil, false
}

func fromText[T any](parse func(string) (T, error)) func(any) (any, bool) {
	return func(v any) (any, bool) {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		parsed, err := parse(s)
		return parsed, err == nil
	}
}

// toAny converts only numbers, to doubles.
func toAny(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		return toDouble(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i], _ = toAny(v[i])
		}
		return out, true
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name], _ = toAny(v[name])
		}
		return out, true
	}
	return v, true
}

func parseAddress(s string) (address, error) {
	a, err := netip.ParseAddr(s)
	return address{a.Unmap()}, err
}

// Normalize validates values to be stored with a tuple, a JSON object or empty, and returns
// them in canonical form. Errors name the parameter and its type.
func (c *Condition) Normalize(values []byte) (string, error) {
	if len(values) > MaxContext {
		return "", fmt.Errorf("context has %d bytes, at most %d are allowed", len(values), MaxContext)
	}
	if _, err := c.decode(values); err != nil {
		return "", err
	}
	raw, err := rawObject(values)
	if err != nil || len(raw) == 0 {
		return "", err
	}
	text, err := json.Marshal(raw) // sorts members
	if err != nil {
		return "", errors.New("context is not a JSON object")
	}
	return string(text), nil
}

// decode reads stored values.
func (c *Condition) decode(values []byte) (map[string]any, error) {
	raw, err := rawObject(values)
	if err != nil {
		return nil, err
	}
	decoded := make(map[string]any, len(c.kinds))
	for name, v := range raw {
		k, ok := c.kinds[name]
		if !ok {
			return nil, fmt.Errorf("condition %s has no parameter %q", c.definition.Name, name)
		}
		if decoded[name], ok = k.convert(v); !ok {
			return nil, fmt.Errorf("the value for %s is not of type %s", name, c.typeOf(name))
		}
	}
	return decoded, nil
}

// Values returns the values of an evaluation, as a JSON object: the stored ones, and for the
// other parameters those of the request.
func (c *Condition) Values(stored string, request map[string]any) ([]byte, error) {
	values, err := rawObject([]byte(stored))
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = map[string]any{}
	}
	for _, p := range c.definition.Parameters {
		given, ok := request[p.Name]
		if _, has := values[p.Name]; ok && !has {
			values[p.Name] = given
		}
	}
	return json.Marshal(values) // sorts members
}

func (c *Condition) typeOf(name string) string {
	for _, p := range c.definition.Parameters {
		if p.Name == name {
			return p.Type
		}
	}
	return ""
}

func rawObject(values []byte) (map[string]any, error) {
	if len(values) == 0 {
		return nil, nil
	}
	var raw map[string]any
	d := json.NewDecoder(bytes.NewReader(values))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		return nil, errors.New("context is not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("context is not one JSON object")
	}
	return raw, nil
}
