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
		Short: "Run the assertions of another engine's files here",
		Long: `Reads models, relationships and assertions as people have them for OpenFGA and
SpiceDB, says what has no equivalent here, runs the assertions on an engine in
memory, and says where the answers differ. It needs no server and writes nothing.
It fails if an answer differs, and if there was nothing to test: files without
assertions, or with none that can be asked here.

Files may refer to others in the current folder and all below it.`,
		Example: `  stonetown validate store.fga.yaml
  stonetown validate schema-and-assertions.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			world, err := readWorld(args, from)
			if err != nil {
				return err
			}
			printReport(cmd.OutOrStdout(), world)
			result, err := importer.Validate(cmd.Context(), world)
			if err != nil {
				return err
			}
			printDifferences(cmd.OutOrStdout(), result)
			if n := len(result.Differences); n > 0 {
				return fmt.Errorf("%d answers differ", n)
			}
			if result.Passed == 0 {
				return errors.New("nothing was tested: the files have no assertions that can be asked here")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", fromUsage)
	return cmd
}
