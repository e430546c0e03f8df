package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apiclient "stonetown/client"
)

// exitError ends the process with an exit code. Without an error nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitCode is the exit code after the error of run.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return 1
}

// remote has the flags of a command that calls a server.
type remote struct {
	server, clientID, secretFile, dataDir, output string

	environ []string
	cmd     *cobra.Command
}

const remoteHelp = `

The server and the credentials of an application come from flags, else from
STONETOWN_SERVER, STONETOWN_CLIENT_ID and STONETOWN_CLIENT_SECRET or
STONETOWN_CLIENT_SECRET_FILE, else from bootstrap.json in the data folder, which
a server started with --dev writes. The credentials in bootstrap.json are sent only
to the server that the file names.`

func (r *remote) flags(f *pflag.FlagSet) {
	f.StringVar(&r.server, "server", "", "base `URL` of the tenant (default the one in bootstrap.json)")
	f.StringVar(&r.clientID, "client-id", "", "client `id` of an application")
	f.StringVar(&r.secretFile, "client-secret-file", "", "`file` that holds the client secret")
	f.StringVar(&r.dataDir, "data-dir", defaultConfig().DataDir, "`folder` with the bootstrap.json of a server on this machine")
	f.StringVarP(&r.output, "output", "o", "text", "text or json")
}

// command adds the flags to a command that calls a server.
func (r *remote) command(cmd *cobra.Command) *cobra.Command {
	r.cmd = cmd
	cmd.Long += remoteHelp
	r.flags(cmd.Flags())
	return cmd
}

// open returns a client with tokens of some scopes.
func (r *remote) open(flags *pflag.FlagSet, patience time.Duration, scopes ...string) (*apiclient.Client, error) {
	if r.output != "text" && r.output != "json" {
		return nil, fmt.Errorf("--output is %q; it must be text or json", r.output)
	}
	config, err := r.resolve(flags)
	if err != nil {
		return nil, err
	}
	config.Scopes, config.Patience = scopes, patience
	config.Warn = func(text string) { fmt.Fprintln(r.cmd.ErrOrStderr(), "warning:", text) }
	return apiclient.New(config)
}

// resolve combines all sources of the server's address and the credentials.
func (r *remote) resolve(flags *pflag.FlagSet) (apiclient.Config, error) {
	environment := env.ToMap(r.environ)
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	dir := r.dataDir
	if !flags.Changed("data-dir") {
		dir = first(environment["STONETOWN_DATA_DIR"], dir)
	}
	config := apiclient.Config{
		BaseURL:  first(r.server, environment["STONETOWN_SERVER"]),
		ClientID: first(r.clientID, environment["STONETOWN_CLIENT_ID"]),
	}
	var err error
	if config.ClientSecret, err = clientSecret(r.secretFile, environment); err != nil {
		return apiclient.Config{}, err
	}
	if (config.ClientID == "") != (config.ClientSecret == "") {
		return apiclient.Config{}, errors.New("the client id and the client secret must be set together")
	}
	if config.BaseURL != "" && config.ClientID != "" {
		return config, nil
	}
	file := filepath.Join(dir, "bootstrap.json")
	found, err := localCredentials(file)
	if errors.Is(err, fs.ErrNotExist) {
		missing := "--server"
		if config.BaseURL != "" {
			missing = "--client-id and --client-secret-file"
		}
		return apiclient.Config{}, fmt.Errorf("%s does not exist: set %s, or the --data-dir of a server on this machine", file, missing)
	}
	if err != nil {
		return apiclient.Config{}, err
	}
	if config.BaseURL == "" {
		config.BaseURL = found.BaseURL
	}
	if config.ClientID == "" {
		if strings.TrimRight(config.BaseURL, "/") != strings.TrimRight(found.BaseURL, "/") {
			return apiclient.Config{}, fmt.Errorf("the credentials in %s are for %s: set --client-id and --client-secret-file for %s", file, found.BaseURL, config.BaseURL)
		}
		config.ClientID, config.ClientSecret = found.ClientID, found.ClientSecret
	}
	return config, nil
}

// clientSecret reads the secret from its source, if there is one.
func clientSecret(file string, environment map[string]string) (string, error) {
	if file == "" {
		secret := environment["STONETOWN_CLIENT_SECRET"]
		file = environment["STONETOWN_CLIENT_SECRET_FILE"]
		if secret != "" && file != "" {
			return "", errors.New("STONETOWN_CLIENT_SECRET and STONETOWN_CLIENT_SECRET_FILE are both set")
		}
		if file == "" {
			return secret, nil
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("client secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("client secret: %s is empty", file)
	}
	return secret, nil
}

// localCredentials reads the file of bootstrap.
func localCredentials(file string) (credentials, error) {
	var c credentials
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if json.Unmarshal(text, &c) != nil || c.BaseURL == "" { // the error would quote the file
		return c, fmt.Errorf("%s is not a file that bootstrap wrote", file)
	}
	return c, nil
}

// printJSON prints the output of --output json.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// jsonObject validates the value of a flag; empty means that the flag was not given.
func jsonObject(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return nil, fmt.Errorf(`--%s is not a JSON object, such as {"ip":"192.0.2.1"}`, flag)
	}
	return json.RawMessage(text), nil
}
