package main

import (
	"errors"
	"io"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"

	"stonetown/internal/tracing"
)

func serveCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Runs the server until SIGTERM or SIGINT. The server then reports that it is not
ready, finishes the requests in progress and exits.

With --dev no other setting is needed: the embedded database and the keys are in the
data folder, and the server creates a tenant and prints commands to try.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			ballast := tune()
			defer runtime.KeepAlive(ballast)
			p := newProgram(config, cmd.OutOrStdout(), newLogger(config, cmd.ErrOrStderr()))
			defer func() { err = errors.Join(err, p.Close()) }()
			if err := p.Open(cmd.Context()); err != nil {
				return err
			}
			return p.Serve(cmd.Context())
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

func newLogger(config Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: config.LogLevel}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if config.LogFormat == "text" {
		handler = slog.NewTextHandler(w, options)
	}
	if config.TraceURL != "" {
		handler = tracing.LogHandler(handler)
	}
	return slog.New(handler)
}
