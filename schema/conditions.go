package schema

import (
	"errors"
	"fmt"

	"stonetown/schema/condition"
)

// Condition returns a condition of a type, nil if the type has no such condition.
func (c *Compiled) Condition(typ, name string) *condition.Condition {
	return c.conditions[relationKey{typ, name}]
}

func (c *Compiled) compileConditions() error {
	for _, t := range c.Types {
		if n := len(t.Conditions); n > MaxConditions {
			return fieldError(t.Name, "conditions", "too_many", "%d conditions, at most %d are allowed", n, MaxConditions)
		}
		for i, d := range t.Conditions {
			path := fmt.Sprintf("conditions[%d]", i)
			key := relationKey{t.Name, d.Name}
			if c.conditions[key] != nil {
				return fieldError(t.Name, path+".name", "duplicate", "condition %q is defined twice", d.Name)
			}
			compiled, err := condition.Compile(d)
			var invalid *condition.Error
			if errors.As(err, &invalid) {
				return fieldError(t.Name, path+"."+invalid.Path, invalid.Reason, "condition %q: %s", d.Name, invalid.Message)
			}
			if err != nil {
				return err
			}
			c.conditions[key] = compiled
		}
	}
	return nil
}
