package condition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// define writes name(parameter type, ...): expression.
func define(t testing.TB, text string) Definition {
	t.Helper()
	head, expression, ok := strings.Cut(text, "):")
	name, parameters, found := strings.Cut(head, "(")
	if !ok || !found {
		t.Fatalf("%q", text)
	}
	d := Definition{Name: name, Expression: strings.TrimSpace(expression)}
	for p := range strings.SplitSeq(parameters, ";") {
		if name, typ, ok := strings.Cut(strings.TrimSpace(p), " "); ok {
			d.Parameters = append(d.Parameters, Parameter{name, typ})
		}
	}
	return d
}

func compile(t testing.TB, text string) *Condition {
	t.Helper()
	c, err := Compile(define(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func values(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEvaluate(t *testing.T) {
	for _, c := range []struct {
		condition, stored, request string
		want                       bool
	}{
		{"c(a bool): a", "", `{"a":true}`, true},
		{"c(a bool): a", `{"a":false}`, `{"a":true}`, false}, // stored values take precedence
		{"c(a string): a == 'x'", `{"a":"x"}`, "", true},
		{"c(userName string; _x int): userName == 'ann' && _x == 1", `{"_x":1}`, `{"userName":"ann"}`, true},
		{"c(a int; b int): a < b", `{"b":5}`, `{"a":3}`, true},
		{"c(a int): a == 9007199254740993", "", `{"a":9007199254740993}`, true}, // no float holds it
		{"c(a int): a == 3", "", `{"a":3.0}`, true},
		{"c(a uint): a == 18446744073709551615u", "", `{"a":18446744073709551615}`, true},
		{"c(a double): a > 0.5", "", `{"a":1}`, true},
		{"c(a duration): a < duration('1h')", "", `{"a":"59m"}`, true},
		{"c(a timestamp; b duration; now timestamp): now < a + b", `{"a":"2026-01-01T00:00:00Z","b":"1h"}`, `{"now":"2026-01-01T00:59:59Z"}`, true},
		{"c(ip ipaddress): ip.in_cidr('192.168.0.0/16')", "", `{"ip":"192.168.7.1"}`, true},
		{"c(ip ipaddress): ip.in_cidr('192.168.0.0/16')", "", `{"ip":"::ffff:192.168.7.1"}`, true},
		{"c(ip ipaddress): ip.in_cidr('2001:db8::/32')", "", `{"ip":"2001:db8::1"}`, true},
		{"c(ip ipaddress): ip.in_cidr('10.0.0.0/8')", "", `{"ip":"11.0.0.1"}`, false},
		{"c(ip ipaddress; other ipaddress): ip == other", "", `{"ip":"10.0.0.1","other":"10.0.0.1"}`, true},
		{"c(l list<string>; x string): x in l", `{"l":["a","b"]}`, `{"x":"b"}`, true},
		{"c(m map<int>): m['k'] == 2", "", `{"m":{"k":2}}`, true},
		{"c(m map<list<int>>): m['k'].exists(x, x > 1)", "", `{"m":{"k":[1,2]}}`, true},
		{"c(a any): a.b == 'x' && a.n == 2.0", "", `{"a":{"b":"x","n":2}}`, true},
		{"c(a string): a.matches('^x+$')", "", `{"a":"xxx"}`, true},
		{"c(): true", "", "", true},
		{"c(a int; b int): a < b", `{"b":"5"}`, `{"a":"-3"}`, true}, // numbers as text
		{"c(a int): a == 9223372036854775807", "", `{"a":"9223372036854775807"}`, true},
		{"c(a int): a == 300", "", `{"a":"3e2"}`, true},
		{"c(a uint): a == 18446744073709551615u", "", `{"a":"18446744073709551615"}`, true},
		{"c(a double): a > 0.5", `{"a":"0.75"}`, "", true},
		{"c(a list<int>): a[1] == 2", "", `{"a":["1",2]}`, true},
		{"c(a any): a == '5'", "", `{"a":"5"}`, true}, // which any does not convert
		{"c(a string): a == '5'", "", `{"a":"5"}`, true},
		{"c(ip ipaddress): ip == ipaddress('10.0.0.1')", "", `{"ip":"10.0.0.1"}`, true},
		{"c(): ipaddress('2001:db8::1').in_cidr('2001:db8::/32')", "", "", true},
		{"c(s string): ipaddress(s).in_cidr('10.0.0.0/8')", "", `{"s":"10.9.9.9"}`, true},
		{"c(ip ipaddress): ip in [ipaddress('10.0.0.1'), ipaddress('::ffff:10.0.0.2')]", "", `{"ip":"10.0.0.2"}`, true},
		{"c(ipaddress ipaddress): ipaddress != ipaddress('10.0.0.1')", "", `{"ipaddress":"10.0.0.2"}`, true},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"k":1,"m":{"x":"y","z":true},"l":[1,2]}}`, `{"a":{"m":{"x":"y"},"l":[1,2]}}`, true},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"m":{"x":"y"}}}`, `{"a":{"m":{"x":"z"}}}`, false},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"m":{"x":"y"}}}`, `{"a":{"m":{"x":"y"},"n":1}}`, false},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"m":"x"}}`, `{"a":{"m":{}}}`, false},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"m":{}}}`, `{"a":{"m":"x"}}`, false},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"l":[1,2,3]}}`, `{"a":{"l":[1,2]}}`, false},
		{"c(a map<any>; b map<any>): a.isSubtreeOf(b)", `{"b":{"n":null}}`, `{"a":{"n":null}}`, true},
		{"c(a map<int>; b map<any>): a.isSubtreeOf(b)", `{"b":{"n":5}}`, `{"a":{"n":5}}`, true},
		{"c(a map<string>): a.isSubtreeOf({'k': 'v'})", "", `{"a":{}}`, true},
		{"c(a any): a.isSubtreeOf({'k': {'x': 'v', 'y': 1.0}})", "", `{"a":{"k":{"x":"v"}}}`, true},
	} {
		got, missing, err := compile(t, c.condition).Evaluate(context.Background(), c.stored, values(t, c.request))
		if err != nil || len(missing) > 0 || got != c.want {
			t.Errorf("%s with %s and %s: %v, missing %v, %v", c.condition, c.stored, c.request, got, missing, err)
		}
	}
}

