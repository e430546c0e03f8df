package source

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lines says in which lines of a file, from 1, the lines of a text stand that a
// YAML node holds.
func Lines(file []string, n *yaml.Node) []int {
	texts := strings.Split(n.Value, "\n")
	numbers := make([]int, len(texts))
	next := n.Line // from 0, so that of the line after the one that says | or >
	for i, text := range texts {
		switch n.Style &^ yaml.TaggedStyle {
		case yaml.LiteralStyle:
			numbers[i] = min(n.Line+1+i, len(file))
		case yaml.FoldedStyle:
			// Lines that are not indented more than the first are joined, so a
			// line of the text is found by what it begins with.
			for text = strings.TrimSpace(text); text != "" && next < len(file); next++ {
				begins := strings.TrimSpace(file[next])
				if begins != "" && strings.HasPrefix(text, begins) {
					break
				}
			}
			numbers[i] = min(next+1, len(file))
			if text != "" {
				next++
			}
		default:
			numbers[i] = n.Line
		}
	}
	return numbers
}
