package main

import (
	"encoding/json"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	apiclient "stonetown/client"
)

func schemaDiff(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var format languageFlag
	var from string
	cmd := &cobra.Command{
		Use:   "diff FILE...",
		Short: "Compare resource types of files with those of a server",
		Long: `Prints the differences between the types in files and the types of the same names on the
server, as a unified diff of their text, and exits with 1 if there are any. Order of
members, comments and layout of the files do not matter.

` + typeFiles,
		Example: `  stonetown schema diff types.yaml
  stonetown schema diff model.fga --format openfga`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.validate(); err != nil {
				return err
			}
			planned, err := readDefinitions(cmd, args, from)
			if err != nil {
				return err
			}
			c, err := r.open(cmd.Flags(), patience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			found, err := allTypes(cmd.Context(), c)
			if err != nil {
				return err
			}
			stored := map[string]json.RawMessage{}
			for _, t := range found {
				stored[t.Value.Name] = t.JSON
			}
			var before []json.RawMessage // in the order of the files
			for _, text := range planned {
				var named apiclient.Type
				if err := json.Unmarshal(text, &named); err != nil {
					return err
				}
				if have, ok := stored[named.Name]; ok {
					before = append(before, have)
				}
			}
			a, _, err := format.text(before)
			if err != nil {
				return err
			}
			b, lost, err := format.text(planned)
			if err != nil {
				return err
			}
			printLost(cmd.ErrOrStderr(), lost)
			if a == b {
				return nil
			}
			err = difflib.WriteUnifiedDiff(cmd.OutOrStdout(), difflib.UnifiedDiff{
				A: difflib.SplitLines(a), B: difflib.SplitLines(b), FromFile: "server", ToFile: "files", Context: 3,
			})
			if err != nil {
				return err
			}
			return &exitError{code: 1}
		},
	}
	format.add(cmd.Flags())
	cmd.Flags().StringVar(&from, "from", "", "`engine` whose language the files are in: openfga or spicedb (default by file name)")
	return r.command(cmd)
}
