package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stonetown/controlplane/management"
)

func invitationsCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invitations",
		Short: "List, create and revoke invitations to an organisation",
		Long: `Manages the invitations to an organisation. The commands use the database directly,
with all rights. A server sends the mails: on PostgreSQL at once, on the embedded
database, where it must be stopped first, when it starts again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(invitationsListCommand(environ), invitationsCreateCommand(environ), invitationsRevokeCommand(environ))
	return cmd
}

func invitationsListCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the invitations, the newest first", Args: cobra.NoArgs}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, _ []string) error {
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tEMAIL\tROLE\tSTATE\tCREATED\tEXPIRES")
		err := inPages(func(after *management.Position, limit int) ([]management.Invitation, error) {
			return m.Invitations(ctx, operator, orgID, "", after, limit)
		}, func(i management.Invitation) management.Position {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Email, i.Role, i.State, i.CreatedAt.Format(time.RFC3339), i.ExpiresAt.Format(time.RFC3339))
			return management.Position{At: i.CreatedAt, ID: i.ID}
		})
		return errors.Join(err, w.Flush())
	})
}

func invitationsCreateCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create EMAIL ROLE", Short: "Invite the owner of an e-mail address", Args: cobra.ExactArgs(2),
		Example: `  stonetown invitations create bob@example.com operator`,
	}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, args []string) error {
		i, err := m.Invite(ctx, operator, orgID, args[0], management.Role(args[1]))
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s invites %s as %s until %s.\n", i.ID, i.Email, i.Role, i.ExpiresAt.Format(time.RFC3339))
		}
		return err
	})
}

func invitationsRevokeCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke ID", Short: "End a pending invitation", Args: cobra.ExactArgs(1)}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, args []string) error {
		err := m.RevokeInvitation(ctx, operator, orgID, args[0])
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The invitation %s is revoked.\n", args[0])
		}
		return err
	})
}
