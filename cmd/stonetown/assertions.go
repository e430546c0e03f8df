package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"stonetown/api/resources"
	apiclient "stonetown/client"
	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/engine"
	"stonetown/internal/definitions"
)

func assertionsCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assertions",
		Short: "Store assertions that plans of resource types run",
		Args:  cobra.NoArgs,
		// Runnable, so that a misspelt subcommand is an error instead of this help text.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(assertionsPut(environ), assertionsGet(environ), assertionsList(environ), assertionsDelete(environ))
	return cmd
}

func assertionsPut(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var from string
	cmd := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Store the assertions of a test file",
		Long: `Stores the relations and the assertions of a file for stonetown test, without its types,
and replaces those stored under this name. Each plan of changed types runs them, and
schema apply --require-assertions refuses a change with which one fails.`,
		Example: `  stonetown assertions put documents examples/documents.test.yaml
  stonetown schema plan types.yaml`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readData(args[1:], from)
			if err != nil {
				return err
			}
			for _, f := range data.Report {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s %s: %s\n", at(f.At), f.Kind, f.Message)
			}
			set, err := assertionSet(data)
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			stored, err := c.PutAssertionSet(cmd.Context(), args[0], set)
			if err != nil {
				return err
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), stored)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "stored %s: %d assertions\n", stored.Value.Name, stored.Value.Assertions)
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", fromUsage)
	return r.command(cmd)
}

func assertionsGet(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	return r.command(&cobra.Command{
		Use:     "get NAME",
		Short:   "Print stored assertions",
		Long:    `Prints stored assertions in the form of the API, as YAML or JSON.`,
		Example: `  stonetown assertions get documents`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			set, err := c.AssertionSet(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), set)
			}
			return definitions.WriteYAML(cmd.OutOrStdout(), set.JSON)
		},
	})
}

func assertionsList(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	return r.command(&cobra.Command{
		Use:     "list",
		Short:   "List the stored assertions",
		Long:    `Lists the names of the stored assertions, with their numbers.`,
		Example: `  stonetown assertions list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			return printList(cmd, r.output, c.AssertionSets(cmd.Context()), func(s apiclient.AssertionSet) string {
				return fmt.Sprint(s.Name, " ", s.Assertions)
			})
		},
	})
}

func assertionsDelete(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	return r.command(&cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete stored assertions",
		Long:    `Deletes stored assertions.`,
		Example: `  stonetown assertions delete documents`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.DeleteAssertionSet(cmd.Context(), args[0]); err != nil {
				return err
			}
			return printDeleted(cmd, r.output, args[0])
		},
	})
}

// assertionSet returns the relations and the assertions of files in the form of the API.
func assertionSet(data *importer.Data) (json.RawMessage, error) {
	set := resources.AssertionSetInput{Relations: factsOf(data.Relations), Tests: []resources.AssertionTest{}}
	for i, a := range data.Assertions {
		if i == 0 || !sameTest(data.Assertions[i-1], a) {
			t := resources.AssertionTest{Name: a.Name, Relations: factsOf(a.Contextual)}
			if !a.Instant.IsZero() {
				at := a.Instant.Format(time.RFC3339Nano)
				t.At = &at
			}
			if a.Context != nil {
				text, err := strict.Marshal(a.Context, strict.Deterministic(true))
				if err != nil {
					return nil, fmt.Errorf("%s the context cannot be written as JSON: %w", at(a.At), err)
				}
				t.Context = text
			}
			set.Tests = append(set.Tests, t)
		}
		if err := addAssertion(&set.Tests[len(set.Tests)-1], a); err != nil {
			return nil, err
		}
	}
	text, err := strict.Marshal(set, strict.Deterministic(true))
	return json.RawMessage(text), err
}

// sameTest reports whether two assertions differ only in their questions.
func sameTest(a, b importer.Assertion) bool {
	return a.Name == b.Name && a.Instant.Equal(b.Instant) && reflect.DeepEqual(a.Context, b.Context) && reflect.DeepEqual(a.Contextual, b.Contextual)
}

func addAssertion(t *resources.AssertionTest, a importer.Assertion) error {
	switch {
	case a.Check != nil:
		c := resources.AssertedCheck{Subject: engine.SubjectDocumentOf(a.Check.Subject), Action: a.Check.Action, Resource: engine.RefTo(a.Check.Resource)}
		switch a.Check.Want {
		case importer.Allowed:
			t.Allow = append(t.Allow, resources.AssertedAllowed{Subject: c.Subject, Action: c.Action, Resource: c.Resource, Reasons: a.Check.Reasons})
		case importer.Denied:
			t.Deny = append(t.Deny, c)
		default:
			t.Undecided = append(t.Undecided, c)
		}
	case a.Resources != nil:
		t.Resources = append(t.Resources, resources.AssertedResources{
			Subject: engine.SubjectDocumentOf(a.Resources.Subject), Action: a.Resources.Action, Type: a.Resources.Type, IDs: ids(a.Resources.Want),
		})
	case a.Subjects.Partial:
		return fmt.Errorf("%s a part of a list cannot be stored: %s", at(a.At), a.Question())
	default:
		t.Subjects = append(t.Subjects, resources.AssertedSubjects{
			Resource: engine.RefTo(a.Subjects.Resource), Action: a.Subjects.Action,
			SubjectType: a.Subjects.Type, SubjectRelation: a.Subjects.Relation, IDs: ids(a.Subjects.Want),
		})
	}
	return nil
}

// ids is not nil, which the API refuses.
func ids(want []string) []string {
	if want == nil {
		return []string{}
	}
	return want
}

func factsOf(ops []engine.WriteOp) (facts []resources.ContextualRelation) {
	for _, op := range ops {
		f := resources.ContextualRelation{Resource: engine.RefTo(op.Resource), Relation: op.Relation, Subject: engine.SubjectDocumentOf(op.Subject)}
		if !op.ExpiresAt.IsZero() {
			at := op.ExpiresAt.Format(time.RFC3339Nano)
			f.ExpiresAt = &at
		}
		if op.Condition != "" {
			f.Condition = &resources.RelationCondition{Name: op.Condition, Context: jsontext.Value(op.Context)}
		}
		facts = append(facts, f)
	}
	return facts
}
