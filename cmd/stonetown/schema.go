package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apiclient "stonetown/client"
	"stonetown/internal/definitions"
	"stonetown/internal/notation"
)

func schemaCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Read and change the resource types of a running server",
		Args:  cobra.NoArgs,
		// Runnable, so that a misspelt subcommand is an error instead of this help text.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(schemaList(environ), schemaGet(environ), schemaDiff(environ), schemaPlan(environ), schemaApply(environ), schemaDelete(environ))
	return cmd
}

func schemaList(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	return r.command(&cobra.Command{
		Use:   "list",
		Short: "List the resource types",
		Long: `Lists the names of the resource types, newest first. With --output json it prints
their definitions, in the form that schema apply reads.`,
		Example: `  stonetown schema list
  stonetown schema list --output json > types.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			found, err := allTypes(cmd.Context(), c)
			if err != nil {
				return err
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), found)
			}
			for _, t := range found {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), t.Value.Name); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func schemaGet(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var format languageFlag
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "Print the definition of a resource type, or of all",
		Long: `Prints the definition of a resource type, or of all, as YAML or JSON or in the
language of another engine; schema apply reads all of them. What a language cannot say
is printed on the standard error.`,
		Example: `  stonetown schema get document > document.yaml
  stonetown schema get document --output json
  stonetown schema get --format openfga > model.fga`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.validate(); err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			var found []apiclient.Stored[apiclient.Type]
			if len(args) == 0 {
				found, err = allTypes(cmd.Context(), c)
			} else {
				found = make([]apiclient.Stored[apiclient.Type], 1)
				found[0], err = c.Type(cmd.Context(), args[0])
			}
			if err != nil {
				return err
			}
			if r.output == "json" && len(args) > 0 {
				return printJSON(cmd.OutOrStdout(), found[0])
			}
			if r.output == "json" {
				return printJSON(cmd.OutOrStdout(), found)
			}
			if format == yamlFormat && len(args) > 0 {
				return definitions.WriteYAML(cmd.OutOrStdout(), found[0].JSON)
			}
			definitions := make([]json.RawMessage, 0, len(found))
			for _, t := range slices.Backward(found) { // oldest first
				definitions = append(definitions, t.JSON)
			}
			text, lost, err := format.text(definitions)
			if err != nil {
				return err
			}
			printLost(cmd.ErrOrStderr(), lost)
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	format.add(cmd.Flags())
	return r.command(cmd)
}

// allTypes returns the resource types, newest first.
func allTypes(ctx context.Context, c *apiclient.Client) ([]apiclient.Stored[apiclient.Type], error) {
	found := []apiclient.Stored[apiclient.Type]{}
	for t, err := range c.Types(ctx) {
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, nil
}

// typesFlags complete a change that is read from files.
type typesFlags struct {
	remove, rename []string
	expected, from string
}

func (t *typesFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&t.rename, "rename", nil, "rename a type, `FROM=TO`, or a relation, TYPE#FROM=TO, with what is stored; may be repeated")
	f.StringArrayVar(&t.remove, "delete", nil, "delete the type of this `name`; may be repeated")
	f.StringVar(&t.from, "from", "", "`engine` whose language the files are in: openfga or spicedb (default by file name)")
	f.StringVar(&t.expected, "expected-revision", "", "fail if the types have changed since this `revision`, which schema plan prints")
}

// change reads the files of a command.
func (t *typesFlags) change(cmd *cobra.Command, files []string) (apiclient.TypesChange, error) {
	change := apiclient.TypesChange{Delete: t.remove, ExpectedRevision: t.expected}
	for _, text := range t.rename {
		r, err := notation.ParseRename(text)
		if err != nil {
			return change, err
		}
		change.Renames = append(change.Renames, r)
	}
	if len(files) == 0 && len(t.rename) == 0 {
		return change, errors.New("at least one file or --rename is required")
	}
	var err error
	change.Types, err = readDefinitions(cmd, files, t.from)
	return change, err
}

const typeFiles = `A file holds one type in the format of the API, a list of types, or an object with a
list named types, as YAML or JSON. A member that the API does not define is an error.
Files that end in .fga or .mod are in the language of OpenFGA, those that end in .zed in
that of SpiceDB; it is an error if something in them has no equivalent. - is the
standard input.`

func schemaApply(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var flags typesFlags
	var requireAssertions bool
	cmd := &cobra.Command{
		Use:   "apply [FILE...]",
		Short: "Create, replace and delete resource types",
		Long: `Reads resource types from files, creates those that do not exist, replaces the
others, deletes those of --delete, and prints for each: created, updated, deleted or
unchanged. Types that are neither in a file nor in --delete are not changed. All of it
is one change: if a type is rejected, none is changed.

--rename comes first: files have the new names. All references and all stored relations
and resources have the new name in the same change, which writes none of them.

` + typeFiles,
		Example: `  stonetown schema apply types.yaml
  stonetown schema apply types.yaml --delete draft
  stonetown schema apply --rename doc=document --rename doc#viewer=reader
  stonetown schema get document | sed s/Draft/Paper/ | stonetown schema apply -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.change(cmd, args)
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			change.RequireAssertions = requireAssertions
			return applyTypes(cmd, c, r.output, change)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&requireAssertions, "require-assertions", false, "fail if a stored assertion fails with the new types")
	return r.command(cmd)
}

// applyTypes makes a change and prints its effects.
func applyTypes(cmd *cobra.Command, c *apiclient.Client, output string, change apiclient.TypesChange) error {
	applied, err := c.ApplyTypes(cmd.Context(), change)
	if err != nil {
		return err
	}
	if output == "json" {
		return printJSON(cmd.OutOrStdout(), applied.Changes)
	}
	for _, r := range applied.Renames {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), "renamed", r); err != nil {
			return err
		}
	}
	return printChanges(cmd.OutOrStdout(), applied.Changes)
}

func printChanges(w io.Writer, changes []apiclient.Applied) error {
	for _, c := range changes {
		if _, err := fmt.Fprintln(w, c.Change, c.Name); err != nil {
			return err
		}
	}
	return nil
}

func countOf(n int, exact bool) string {
	if exact {
		return strconv.Itoa(n)
	}
	return "more than " + strconv.Itoa(n)
}

func schemaDelete(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	return r.command(&cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a resource type that nothing uses",
		Long:    `Deletes a resource type. It is an error if it has resources or relations name it.`,
		Example: `  stonetown schema delete draft`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeWrite)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.DeleteType(cmd.Context(), args[0]); err != nil {
				return err
			}
			return printDeleted(cmd, r.output, args[0])
		},
	})
}

func printDeleted(cmd *cobra.Command, output, name string) error {
	if output == "json" {
		return printJSON(cmd.OutOrStdout(), map[string]string{"name": name, "change": "deleted"})
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "deleted", name)
	return err
}
