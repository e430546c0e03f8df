package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apiclient "stonetown/client"
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
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "list RESOURCE | list --resource-type TYPE | list --subject SUBJECT",
		Short: "List the direct relations of a resource, of a type or of a subject",
		Long: `Lists the direct relations of a resource, or those that the flags select, without
derived ones: one per line, as resource#relation@subject, with conditions and expiry.`,
		Example: `  stonetown relations list document:q3
  stonetown relations list document:q3 --relation viewer --output json
  stonetown relations list --resource-type document --relation owner
  stonetown relations list --subject user:ann --resource-type document`,
		Args: func(cmd *cobra.Command, args []string) error {
			if filter.given() {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list := func(c *apiclient.Client) iter.Seq2[apiclient.Stored[apiclient.Tuple], error] {
				return c.FindRelations(cmd.Context(), filter.RelationFilter)
			}
			if filter.given() {
				if err := filter.parse(); err != nil {
					return err
				}
			} else {
				resource, err := apiclient.ParseRef(args[0])
				if err != nil {
					return err
				}
				list = func(c *apiclient.Client) iter.Seq2[apiclient.Stored[apiclient.Tuple], error] {
					return c.Relations(cmd.Context(), resource, filter.Relation)
				}
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return listRelations(cmd, r.output, list(c))
		},
	}
	filter.add(cmd.Flags())
	return r.command(cmd)
}

// filterFlags select relations.
type filterFlags struct {
	apiclient.RelationFilter
	subject, resource string
}

func (s *filterFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.subject, "subject", "", "only relations to this `subject`: type:id, or type:id#relation for this relation only")
	f.StringVar(&s.SubjectType, "subject-type", "", "only relations to subjects of this `type`")
	f.StringVar(&s.SubjectRelation, "subject-relation", "", "only relations to this `relation` of their subjects")
	f.StringVar(&s.ResourceType, "resource-type", "", "only relations of resources of this `type`")
	f.StringVar(&s.resource, "resource", "", "only relations of this `resource`, type:id")
	f.StringVar(&s.Relation, "relation", "", "only this `relation`")
}

// given reports whether the flags select relations beyond those of one resource.
func (s *filterFlags) given() bool {
	return s.subject+s.SubjectType+s.SubjectRelation+s.ResourceType+s.resource != ""
}

func (s *filterFlags) parse() error {
	switch {
	case s.ResourceType != "" && s.resource != "":
		return errors.New("--resource-type and --resource cannot be combined")
	case s.subject != "" && s.SubjectType+s.SubjectRelation != "":
		return errors.New("--subject cannot be combined with --subject-type and --subject-relation")
	case s.subject+s.SubjectType+s.ResourceType+s.resource == "":
		return errors.New("--resource, --resource-type, --subject or --subject-type is required")
	}
	if s.resource != "" {
		r, err := apiclient.ParseRef(s.resource)
		if err != nil {
			return err
		}
		s.ResourceType, s.ExternalID = r.Type, r.ExternalID
	}
	if s.subject != "" {
		subject, err := apiclient.ParseSubject(s.subject)
		if err != nil {
			return err
		}
		s.SubjectType, s.SubjectID, s.SubjectRelation = subject.Type, subject.ID, subject.Relation
	}
	return nil
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
	_, err := fmt.Fprintln(w, t.String()+qualified(t.ExpiresAt, t.Condition))
	return err
}

// qualified returns what is printed after a relation about its expiry and its condition.
func qualified(expiresAt string, c *apiclient.Condition) (text string) {
	if expiresAt != "" {
		text += " until " + expiresAt
	}
	if c != nil {
		text += " if " + c.Name
		if c.Context != nil {
			text += " with " + apiclient.Printable(string(c.Context))
		}
	}
	return text
}

func relationsAdd(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var expiresAt, condition, values string
	var isNew bool
	var under conditionFlags
	cmd := &cobra.Command{
		Use:   "add RESOURCE RELATION SUBJECT",
		Short: "Add a relation between a subject and a resource",
		Long: `Writes a relation and prints created, or exists if the relation existed. The condition
and expiry of an existing relation are replaced, unless --new is set, which then fails.
The resource is registered if needed. Preconditions are judged together with the write.

A subject is type:id, type:id#relation for all subjects with that relation to it, or
type:* for all subjects of a type. Write a subject whose id ends in # and a word as
JSON.`,
		Example: `  stonetown relations add document:q3 viewer user:ann
  stonetown relations add document:q3 viewer group:eng --expires-at 2027-01-01T00:00:00Z
  stonetown relations add document:q3 viewer user:bob \
    --condition office_hours --condition-context '{"from":8,"to":18}'
  stonetown relations add document:q3 owner user:ann --must-not-exist document:q3#owner`,
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
			conditions := apiclient.Conditions{}
			if conditions.Preconditions, err = under.preconditions(); err != nil {
				return err
			}
			if isNew {
				conditions.OnExisting = "fail"
			}
			c, err := r.open(cmd.Flags(), patience, under.scopes()...)
			if err != nil {
				return err
			}
			defer c.Close()
			status, err := add(cmd.Context(), c, t, conditions)
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), r.output, status, t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&expiresAt, "expires-at", "", "`time` when the relation expires (RFC 3339)")
	f.StringVar(&condition, "condition", "", "`name` of a condition, defined in the resource's type, that must be met")
	f.StringVar(&values, "condition-context", "", "`JSON` object with values for the condition")
	f.BoolVar(&isNew, "new", false, "fail if the relation exists")
	under.add(f)
	return r.command(cmd)
}

