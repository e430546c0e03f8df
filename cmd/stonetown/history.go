package main

import (
	"strings"

	"github.com/spf13/cobra"

	apiclient "stonetown/cmd/stonetown/internal/client"
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
relation, or a change of resource types.`,
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
			return printList(cmd, r.output, c.CheckHistory(cmd.Context(), q), historyLine)
		},
	}
	cmd.Flags().StringVar(&values, "context", "", "`JSON` object with values for conditions")
	atFlag(cmd, &q.At)
	return r.command(cmd)
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
