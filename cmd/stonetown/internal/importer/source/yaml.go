package source

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lines returns the line numbers in a file, from 1, of the lines of a text in a YAML node.
func Lines(file []string, n *yaml.Node) []int {
	texts := strings.Split(n.Value, "\n")
	numbers := make([]int, len(texts))
	next := n.Line // from 0, of the line after the one with | or >
	for i, text := range texts {
		switch n.Style &^ yaml.TaggedStyle {
		case yaml.LiteralStyle:
			numbers[i] = min(n.Line+1+i, len(file))
		case yaml.FoldedStyle:
			// Lines that are not indented more than the first one are joined, so a line of the
			// text is found by its beginning.
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
