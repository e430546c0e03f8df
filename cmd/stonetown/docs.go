package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"stonetown/api/docs"
)

func docsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "docs", Short: "The documentation of this version", Args: cobra.NoArgs}
	cmd.AddCommand(&cobra.Command{
		Use:   "export DIR",
		Short: "Write the documentation as a static site",
		Long: `Writes the pages that a server has at /docs into a folder, as HTML files that refer to
each other only: for any file server, or for a browser without one. The search needs a server
and is left out. Files of the same names are replaced.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pages, err := docs.Export(args[0])
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %d pages\n", pages)
			}
			return err
		},
	})
	return cmd
}