// Only parameters that the result depends on are missing.
func TestMissing(t *testing.T) {
	const either = "c(a bool; b bool; x int): a || (b && x > 3)"
	for _, c := range []struct {
		request string
		want    bool
		missing []string
	}{
		{"", false, []string{"a", "b", "x"}},
		{`{"a":true}`, true, nil},
		{`{"a":false}`, false, []string{"b", "x"}},
		{`{"a":false,"b":false}`, false, nil},
		{`{"b":true,"x":4}`, true, nil},
		{`{"b":true,"x":3}`, false, []string{"a"}},
	} {
		got, missing, err := compile(t, either).Evaluate(context.Background(), "", values(t, c.request))
		if err != nil || got != c.want || !slices.Equal(missing, c.missing) {
			t.Errorf("%s: %v, missing %v, %v; want %v, %v", c.request, got, missing, err, c.want, c.missing)
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	return b.String()
}

// Errors name the condition and the parameter, and never a value.
func TestEvaluationErrors(t *testing.T) {
	for condition, request := range map[string]string{
		"c(a int): a > 0":                         `{"a":"secret"}`,
		"c(a int): a > 1":                         `{"a":1.5}`,
		"c(a int): a > 2":                         `{"a":1e300}`,
		"c(a uint): a > 3u":                       `{"a":-1}`,
		"c(a bool): a":                            `{"a":null}`,
		"c(a timestamp): a > timestamp(0)":        `{"a":"secret"}`,
		"c(a duration): a > duration('1s')":       `{"a":5}`,
		"c(a ipaddress): a.in_cidr('10.0.0.0/8')": `{"a":"secret"}`,
		"c(a int): a > 4":                         `{"a":"1.5"}`,
		"c(a int): a > 5":                         `{"a":" 5"}`,
		"c(a int): a > 6":                         `{"a":"5 "}`,
		"c(a int): a > 7":                         `{"a":"0x5"}`,
		"c(a int): a > 8":                         `{"a":""}`,
		"c(a int): a > 9":                         `{"a":"9223372036854775808"}`,
		"c(a uint): a > 4u":                       `{"a":"-1"}`,
		"c(a double): a > 1.0":                    `{"a":"NaN"}`,
		"c(a double): a > 2.0":                    `{"a":"1e999"}`,
		"c(a double): a > 3.0":                    `{"a":"secret"}`,
		"c(a string): ipaddress(a) == ipaddress('10.0.0.1')":               `{"a":"secret"}`,
		"c(a any): a.isSubtreeOf({'k': 1})":                                `{"a":"secret"}`,
		"c(a list<int>; m map<any>): a.all(x, a.all(y, m.isSubtreeOf(m)))": `{"a":[` + strings.Repeat("1,", 60) + `1],"m":{` + strings.TrimSuffix(manyMembers(100), ",") + `}}`,
		"c(a string; b ipaddress): b.in_cidr(a)":                           `{"a":"secret","b":"10.0.0.1"}`,
		"c(a list<int>): a.size() > 0":                                     `{"a":["secret"]}`,
		"c(a map<int>): a.size() > 0":                                      `{"a":{"k":"secret"}}`,
		"c(a map<int>): a['secret'] > 0":                                   `{"a":{}}`,
		"c(a int): 10 / a > 1":                                             `{"a":0}`,
		"c(a string): int(a) > 1":                                          `{"a":"secret"}`,
		"c(a any): a.b.c == 'secret'":                                      `{"a":{"b":"secret"}}`,
		"c(a list<int>): a.all(x, a.all(y, a.all(z, x + y + z >= 0)))":     `{"a":[` + strings.Repeat("1,", 200) + `1]}`,
	} {
		_, missing, err := compile(t, condition).Evaluate(context.Background(), "", values(t, request))
		var failed *EvaluationError
		if !errors.As(err, &failed) || len(missing) > 0 || failed.Condition != "c" {
			t.Errorf("%s: %v, missing %v", condition, err, missing)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes a value: %v", condition, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := compile(t, "c(a list<int>): a.all(x, a.all(y, x + y >= 0))").Evaluate(ctx, "", values(t, `{"a":[`+strings.Repeat("1,", 200)+`1]}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCompileErrors(t *testing.T) {
	many := make([]Parameter, MaxParameters+1)
	for i := range many {
		many[i] = Parameter{fmt.Sprint("p", i), "int"}
	}
	one := func(typ string) []Parameter { return []Parameter{{"a", typ}} }
	for name, c := range map[string]struct {
		d            Definition
		path, reason string
	}{
		"no name":         {Definition{Expression: "true"}, "name", "name_invalid"},
		"upper case":      {Definition{Name: "C", Expression: "true"}, "name", "name_invalid"},
		"no expression":   {Definition{Name: "c"}, "expression", "expression_invalid"},
		"syntax":          {Definition{Name: "c", Expression: "1 <"}, "expression", "expression_invalid"},
		"no address":      {Definition{Name: "c", Expression: "ipaddress('10.0.0') == ipaddress('10.0.0.1')"}, "expression", "expression_invalid"},
		"no map":          {Definition{Name: "c", Expression: "'a'.isSubtreeOf({})"}, "expression", "expression_invalid"},
		"undeclared":      {Definition{Name: "c", Expression: "a"}, "expression", "expression_invalid"},
		"types":           {Definition{Name: "c", Expression: "a < 'x'", Parameters: one("int")}, "expression", "expression_invalid"},
		"not boolean":     {Definition{Name: "c", Expression: "1 + 1"}, "expression", "not_boolean"},
		"dynamic":         {Definition{Name: "c", Expression: "a", Parameters: one("any")}, "expression", "not_boolean"},
		"long":            {Definition{Name: "c", Expression: strings.Repeat(" ", MaxExpression) + "true"}, "expression", "too_long"},
		"many parameters": {Definition{Name: "c", Expression: "true", Parameters: many}, "parameters", "too_many"},
		"twice":           {Definition{Name: "c", Expression: "true", Parameters: append(one("int"), one("int")...)}, "parameters[1].name", "duplicate"},
		"parameter name":  {Definition{Name: "c", Expression: "true", Parameters: []Parameter{{"1a", "int"}}}, "parameters[0].name", "name_invalid"},
		"unknown type":    {Definition{Name: "c", Expression: "true", Parameters: one("float")}, "parameters[0].type", "type_unknown"},
		"list of nothing": {Definition{Name: "c", Expression: "true", Parameters: one("list<>")}, "parameters[0].type", "type_unknown"},
		"too deep":        {Definition{Name: "c", Expression: "true", Parameters: one(strings.Repeat("list<", 6) + "int" + strings.Repeat(">", 6))}, "parameters[0].type", "type_unknown"},
	} {
		_, err := Compile(c.d)
		var invalid *Error
		if !errors.As(err, &invalid) || invalid.Path != c.path || invalid.Reason != c.reason || invalid.Message == "" {
			t.Errorf("%s: %+v, want %s at %s", name, err, c.reason, c.path)
		}
	}
}

func TestNormalize(t *testing.T) {
	c := compile(t, "c(n int; s string; l list<int>): true")
	for in, want := range map[string]string{
		"": "", "{}": "", " { } ": "",
		`{"s":"x", "n": 9007199254740993}`: `{"n":9007199254740993,"s":"x"}`,
		`{"l":[1, 2]}`:                     `{"l":[1,2]}`,
	} {
		got, err := c.Normalize([]byte(in))
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", in, got, err, want)
		}
		if again, err := c.Normalize([]byte(got)); err != nil || again != got {
			t.Errorf("%s is not its own normal form: %s, %v", got, again, err)
		}
	}
	for _, bad := range []string{`[]`, `null1`, `{`, `{} {}`, `{"x":1}`, `{"n":"x"}`, `{"l":[1,"x"]}`, `{"s":"` + strings.Repeat("x", MaxContext) + `"}`} {
		if got, err := c.Normalize([]byte(bad)); err == nil {
			t.Errorf("%.40s was accepted as %.40s", bad, got)
		}
	}
}

func TestConditionIsSafeForConcurrentUse(t *testing.T) {
	c := compile(t, "c(a int; l list<int>): l.exists(x, x == a)")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 200 {
				got, _, err := c.Evaluate(context.Background(), `{"l":[0,1,2,3]}`, map[string]any{"a": float64((n + i) % 8)})
				if err != nil || got != ((n+i)%8 < 4) {
					t.Errorf("%d: %v, %v", (n+i)%8, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzCondition: compiling and evaluating any expression with any values ends soon, in a
// decision or in an error.
func FuzzCondition(f *testing.F) {
	for _, expression := range []string{
		"a < b", "s.matches('(a+)+$')", "l.all(x, l.all(y, l.all(z, x + y + z > 0)))", "s + s + s == s",
		"[1,2,3].map(x, [1,2,3].map(y, x * y)).size() > 2", "ip.in_cidr(s)", "ipaddress(s) == ip", "m.isSubtreeOf({'k': 'v'})", "x.isSubtreeOf(m)", "m.k == s", "'x' * 3", "duration(s) > duration('1s')",
		"{'a': s}.a == s", "has(m.k)", "a / b > 0", "size(s) < 3 ? true : l[a] == b", "timestamp(s).getFullYear() > 2000", "((((((((true))))))))",
	} {
		f.Add(expression, `{"a":1,"b":0,"s":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa!","l":[1,2,3],"m":{"k":"v"},"ip":"10.0.0.1"}`)
	}
	parameters := []Parameter{{"a", "int"}, {"b", "int"}, {"s", "string"}, {"l", "list<int>"}, {"m", "map<string>"}, {"ip", "ipaddress"}, {"x", "any"}}
	f.Fuzz(func(t *testing.T, expression, context_ string) {
		began := time.Now()
		c, err := Compile(Definition{Name: "c", Expression: expression, Parameters: parameters})
		if err != nil {
			var invalid *Error
			if !errors.As(err, &invalid) {
				t.Fatalf("%q: %v", expression, err)
			}
			return
		}
		var request map[string]any
		if json.Unmarshal([]byte(context_), &request) != nil {
			request = nil
		}
		_, missing, err := c.Evaluate(context.Background(), "", request)
		var failed *EvaluationError
		if err != nil && !errors.As(err, &failed) {
			t.Fatalf("%q: %v", expression, err)
		}
		for _, name := range missing {
			if _, given := request[name]; given {
				t.Fatalf("%q: %s is missing although given", expression, name)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%q took %v", expression, took)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	c := compile(b, "c(distance int; limit int): distance < limit")
	request := map[string]any{"distance": float64(3)}
	b.ReportAllocs()
	for b.Loop() {
		if got, _, err := c.Evaluate(context.Background(), `{"limit":5}`, request); err != nil || !got {
			b.Fatal(got, err)
		}
	}
}
