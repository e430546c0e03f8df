package main

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apiclient "stonetown/cmd/stonetown/internal/client"
)

func relationsCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "relations",
		Short: "List, add, remove and delete relations on a running server",
		Args:  cobra.NoArgs,
		// Runnable, so that a misspelt subcommand is an error instead of this help text.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(relationsList(environ), relationsAdd(environ), relationsRemove(environ), relationsDelete(environ))
	return cmd
}

func relationsList(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var relation string
	var subject subjectFlags
	cmd := &cobra.Command{
		Use:   "list RESOURCE | list --subject SUBJECT",
		Short: "List the direct relations of a resource or of a subject",
		Long: `Lists the direct relations of a resource, or those that name a subject, without
derived ones: one per line, as resource#relation@subject, with conditions and expiry.`,
		Example: `  stonetown relations list document:q3
  stonetown relations list document:q3 --relation viewer --output json
  stonetown relations list --subject user:ann --resource-type document`,
		Args: func(cmd *cobra.Command, args []string) error {
			if subject.subject != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := subject.filter(relation)
			if err != nil {
				return err
			}
			if subject.subject != "" {
				c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
				if err != nil {
					return err
				}
				defer c.Close()
				return listRelations(cmd, r.output, c.SubjectRelations(cmd.Context(), filter))
			}
			resource, err := apiclient.ParseRef(args[0])
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return listRelations(cmd, r.output, c.Relations(cmd.Context(), resource, relation))
		},
	}
	subject.add(cmd.Flags())
	cmd.Flags().StringVar(&relation, "relation", "", "only this `relation`")
	return r.command(cmd)
}

// subjectFlags select relations by their subject.
type subjectFlags struct{ subject, resourceType, resource string }

func (s *subjectFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.subject, "subject", "", "`subject` of the relations: type:id, or type:id#relation for this relation only")
	f.StringVar(&s.resourceType, "resource-type", "", "with --subject: only relations to resources of this `type`")
	f.StringVar(&s.resource, "resource", "", "with --subject: only relations to this `resource`, type:id")
}

func (s *subjectFlags) filter(relation string) (f apiclient.SubjectFilter, err error) {
	f.ResourceType, f.Relation = s.resourceType, relation
	switch {
	case s.subject == "" && (s.resourceType != "" || s.resource != ""):
		return f, errors.New("--resource-type and --resource require --subject")
	case s.resourceType != "" && s.resource != "":
		return f, errors.New("--resource-type and --resource cannot be combined")
	case s.subject == "":
		return f, nil
	}
	if s.resource != "" {
		r, err := apiclient.ParseRef(s.resource)
		if err != nil {
			return f, err
		}
		f.ResourceType, f.ExternalID = r.Type, r.ExternalID
	}
	f.Subject, err = apiclient.ParseSubject(s.subject)
	return f, err
}

func listRelations(cmd *cobra.Command, output string, relations iter.Seq2[apiclient.Stored[apiclient.Tuple], error]) error {
	out := cmd.OutOrStdout()
	found := []apiclient.Stored[apiclient.Tuple]{}
	for t, err := range relations {
		if err != nil {
			return err
		}
		if output == "json" { // one list, which is complete or absent
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
		Short: "Add a relation between a subject and a resource",
		Long: `Writes a relation and prints created, or exists if the relation existed. The condition
and expiry of an existing relation are replaced. The resource is registered if needed.

A subject is type:id, type:id#relation for all subjects with that relation to it, or
type:* for all subjects of a type. Write a subject whose id ends in # and a word as
JSON.`,
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
				return errors.New("--condition-context requires --condition")
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
	f.StringVar(&expiresAt, "expires-at", "", "`time` when the relation expires (RFC 3339)")
	f.StringVar(&condition, "condition", "", "`name` of a condition, defined in the resource's type, that must be met")
	f.StringVar(&values, "condition-context", "", "`JSON` object with values for the condition")
	return r.command(cmd)
}

func relationsRemove(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	cmd := &cobra.Command{
		Use:     "remove RESOURCE RELATION SUBJECT",
		Short:   "Remove a relation",
		Long:    `Removes a relation with its condition and expiry. It is an error if there is none.`,
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

func relationsDelete(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var relation string
	var subject subjectFlags
	cmd := &cobra.Command{
		Use:   "delete --subject SUBJECT",
		Short: "Delete the direct relations of a subject",
		Long: `Deletes every relation whose subject is the given one or a userset of it, on all
resources, and prints their number. Group memberships and other relations that are
maintained by the operations on users, groups and applications are kept.`,
		Example: `  stonetown relations delete --subject user:ann
  stonetown relations delete --subject user:ann --resource-type document --relation viewer`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := subject.filter(relation)
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			deleted, err := c.DeleteSubjectRelations(cmd.Context(), filter)
			if err != nil && deleted > 0 {
				return fmt.Errorf("after %d relations: %w", deleted, err)
			}
			if err != nil {
				return err
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), map[string]int{"deleted": deleted})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "deleted %d relations\n", deleted)
			return err
		},
	}
	subject.add(cmd.Flags())
	if err := cmd.MarkFlagRequired("subject"); err != nil {
		panic(err)
	}
	cmd.Flags().StringVar(&relation, "relation", "", "only this `relation`")
	return r.command(cmd)
}

// parseTuple parses RESOURCE RELATION SUBJECT.
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
