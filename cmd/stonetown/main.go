// Command stonetown is the server and its tools in one binary.
//
//	stonetown serve --dev     everything on this machine, nothing to install
//	stonetown serve           with a configuration file, environment and flags
//	stonetown migrate         bring the database's tables up to date
//	stonetown bootstrap       create the first organisation, tenant and application
//	stonetown health          ask the server on this machine whether it is ready
//	stonetown backup          copy the embedded database; restore puts a copy back
//	stonetown audit export    write the audit events in the database
//	stonetown check           query a running server; so do list, expand, watch, relations and schema
//	stonetown export          write the data of a tenant; import writes it back
//	stonetown import          write models and relationships of other engines
//	stonetown validate        run the assertions of other engines' files
//	stonetown webhooks        receive the webhooks of a development server; verify one
//	stonetown docs export     write the documentation as a static site
//	stonetown version
//
// This package has configuration, listeners and signals; package server composes the product.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops the program gracefully, a second one kills it.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr); err != nil {
		if text := err.Error(); text != "" { // without a text, the exit code has the result
			fmt.Fprintln(os.Stderr, "stonetown:", text)
		}
		os.Exit(exitCode(err))
	}
}

// run is the program without its process.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:           "stonetown",
		Short:         "A Zanzibar-style authorization engine with OAuth, in one binary",
		SilenceUsage:  true,
		SilenceErrors: true, // main prints errors
	}
	root.AddCommand(serveCommand(environ), migrateCommand(environ), bootstrapCommand(environ), tenantsCommand(environ), membersCommand(environ), invitationsCommand(environ), versionCommand(), healthCommand(environ), doctorCommand(environ), auditCommand(environ), backupCommand(environ), restoreCommand(environ), keysCommand(environ))
	root.AddCommand(checkCommand(environ), historyCommand(environ), listCommand(environ), expandCommand(environ), watchCommand(environ), relationsCommand(environ), schemaCommand(environ), assertionsCommand(environ), exportCommand(environ), importCommand(environ), testCommand(), validateCommand(), webhooksCommand(environ), docsCommand())
	root.AddCommand(usersCommand(environ), groupsCommand(environ), applicationsCommand(environ), settingsCommand(environ))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}
