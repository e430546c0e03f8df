package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

func schemaPlan(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var flags typesFlags
	var questions []string
	cmd := &cobra.Command{
		Use:   "plan [FILE...]",
		Short: "Print what schema apply would do",
		Long: `Prints the effects of a change of resource types without making it: the effect on each
type, the stored relations that the new types do not allow, the relations and actions
whose answers may change, the answers to the given questions before and after, and the
stored assertions that fail with the new types. It exits with 1 if stored relations
prevent the change or an assertion fails. Questions have the names before --rename.

` + typeFiles,
		Example: `  stonetown schema plan types.yaml
  stonetown schema plan types.yaml --question "user:ann view document:q3"
  stonetown schema plan types.yaml --delete draft --output json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.change(cmd, args)
			if err != nil {
				return err
			}
			asked, err := parseQuestions(questions)
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			counting, counted := newProgress(cmd.ErrOrStderr(), "counting relations", -1), 0
			plan, err := c.PlanTypes(cmd.Context(), change, asked, func(n int) {
				counting.add(n - counted)
				counted = n
			})
			counting.done()
			if err != nil {
				return err
			}
			if r.output == "json" {
				err = printJSON(cmd.OutOrStdout(), plan)
			} else {
				err = printPlan(cmd.OutOrStdout(), plan.Value, questions)
			}
			if err == nil && (len(plan.Value.Illegal) > 0 || plan.Value.Assertions.Failed > 0) {
				err = &exitError{code: 1}
			}
			return err
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringArrayVar(&questions, "question", nil, "answer `\"SUBJECT ACTION RESOURCE\"` before and after; may be repeated")
	return r.command(cmd)
}

func parseQuestions(texts []string) ([]apiclient.PlanQuestion, error) {
	var all []apiclient.PlanQuestion
	for _, text := range texts {
		words := strings.Fields(text)
		if len(words) != 3 {
			return nil, fmt.Errorf("question %q is not of the form SUBJECT ACTION RESOURCE", text)
		}
		subject, err := apiclient.ParseSubject(words[0])
		if err != nil {
			return nil, err
		}
		resource, err := apiclient.ParseRef(words[2])
		if err != nil {
			return nil, err
		}
		all = append(all, apiclient.PlanQuestion{Subject: subject, Action: words[1], Resource: resource})
	}
	return all, nil
}

func printPlan(w io.Writer, plan apiclient.TypesPlan, questions []string) error {
	for _, r := range plan.Renames {
		if _, err := fmt.Fprintf(w, "rename %s: %s stored\n", r.Rename, countOf(r.Count, r.Exact)); err != nil {
			return err
		}
	}
	if err := printChanges(w, plan.Changes); err != nil {
		return err
	}
	for _, found := range plan.Illegal {
		place := found.Type
		if found.Relation != "" {
			place += "#" + found.Relation
		}
		if found.Condition != "" {
			place += " with " + found.Condition
		}
		if found.Reason == "cardinality" {
			place += " with several subjects"
		}
		count := countOf(found.Count, found.Exact)
		sample := found.Samples[0].Resource.String()
		if found.Samples[0].Relation != "" {
			sample += "#" + found.Samples[0].Relation + "@" + found.Samples[0].Subject.String()
		}
		if _, err := fmt.Fprintf(w, "illegal %s: %s stored, such as %s\n", place, count, sample); err != nil {
			return err
		}
	}
	for _, a := range plan.Affected {
		if _, err := fmt.Fprintf(w, "affected %s: relations %s; actions %s\n", a.Type, list(a.Relations), list(a.Actions)); err != nil {
			return err
		}
	}
	for i, a := range plan.Answers {
		if _, err := fmt.Fprintf(w, "answer %s: %s, then %s\n", questions[i], a.Before, a.After); err != nil {
			return err
		}
	}
	if err := printAssertions(w, plan.Assertions); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "revision", plan.Revision)
	return err
}

func printAssertions(w io.Writer, r apiclient.AssertionReport) error {
	for _, f := range r.Failures {
		if _, err := fmt.Fprintf(w, "failed %s: %s expected %s, got %s, then %s\n", f.Set, f.Question, list(f.Expected), list(f.Before), list(f.After)); err != nil {
			return err
		}
	}
	for _, set := range r.Unreadable {
		if _, err := fmt.Fprintf(w, "failed %s: the server cannot read this set\n", set); err != nil {
			return err
		}
	}
	if r.Assertions == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%d of %d stored assertions hold\n", r.Assertions-r.Failed, r.Assertions)
	return err
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
