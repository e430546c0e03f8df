package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

func listCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List on a running server what is allowed, and why: resources, subjects, actions or proofs",
		Args:  cobra.NoArgs,
		// Runnable, so that a misspelt subcommand is an error instead of this help text.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listResources(environ), listSubjects(environ), listActions(environ), listProofs(environ))
	return cmd
}

func listResources(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var q apiclient.Allowed
	var values string
	var count int
	cmd := &cobra.Command{
		Use:   "resources SUBJECT ACTION TYPE [ACTION TYPE]...",
		Short: "List the resources on which a subject may perform actions",
		Long: `Lists the resources of a type on which a subject may perform an action, one per line.
For several pairs of an action and a type, each resource is followed by its actions.`,
		Example: `  stonetown list resources user:ann view document
  stonetown list resources user:ann view document edit document view folder
  stonetown list resources user:ann view document --count 1000`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 3 || len(args)%2 == 0 {
				return errors.New("requires a subject and pairs of an action and a type: SUBJECT ACTION TYPE [ACTION TYPE]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Subject, err = apiclient.ParseSubject(args[0]); err != nil {
				return err
			}
			for i := 1; i < len(args); i += 2 {
				q.Queries = append(q.Queries, apiclient.Allowance{Action: args[i], Type: args[i+1]})
			}
			if q.Context, err = jsonObject("context", values); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			if cmd.Flags().Changed("count") {
				n, err := c.CountAllowed(cmd.Context(), q, count)
				if err != nil {
					return err
				}
				return printCount(cmd, r.output, n)
			}
			return printList(cmd, r.output, c.AllowedResources(cmd.Context(), q), func(a apiclient.AllowedResource) string {
				if len(q.Queries) == 1 {
					return a.Ref.String()
				}
				return a.Ref.String() + " " + strings.Join(a.Actions, " ")
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.IDPrefix, "id-prefix", "", "only ids that begin with this `text`")
	f.StringVar(&values, "context", "", "`JSON` object with values for conditions")
	atFlag(cmd, &q.At)
	f.IntVar(&count, "count", 0, "print their number, counted up to a `limit`, followed by + if there are more")
	return r.command(cmd)
}

func printCount(cmd *cobra.Command, output string, n apiclient.Count) error {
	if output == "json" {
		return printJSON(cmd.OutOrStdout(), n)
	}
	more := "+"
	if n.Exact {
		more = ""
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d%s\n", n.Count, more)
	return err
}

func listSubjects(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var q apiclient.Holders
	var values string
	cmd := &cobra.Command{
		Use:   "subjects TYPE ACTION RESOURCE",
		Short: "List the subjects of a type that may perform an action",
		Long: `Lists the subjects of a type that may perform an action on a resource, one per line.
The line type:* stands for all subjects of the type except for those marked as excluded.`,
		Example: `  stonetown list subjects user view document:q3
  stonetown list subjects folder view document:q3 --relation viewer`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			q.SubjectType, q.Action = args[0], args[1]
			if q.Resource, err = apiclient.ParseRef(args[2]); err != nil {
				return err
			}
			if q.Context, err = jsonObject("context", values); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return printList(cmd, r.output, c.AllowedSubjects(cmd.Context(), q), func(h apiclient.Holder) string {
				if h.Excluded {
					return h.Subject.String() + " excluded"
				}
				return h.Subject.String()
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.SubjectRelation, "relation", "", "list usersets: the holders of this `relation` to a resource of the type")
	f.StringVar(&q.IDPrefix, "id-prefix", "", "only ids that begin with this `text`")
	f.StringVar(&values, "context", "", "`JSON` object with values for conditions")
	atFlag(cmd, &q.At)
	return r.command(cmd)
}

func listActions(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var q apiclient.Abilities
	var values string
	cmd := &cobra.Command{
		Use:   "actions SUBJECT RESOURCE",
		Short: "List the actions that a subject may perform on a resource",
		Long: `Lists the actions that a check would allow, one per line: actions of the resource's type,
conventional ones and relations by their names.`,
		Example: `  stonetown list actions user:ann document:q3`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Subject, err = apiclient.ParseSubject(args[0]); err != nil {
				return err
			}
			if q.Resource, err = apiclient.ParseRef(args[1]); err != nil {
				return err
			}
			if q.Context, err = jsonObject("context", values); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			actions, err := c.AllowedActions(cmd.Context(), q)
			if err != nil {
				return err
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), actions)
			}
			for _, action := range actions {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), apiclient.Printable(action)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&values, "context", "", "`JSON` object with values for conditions")
	atFlag(cmd, &q.At)
	return r.command(cmd)
}

func listProofs(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var q apiclient.Question
	var values string
	cmd := &cobra.Command{
		Use:   "proofs SUBJECT ACTION RESOURCE",
		Short: "List the ways in which a subject is allowed to perform an action",
		Long: `Lists the proofs that a subject may perform an action on a resource: for each, the steps
from the resource to the subject, one per line, and an empty line.`,
		Example: `  stonetown list proofs user:ann view document:q3`,
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseQuestion(&q, args, values); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return printList(cmd, r.output, c.Proofs(cmd.Context(), q), func(p apiclient.Proof) string {
				var lines strings.Builder
				for _, reason := range p.Reasons {
					fmt.Fprintln(&lines, apiclient.Printable(reason.Text))
				}
				return lines.String()
			})
		},
	}
	cmd.Flags().StringVar(&values, "context", "", "`JSON` object with values for conditions")
	atFlag(cmd, &q.At)
	return r.command(cmd)
}

// printList prints a list: one line per item or, as JSON, one list, which is complete or
// absent.
func printList[T any](cmd *cobra.Command, output string, list iter.Seq2[apiclient.Stored[T], error], line func(T) string) error {
	found := []apiclient.Stored[T]{}
	for item, err := range list {
		if err != nil {
			return err
		}
		if output == "json" {
			found = append(found, item)
		} else if _, err := fmt.Fprintln(cmd.OutOrStdout(), line(item.Value)); err != nil {
			return err
		}
	}
	if output == "json" {
		return printJSON(cmd.OutOrStdout(), found)
	}
	return nil
}
