package condition

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func numbers(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = json.Number("7")
	}
	return list
}

var costly = map[string]Definition{
	"comparison":   {Name: "c", Expression: "a < a", Parameters: []Parameter{{"a", "int"}}},
	"nested loops": {Name: "c", Expression: "l.all(x, l.all(y, x + y >= 0))", Parameters: []Parameter{{"l", "list<int>"}}},
	"large list":   {Name: "c", Expression: "a in l", Parameters: []Parameter{{"l", "list<int>"}, {"a", "int"}}},
	"regex":        {Name: "c", Expression: `s.matches("(a*)*(a*)*(a*)*b")`, Parameters: []Parameter{{"s", "string"}}},
	"long texts":   {Name: "c", Expression: `l.all(x, (s + s).contains('ab'))`, Parameters: []Parameter{{"l", "list<int>"}, {"s", "string"}}},
}

var costlyValues = map[string]any{"a": json.Number("1"), "l": numbers(300), "s": strings.Repeat("a", MaxText)}

// An evaluation is charged for the time that it takes, for any kind of work.
func TestMeter(t *testing.T) {
	for name, least := range map[string]int{"comparison": 100, "nested loops": 400_000, "large list": 1000, "regex": 100_000, "long texts": 100_000} {
		c, err := Compile(costly[name])
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		if _, _, err := c.EvaluateMetered(t.Context(), "", costlyValues, false, &steps); steps < least {
			t.Errorf("%s: %d steps, want %d or more; %v", name, steps, least, err)
		}
	}
	c, err := Compile(costly["comparison"])
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	if _, _, err := c.EvaluateMetered(t.Context(), `{"a":`+strings.Repeat(" ", 8000)+`1}`, nil, false, &steps); err != nil || steps < 2000 {
		t.Errorf("stored values: %d steps, %v", steps, err)
	}
}

// A quick evaluation either has the same result or fails with ErrNotQuick.
func TestQuick(t *testing.T) {
	for name, want := range map[string]error{"comparison": nil, "nested loops": ErrNotQuick, "large list": nil, "regex": ErrNotQuick} {
		c, err := Compile(costly[name])
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		if _, _, err := c.EvaluateMetered(t.Context(), "", costlyValues, true, &steps); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestLimitsOfText(t *testing.T) {
	c, err := Compile(costly["regex"])
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Evaluate(t.Context(), "", map[string]any{"s": strings.Repeat("a", MaxText+1)})
	if err == nil || !strings.Contains(err.Error(), "at most 16384") {
		t.Errorf("a long text: %v", err)
	}
	large := Definition{Name: "c", Expression: `s.matches("(a{1,100}){100}")`, Parameters: []Parameter{{"s", "string"}}}
	if _, err := Compile(large); err == nil {
		t.Error("a regular expression of more than 1,000 instructions was compiled")
	}
	large = Definition{Name: "c", Expression: `s.matches(s)`, Parameters: []Parameter{{"s", "string"}}}
	if c, err = Compile(large); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Evaluate(t.Context(), "", map[string]any{"s": "(a{1,100}){100}"}); err == nil {
		t.Error("a regular expression of more than 1,000 instructions was used")
	}
}

// BenchmarkSteps measures a step: about 30 ns for every kind of work.
func BenchmarkSteps(b *testing.B) {
	for name, d := range costly {
		c, err := Compile(d)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			steps := 0
			for b.Loop() {
				c.EvaluateMetered(b.Context(), "", costlyValues, false, &steps)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
		})
	}
}
