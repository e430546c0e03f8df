package identity

import (
	"fmt"
	"strings"
)

// conditions builds a WHERE clause and its arguments.
type conditions struct {
	parts []string
	args  []any
}

// where adds a condition, with %s for each value.
func (c *conditions) where(condition string, values ...any) {
	parameters := make([]any, len(values))
	for i, value := range values {
		parameters[i] = c.arg(value)
	}
	c.parts = append(c.parts, fmt.Sprintf(condition, parameters...))
}

// contains adds the condition that a text contains all words.
func (c *conditions) contains(column string, words []string) {
	for _, word := range words {
		c.where(column+` LIKE %s ESCAPE '\'`, "%"+likeEscaper.Replace(word)+"%")
	}
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// among adds the condition that a column has one of the values, of which there is at least one.
// The last value is repeated up to the next power of two, so that there are few different
// statements to prepare.
func (c *conditions) among(column string, values []string) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	parameters := make([]string, n)
	for i := range parameters {
		parameters[i] = c.arg(values[min(i, len(values)-1)])
	}
	c.parts = append(c.parts, fmt.Sprintf("%s IN (%s)", column, strings.Join(parameters, ", ")))
}

// arg adds an argument and returns its parameter.
func (c *conditions) arg(value any) string {
	c.args = append(c.args, value)
	return fmt.Sprintf("$%d", len(c.args))
}

func (c *conditions) String() string { return strings.Join(c.parts, " AND ") }
