package spicedb

import (
	"fmt"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/schema/condition"
)

// translateCaveats translates the caveats that are valid conditions here.
func (m *model) translateCaveats() {
	for _, c := range m.caveats {
		d := condition.Definition{Name: m.conditionNames[c.Name], Expression: c.Expression}
		for _, p := range c.Parameters {
			// In SpiceDB an unsigned parameter is a CEL int that refuses negative values, and
			// expressions are written for that.
			typ := strings.ReplaceAll(p.Type, "uint", "int")
			d.Parameters = append(d.Parameters, condition.Parameter{Name: p.Name, Type: typ})
		}
		if _, err := condition.Compile(d); err != nil {
			why, _, _ := strings.Cut(err.Error(), "\n") // CEL draws the position on the next lines
			m.refused[c.Name] = why
			m.data.Find(place(c.Pos), importer.Unsupported, fmt.Sprintf("caveat %s is left out: %s", c.Name, why))
			continue
		}
		m.conditions[c.Name] = d
		for i, p := range c.Parameters {
			if d.Parameters[i].Type != p.Type {
				m.data.Find(place(c.Pos), importer.Widened, fmt.Sprintf("parameter %s of caveat %s may be negative", p.Name, c.Name))
			}
		}
	}
}