// add writes a relation and returns its outcome: created, updated or exists.
func add(ctx context.Context, c *apiclient.Client, t apiclient.Tuple, conditions apiclient.Conditions) (string, error) {
	if conditions.None() {
		created, err := c.CreateRelation(ctx, t)
		if !created {
			return "exists", err
		}
		return "created", err
	}
	outcomes, err := c.Bulk(ctx, []apiclient.Operation{{Op: "create", Tuple: t}}, conditions)
	if err != nil {
		return "", err
	}
	return outcomes[0].Status, nil
}

// remove deletes a relation and returns its outcome: removed or missing.
func remove(ctx context.Context, c *apiclient.Client, t apiclient.Tuple, conditions apiclient.Conditions) (string, error) {
	if conditions.None() {
		return "removed", c.DeleteRelation(ctx, t)
	}
	t.ExpiresAt, t.Condition = "", nil
	outcomes, err := c.Bulk(ctx, []apiclient.Operation{{Op: "delete", Tuple: t}}, conditions)
	if err != nil || outcomes[0].Status == "missing" {
		return "missing", err
	}
	return "removed", nil
}

func relationsRemove(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var ifExists bool
	var under conditionFlags
	cmd := &cobra.Command{
		Use:   "remove RESOURCE RELATION SUBJECT",
		Short: "Remove a relation",
		Long: `Removes a relation with its condition and expiry. It is an error if there is none, unless
--if-exists is set. Preconditions are judged together with the removal.`,
		Example: `  stonetown relations remove document:q3 viewer user:ann
  stonetown relations remove document:q3 owner user:ann --must-exist document:q3#owner@user:bob`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTuple(args)
			if err != nil {
				return err
			}
			conditions := apiclient.Conditions{}
			if conditions.Preconditions, err = under.preconditions(); err != nil {
				return err
			}
			if ifExists {
				conditions.OnMissing = "ok"
			}
			c, err := r.open(cmd.Flags(), patience, under.scopes()...)
			if err != nil {
				return err
			}
			defer c.Close()
			status, err := remove(cmd.Context(), c, t, conditions)
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), r.output, status, t)
		},
	}
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "print missing, instead of failing, if there is no such relation")
	under.add(cmd.Flags())
	return r.command(cmd)
}

func relationsDelete(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "delete --resource-type TYPE | delete --resource RESOURCE | delete --subject SUBJECT",
		Short: "Delete the direct relations that the flags select",
		Long: `Deletes every relation that the flags select, and prints their number. Relations of a
subject include those to its usersets. Group memberships and other relations that are
maintained by the operations on users, groups and applications are kept.`,
		Example: `  stonetown relations delete --subject user:ann
  stonetown relations delete --subject user:ann --resource-type document --relation viewer
  stonetown relations delete --resource document:q3 --relation viewer`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.parse(); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			deleted, err := c.DeleteRelations(cmd.Context(), filter.RelationFilter)
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
	filter.add(cmd.Flags())
	return r.command(cmd)
}

// conditionFlags are the preconditions of a write.
type conditionFlags struct{ mustExist, mustNotExist []string }

func (c *conditionFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&c.mustExist, "must-exist", nil, "fail unless such a relation exists: `RESOURCE#RELATION@SUBJECT`, of which parts can be missing; repeatable")
	f.StringArrayVar(&c.mustNotExist, "must-not-exist", nil, "fail if such a relation exists: `RESOURCE#RELATION@SUBJECT`, of which parts can be missing; repeatable")
}

func (c *conditionFlags) preconditions() (all []apiclient.Precondition, err error) {
	for _, text := range c.mustExist {
		f, err := apiclient.ParseFilter(text)
		if err != nil {
			return nil, err
		}
		all = append(all, apiclient.Precondition{MustExist: &f})
	}
	for _, text := range c.mustNotExist {
		f, err := apiclient.ParseFilter(text)
		if err != nil {
			return nil, err
		}
		all = append(all, apiclient.Precondition{MustNotExist: &f})
	}
	return all, nil
}

// scopes are those that a write under conditions requires.
func (c *conditionFlags) scopes() []string {
	if len(c.mustExist)+len(c.mustNotExist) > 0 {
		return []string{apiclient.ScopeRead, apiclient.ScopeWrite}
	}
	return []string{apiclient.ScopeWrite}
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
