package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	apiclient "stonetown/cmd/stonetown/internal/client"
)

func relationsCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "relations",
		Short: "List, add and remove relations on a running server",
		Args:  cobra.NoArgs,
		// Runnable, so that a misspelt subcommand is an error and not this help.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(relationsList(environ), relationsAdd(environ), relationsRemove(environ))
	return cmd
}

func relationsList(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var relation string
	cmd := &cobra.Command{
		Use:   "list RESOURCE",
		Short: "List the direct relations of a resource",
		Long: `Lists the relations of a resource as they were written, nothing computed or
inherited: one per line, as resource#relation@subject, with their terms.`,
		Example: `  stonetown relations list document:q3
  stonetown relations list document:q3 --relation viewer --output json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			resource, err := apiclient.ParseRef(args[0])
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return listRelations(cmd, c, r.output, resource, relation)
		},
	}
	cmd.Flags().StringVar(&relation, "relation", "", "only this `relation`")
	return r.command(cmd)
}

func listRelations(cmd *cobra.Command, c *apiclient.Client, output string, resource apiclient.Ref, relation string) error {
	out := cmd.OutOrStdout()
	found := []apiclient.Stored[apiclient.Tuple]{}
	for t, err := range c.Relations(cmd.Context(), resource, relation) {
		if err != nil {
			return err
		}
		if output == "json" { // one list, so that it is whole or not there
			found = append(found, t)
		} else if err := printTuple(out, t.Value); err != nil {
			return err
		}
	}
	if output == "json" {
		return printJSON(out, found)
	}
	return nil
}

func printTuple(w io.Writer, t apiclient.Tuple) error {
	line := t.String()
	if t.ExpiresAt != "" {
		line += " until " + t.ExpiresAt
	}
	if t.Condition != nil {
		line += " if " + t.Condition.Name
		if t.Condition.Context != nil {
			line += " with " + apiclient.Printable(string(t.Condition.Context))
		}
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

func relationsAdd(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var expiresAt, condition, values string
	cmd := &cobra.Command{
		Use:   "add RESOURCE RELATION SUBJECT",
		Short: "Relate a subject to a resource",
		Long: `Writes a relation and prints created, or exists if it was there; one that was
there has the terms given now. The resource is registered if it is not.

A subject is type:id, type:id#relation for all who have that relation to it, or
type:* for everyone of a type. One whose id ends in # and a word is given as JSON.`,
		Example: `  stonetown relations add document:q3 viewer user:ann
  stonetown relations add document:q3 viewer group:eng --expires-at 2027-01-01T00:00:00Z
  stonetown relations add document:q3 viewer user:bob \
    --condition office_hours --condition-context '{"from":8,"to":18}'`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTuple(args)
			if err != nil {
				return err
			}
			t.ExpiresAt = expiresAt
			context, err := jsonObject("condition-context", values)
			if err != nil {
				return err
			}
			if condition != "" {
				t.Condition = &apiclient.Condition{Name: condition, Context: context}
			} else if context != nil {
				return errors.New("--condition-context without --condition")
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			created, err := c.CreateRelation(cmd.Context(), t)
			if err != nil {
				return err
			}
			status := "exists"
			if created {
				status = "created"
			}
			return printStatus(cmd.OutOrStdout(), r.output, status, t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&expiresAt, "expires-at", "", "`time` when the relation ceases to hold (RFC 3339)")
	f.StringVar(&condition, "condition", "", "`name` of a condition of the resource's type that must be met")
	f.StringVar(&values, "condition-context", "", "`JSON` object with values for the condition")
	return r.command(cmd)
}

func relationsRemove(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	cmd := &cobra.Command{
		Use:     "remove RESOURCE RELATION SUBJECT",
		Short:   "Remove a relation",
		Long:    `Removes a relation, whatever its terms. That there is none is an error.`,
		Example: `  stonetown relations remove document:q3 viewer user:ann`,
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTuple(args)
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.DeleteRelation(cmd.Context(), t); err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), r.output, "removed", t)
		},
	}
	return r.command(cmd)
}

// parseTuple reads RESOURCE RELATION SUBJECT.
func parseTuple(args []string) (t apiclient.Tuple, err error) {
	t.Relation = args[1]
	if t.Resource, err = apiclient.ParseRef(args[0]); err != nil {
		return t, err
	}
	t.Subject, err = apiclient.ParseSubject(args[2])
	return t, err
}

func printStatus(w io.Writer, output, status string, t apiclient.Tuple) error {
	if output == "json" {
		return printJSON(w, struct {
			Status string `json:"status"`
			apiclient.Tuple
		}{status, t})
	}
	_, err := fmt.Fprintf(w, "%s %s\n", status, t)
	return err
}
