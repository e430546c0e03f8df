package main

import "github.com/spf13/cobra"

func webhooksCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "Develop and test the receiver of webhooks",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(webhooksListenCommand(environ), webhooksVerifyCommand(environ))
	return cmd
}
