package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

func expandCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var q apiclient.Expand
	cmd := &cobra.Command{
		Use:   "expand RESOURCE ACTION",
		Short: "Show on a running server by which rewrites and relations an action is allowed",
		Long: `Prints the tree of rewrites and relations behind an action on a resource. Below each
rewrite are the relations that it reads, and its operands; the second operand of an
exclusion begins with "except". Conditions are shown, not evaluated. What lies beyond
--depth ends with (depth).`,
		Example: `  stonetown expand document:q3 view
  stonetown expand document:q3 view --depth 5`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Resource, err = apiclient.ParseRef(args[0]); err != nil {
				return err
			}
			q.Action = args[1]
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			root, err := c.Expand(cmd.Context(), q)
			if err != nil {
				return err
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), root)
			}
			return printExpansion(cmd.OutOrStdout(), root, 0, "")
		},
	}
	cmd.Flags().IntVar(&q.Depth, "depth", 1, "how `often` the tree goes on to another resource or group, at most 50")
	atFlag(cmd, &q.At)
	return r.command(cmd)
}

// printExpansion prints a node, and below it, indented, what it consists of.
func printExpansion(w io.Writer, node apiclient.Expansion, depth int, prefix string) error {
	line := strings.Repeat("  ", depth) + prefix + node.Resource.String() + "#" + node.Relation + " " + node.Kind
	if node.Tupleset != "" {
		line += " by " + node.Tupleset
	}
	if node.Mode != "" {
		line += " (" + node.Mode + ")"
	}
	if node.Cut != "" {
		line += " (" + node.Cut + ")"
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return err
	}
	for _, m := range append(node.Links, node.Subjects...) {
		if _, err := fmt.Fprintln(w, strings.Repeat("  ", depth+1)+m.Subject.String()+qualified(m.ExpiresAt, m.Condition)); err != nil {
			return err
		}
	}
	for i, child := range node.Children {
		prefix := ""
		if node.Kind == "exclusion" && i > 0 {
			prefix = "except "
		}
		if err := printExpansion(w, child, depth+1, prefix); err != nil {
			return err
		}
	}
	return nil
}
