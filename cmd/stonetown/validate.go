package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"stonetown/cmd/stonetown/internal/importer"
)

func validateCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Run the assertions in another engine's files",
		Long: `Reads models, relationships and assertions of OpenFGA and SpiceDB, lists what has no
equivalent in Stonetown, runs the assertions on an engine in memory, and prints the
answers that differ. It needs no server and writes nothing. It fails if an answer
differs, or if the files have no assertions that can be run.

Files may refer to other files in the current folder and in the folders below it.`,
		Example: `  stonetown validate store.fga.yaml
  stonetown validate schema-and-assertions.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readData(args, from)
			if err != nil {
				return err
			}
			printReport(cmd.OutOrStdout(), data)
			result, err := importer.Validate(cmd.Context(), data)
			if err != nil {
				return err
			}
			printDifferences(cmd.OutOrStdout(), result)
			if n := len(result.Differences); n > 0 {
				return fmt.Errorf("%d answers differ", n)
			}
			if result.Passed == 0 {
				return errors.New("nothing was tested: the files have no assertions that can be run")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", fromUsage)
	return cmd
}
