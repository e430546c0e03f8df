package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// The scopes of the commands below.
const (
	scopeUsersRead, scopeUsersWrite               = "users:read", "users:write"
	scopeGroupsRead, scopeGroupsWrite             = "groups:read", "groups:write"
	scopeApplicationsRead, scopeApplicationsWrite = "applications:read", "applications:write"
	scopeSettingsRead, scopeSettingsWrite         = "settings:read", "settings:write"
)

var users = collection{
	plural: "users", path: "/api/v1/users", read: scopeUsersRead, write: scopeUsersWrite,
	columns: []string{"id", "email", "name", "state", "last_signed_in_at"}, filters: []string{"email", "q", "state"},
	example: "email=ann@example.com name=Ann email_verified=true",
}

func usersCommand(environ []string) *cobra.Command {
	cmd := parent("users", "List, create, change and import the users of a running server", users.commands(environ)...)
	cmd.AddCommand(
		users.operationCommand(environ, "disable", "Disable a user, which ends their sessions and tokens", "disabled"),
		users.operationCommand(environ, "enable", "Enable a disabled user", "enabled"),
		usersImportCommand(environ),
	)
	return cmd
}

var groups = collection{
	plural: "groups", path: "/api/v1/groups", read: scopeGroupsRead, write: scopeGroupsWrite,
	columns: []string{"id", "slug", "name", "member_count"}, filters: []string{"q"},
	example: `slug=editors name=Editors scopes='["resources:read"]'`,
}

func groupsCommand(environ []string) *cobra.Command {
	cmd := parent("groups", "List, create and change the groups of a running server, and their members", groups.commands(environ)...)
	add := &cobra.Command{Use: "add GROUP_ID USER_ID", Short: "Put a user into a group", Args: cobra.ExactArgs(2)}
	remove := &cobra.Command{Use: "remove GROUP_ID USER_ID", Short: "Take a user out of a group", Args: cobra.ExactArgs(2)}
	cmd.AddCommand(membersOfCommand(environ),
		groups.call(environ, scopeGroupsWrite, add, "added", func(args []string) (string, string, any, error) {
			return http.MethodPost, groups.item(args[0], "members"), map[string]string{"user_id": args[1]}, nil
		}),
		groups.call(environ, scopeGroupsWrite, remove, "removed", func(args []string) (string, string, any, error) {
			return http.MethodDelete, groups.item(args[0], "members", url.PathEscape(args[1])), nil, nil
		}),
	)
	return cmd
}

func membersOfCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	return r.command(&cobra.Command{
		Use: "members GROUP_ID", Short: "List the members of a group", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := r.open(cmd.Flags(), patience, scopeGroupsRead)
			if err != nil {
				return err
			}
			defer server.Close()
			return printItems(cmd, r.output, server, groups.item(args[0], "members"), nil, []string{"id", "email", "name", "state"})
		},
	})
}

var applications = collection{
	plural: "applications", path: "/api/v1/applications", read: scopeApplicationsRead, write: scopeApplicationsWrite,
	columns: []string{"id", "client_id", "name", "type", "state"}, filters: []string{"q", "state", "type"},
	example: `name=Shop type=server redirect_uris='["https://shop.example.com/callback"]'`,
}

func applicationsCommand(environ []string) *cobra.Command {
	cmd := parent("applications", "List, create and change the applications of a running server", applications.commands(environ)...)
	cmd.AddCommand(
		applications.operationCommand(environ, "disable", "Disable an application, whose tokens end", "disabled"),
		applications.operationCommand(environ, "enable", "Enable a disabled application", "enabled"),
		applications.operationCommand(environ, "rotate-secret", "Give an application a new secret, and print it", ""),
	)
	return cmd
}

// settings has the path and the scopes of the settings of a tenant.
var settings = collection{path: "/api/v1/settings", read: scopeSettingsRead, write: scopeSettingsWrite}

func settingsCommand(environ []string) *cobra.Command {
	show := &cobra.Command{Use: "show", Short: "Print the settings of the tenant as JSON", Args: cobra.NoArgs}
	update := &cobra.Command{
		Use: "update FIELD...", Short: "Change settings of the tenant", Long: "Changes settings of the tenant and prints all of them as JSON." + fieldsHelp,
		Example: `  stonetown settings update sign_up=closed session:='{"idle_s":3600}'`, Args: cobra.MinimumNArgs(1),
	}
	return parent("settings", "Show and change the settings of a tenant of a running server",
		settings.call(environ, scopeSettingsRead, show, "", func([]string) (string, string, any, error) {
			return http.MethodGet, settings.path, nil, nil
		}),
		settings.call(environ, scopeSettingsWrite, update, "", func(args []string) (string, string, any, error) {
			body, err := fieldsOf(update, args)
			return http.MethodPatch, settings.path, body, err
		}),
	)
}
