package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout bounds how long a server may take to say that it is ready.
const healthTimeout = 5 * time.Second

func healthCommand(environ []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the server on this machine whether it is ready",
		Long: `Asks the admin listener of the server that has the same settings whether it is ready,
and fails if it is not, or does not answer within 5 seconds. For health checks of containers,
which have neither a shell nor curl.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, "http://"+localAddress(config.AdminListen)+"/readyz", nil)
			if err != nil {
				return err
			}
			client := http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
			if err != nil {
				return err
			}
			text := strings.TrimSpace(string(body))
			if resp.StatusCode != http.StatusOK {
				return errors.New(text)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

// localAddress returns the address at which a listener is reached from its own machine.
func localAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}
