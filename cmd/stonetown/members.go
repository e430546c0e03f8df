package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stonetown/controlplane/management"
	"stonetown/server"
)

// operator has all permissions on all organisations.
var operator = management.Caller{Operator: true}

// asOperator makes a command on an organisation, which a flag names.
func asOperator(environ []string, cmd *cobra.Command, run func(ctx context.Context, m *management.Service, orgID string, args []string) error) *cobra.Command {
	var organization string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withServer(cmd, environ, func(ctx context.Context, _ Config, s *server.Server) error {
			// The roles are those of the control plane, also where this command does not know its address.
			if err := s.Management.Prepare(ctx); err != nil {
				return err
			}
			orgID, err := organizationOf(ctx, s, organization)
			if err != nil {
				return err
			}
			return run(ctx, s.Management, orgID, args)
		})
	}
	configFlags(cmd.Flags())
	cmd.Flags().StringVar(&organization, "organization", "", "`slug` of the organisation (default that of the first tenant)")
	return cmd
}

func membersCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List, add and remove the members of an organisation, and give them roles",
		Long: `Manages the members of an organisation: users of the control plane with a role,
owner, admin, operator or viewer. The commands use the database directly, with all
rights; members themselves use the control plane. A server on the embedded database
must be stopped first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(membersListCommand(environ), membersAddCommand(environ), membersRoleCommand(environ), membersRemoveCommand(environ))
	return cmd
}

func membersListCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the members, the newest first", Args: cobra.NoArgs}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, _ []string) error {
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "EMAIL\tROLE\tSECOND FACTOR\tJOINED\tLAST SIGN-IN")
		err := inPages(func(after *management.Position, limit int) ([]management.Member, error) {
			return m.Members(ctx, operator, orgID, after, limit)
		}, func(one management.Member) management.Position {
			factor, last := "no", "never"
			if one.MFAEnrolled {
				factor = "yes"
			}
			if !one.LastActiveAt.IsZero() {
				last = one.LastActiveAt.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", one.Email, one.Role, factor, one.JoinedAt.Format(time.RFC3339), last)
			return management.Position{At: one.JoinedAt, ID: one.ID}
		})
		return errors.Join(err, w.Flush())
	})
}

// inPages reads a whole list, and passes each item to print, which returns its position.
func inPages[T any](read func(after *management.Position, limit int) ([]T, error), print func(T) management.Position) error {
	const limit = 250
	var after *management.Position
	for {
		list, err := read(after, limit)
		if err != nil {
			return err
		}
		for _, item := range list {
			position := print(item)
			after = &position
		}
		if len(list) < limit {
			return nil
		}
	}
}

func membersAddCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add EMAIL ROLE",
		Short: "Make a user of the control plane a member",
		Long: `Makes a user who has an account at the control plane a member, without an invitation.
It is also the way back into an organisation whose owners cannot sign in.`,
		Example: `  stonetown members add ann@example.com owner`,
		Args:    cobra.ExactArgs(2),
	}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, args []string) error {
		added, err := m.Add(ctx, orgID, args[0], management.Role(args[1]))
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is a member with the role %s.\n", added.Email, added.Role)
		}
		return err
	})
}

func membersRoleCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "role EMAIL ROLE", Short: "Give a member another role", Args: cobra.ExactArgs(2)}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, args []string) error {
		found, err := m.MemberByEmail(ctx, orgID, args[0])
		if err != nil {
			return err
		}
		changed, err := m.ChangeRole(ctx, operator, orgID, found.ID, management.Role(args[1]))
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has the role %s.\n", changed.Email, changed.Role)
		}
		return err
	})
}

func membersRemoveCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "remove EMAIL", Short: "Remove a member", Args: cobra.ExactArgs(1)}
	return asOperator(environ, cmd, func(ctx context.Context, m *management.Service, orgID string, args []string) error {
		found, err := m.MemberByEmail(ctx, orgID, args[0])
		if err == nil {
			err = m.RemoveMember(ctx, operator, orgID, found.ID)
		}
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is no longer a member.\n", found.Email)
		}
		return err
	})
}
