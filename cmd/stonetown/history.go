package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

func historyCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var q apiclient.Question
	var values string
	cmd := &cobra.Command{
		Use:   "history SUBJECT ACTION RESOURCE",
		Short: "List on a running server when the answer to a check changed, and by which write",
		Long: `Lists the changes of the answer to a check within the retained history, newest first: the
time, the answer since then, and the cause: a write and its actor, the expiry of a
relation, or a change of resource types. If earlier changes are not retained, it says so;
an answer that was allowed before them is listed with the relations that prove it.`,
		Example: `  stonetown history user:ann view document:q3
  stonetown history user:ann view document:q3 --at 2026-11-22T09:30:00Z`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseQuestion(&q, args, values); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return printHistory(cmd, r.output, c, q)
		},
	}
	cmd.Flags().StringVar(&values, "context", "", "`JSON` object with values for conditions")
	atFlag(cmd, &q.At)
	return r.command(cmd)
}

// printHistory prints the changes as they are found or, as JSON, all of the history.
func printHistory(cmd *cobra.Command, output string, c *apiclient.Client, q apiclient.Question) error {
	var all struct {
		Changes []apiclient.Stored[apiclient.DecisionChange] `json:"changes"`
		apiclient.HistoryEnd
	}
	changes := c.CheckHistory(cmd.Context(), q, &all.HistoryEnd)
	if output == "json" {
		all.Changes = []apiclient.Stored[apiclient.DecisionChange]{}
		for change, err := range changes {
			if err != nil {
				return err
			}
			all.Changes = append(all.Changes, change)
		}
		return printJSON(cmd.OutOrStdout(), all)
	}
	if err := printList(cmd, output, changes, historyLine); err != nil {
		return err
	}
	if !all.Ended {
		return nil
	}
	lines := []string{"earlier changes are not retained"}
	for _, r := range all.Proof {
		lines = append(lines, fmt.Sprintf("%s %s by %s", r.Value.CreatedAt, r.Value.Tuple, apiclient.Printable(r.Value.CreatedBy)))
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

func historyLine(c apiclient.DecisionChange) string {
	answer := "denied"
	switch {
	case c.Allowed:
		answer = "allowed"
	case c.Error != "":
		answer = c.Error
	}
	return strings.TrimSpace(strings.Join([]string{c.At, answer, c.Cause, apiclient.Printable(c.Actor)}, " "))
}
