package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiclient "stonetown/client"
	"stonetown/cmd/stonetown/internal/realm"
)

// maxExport bounds the size of an export, in bytes.
const maxExport = 1 << 30

// readAll reads a file that is not larger than an export can be.
func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxExport+1))
	if err == nil && len(text) > maxExport {
		err = fmt.Errorf("the file has more than %d bytes", maxExport)
	}
	return text, err
}

func usersImportCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	var from, secrets string
	var dryRun, applications, intoGroups bool
	cmd := r.command(&cobra.Command{
		Use:   "import FILE...",
		Short: "Import the users of Keycloak or Auth0, with their passwords",
		Long: `Imports users, with the hashes of their passwords, and groups. Users sign in with the
passwords that they have. What has no equivalent is printed: second factors, links with
other providers, roles. Nobody is sent a mail.

From Keycloak, FILE is the export of a realm with its users:
  kc.sh export --realm NAME --users same_file --file realm.json
From Auth0, it is an export of users in JSON and, beside it, the file of password hashes
that Auth0's support provides.

With --applications the clients of the realm become applications with new client ids and
secrets, which --secrets stores in a file. Their client ids at Keycloak are in it, too.

A group of the tenant with the slug of one of the export is refused, because its members
would get what it permits; --into-existing-groups allows that, and is needed to run the
command again after an error. Users who exist stay as they are.`,
		Example: `  stonetown users import --from keycloak realm.json --dry-run
  stonetown users import --from keycloak realm.json --applications --secrets clients.json
  stonetown users import --from auth0 users.json hashes.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if applications != (secrets != "") {
				return errors.New("--applications and --secrets must be given together")
			}
			read, err := readRealm(cmd, from, args)
			if err != nil {
				return err
			}
			if err := printRealm(cmd.OutOrStdout(), read, applications); err != nil || dryRun {
				return err
			}
			scopes := []string{scopeUsersRead, scopeUsersWrite, scopeGroupsRead, scopeGroupsWrite}
			if applications {
				scopes = append(scopes, scopeApplicationsWrite)
			}
			server, err := r.open(cmd.Flags(), importPatience, scopes...)
			if err != nil {
				return err
			}
			defer server.Close()
			if err := createGroups(cmd.Context(), server, read.Groups, intoGroups); err != nil {
				return err
			}
			if applications {
				if err := createApplications(cmd, server, read.Applications, secrets); err != nil {
					return err
				}
			}
			return importUsers(cmd, server, read.Users)
		},
	})
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "`provider` that the export is of: keycloak or auth0")
	f.BoolVar(&dryRun, "dry-run", false, "print what would be imported, and write nothing")
	f.BoolVar(&applications, "applications", false, "create applications, too")
	f.StringVar(&secrets, "secrets", "", "new `file` for the client ids and secrets of applications (mode 0600)")
	f.BoolVar(&intoGroups, "into-existing-groups", false, "put users into groups of the tenant with the same slugs")
	return cmd
}

func readRealm(cmd *cobra.Command, from string, names []string) (*realm.Realm, error) {
	var files [][]byte
	for _, name := range names {
		text, err := readFile(cmd, name)
		if err != nil {
			return nil, err
		}
		files = append(files, text)
	}
	switch {
	case from == "keycloak" && len(files) == 1:
		return realm.Keycloak(files[0])
	case from == "keycloak":
		return nil, errors.New("--from keycloak takes one file")
	case from == "auth0":
		return realm.Auth0(files...)
	}
	return nil, fmt.Errorf("--from is %q; it must be keycloak or auth0", from)
}

func printRealm(w io.Writer, r *realm.Realm, applications bool) error {
	for _, f := range r.Report {
		if _, err := fmt.Fprintln(w, apiclient.Printable(f.String())); err != nil {
			return err
		}
	}
	passwords := 0
	for _, u := range r.Users {
		if u.PasswordHash != nil {
			passwords++
		}
	}
	text := fmt.Sprintf("%d users, %d of them with a password, %d groups", len(r.Users), passwords, len(r.Groups))
	if applications {
		text += fmt.Sprintf(", %d applications", len(r.Applications))
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// createGroups creates the groups that do not exist.
func createGroups(ctx context.Context, server *apiclient.Client, wanted []realm.Group, intoExisting bool) error {
	existing := map[string]bool{}
	for item, err := range server.List(ctx, groups.path, nil) {
		if err != nil {
			return err
		}
		var g struct{ Slug string }
		if err := json.Unmarshal(item, &g); err != nil {
			return err
		}
		existing[g.Slug] = true
	}
	var missing []realm.Group
	var taken []string
	for _, g := range wanted {
		if existing[g.Slug] {
			taken = append(taken, g.Slug)
		} else {
			missing = append(missing, g)
		}
	}
	if len(taken) > 0 && !intoExisting {
		return fmt.Errorf("the tenant has groups with these slugs: %s; nothing was written. --into-existing-groups puts the users into them", strings.Join(taken, ", "))
	}
	for _, g := range missing {
		if _, err := server.Call(ctx, http.MethodPost, groups.path, nil, g); err != nil {
			return fmt.Errorf("group %s: %w", g.Slug, err)
		}
	}
	return nil
}

// moved is an application that was created, as the file of secrets has it.
type moved struct {
	FormerClientID string `json:"former_client_id"`
	Name           string `json:"name"`
	ApplicationID  string `json:"application_id"`
	ClientID       string `json:"client_id"`
	ClientSecret   string `json:"client_secret,omitempty"`
}

// createApplications creates applications, and adds each to the file as soon as it exists: its
// secret is shown once.
func createApplications(cmd *cobra.Command, server *apiclient.Client, wanted []realm.Application, file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the file of secrets must be a new one: %w", err)
	}
	defer f.Close()
	for _, a := range wanted {
		data, err := server.Call(cmd.Context(), http.MethodPost, applications.path, nil, a)
		if refused, ok := errors.AsType[*apiclient.Error](err); ok && refused.Status == http.StatusBadRequest {
			fmt.Fprintf(cmd.OutOrStdout(), "client %s: left out: %v\n", apiclient.Printable(a.FormerID), err)
			continue
		}
		if err != nil {
			return fmt.Errorf("client %s: %w", a.FormerID, err)
		}
		created := struct {
			ID           string `json:"id"`
			ClientID     string `json:"client_id"`
			ClientSecret string `json:"client_secret"`
		}{}
		if err := json.Unmarshal(data, &created); err != nil {
			return err
		}
		line, err := json.Marshal(moved{a.FormerID, a.Name, created.ID, created.ClientID, created.ClientSecret})
		if err != nil {
			return err
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// The limits of one import of users at the API.
const (
	importRows  = 200_000
	importBytes = 200 << 20
)

// importUsers imports users in as few jobs as the limits allow, and waits for each.
func importUsers(cmd *cobra.Command, server *apiclient.Client, rows []realm.User) error {
	p := newProgress(cmd.ErrOrStderr(), "importing", len(rows))
	defer p.done()
	imported, failed := 0, 0
	for len(rows) > 0 {
		var lines bytes.Buffer
		encoder := json.NewEncoder(&lines)
		encoder.SetEscapeHTML(false)
		n := 0
		for n < min(len(rows), importRows) && lines.Len() < importBytes {
			if err := encoder.Encode(rows[n]); err != nil {
				return err
			}
			n++
		}
		job, err := runImport(cmd.Context(), server, lines.Bytes(), func(done int) { p.add(done) })
		if err != nil {
			return fmt.Errorf("%d users were imported before: %w", imported, err)
		}
		for _, e := range job.Errors {
			fmt.Fprintf(cmd.OutOrStdout(), "user %s: %s (%s)\n", apiclient.Printable(e.Email), apiclient.Printable(e.Message), e.Code)
		}
		if job.Truncated {
			fmt.Fprintf(cmd.OutOrStdout(), "%d more errors are not listed\n", job.Failed-len(job.Errors))
		}
		imported, failed = imported+job.Imported, failed+job.Failed
		rows = rows[n:]
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "imported %d users\n", imported); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d users were not imported", failed)
	}
	return nil
}

// importJob is the state of an import of users.
type importJob struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Imported int    `json:"imported"`
	Failed   int    `json:"failed"`
	Errors   []struct {
		Email   string `json:"email"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	Truncated bool `json:"errors_truncated"`
}

// runImport imports rows and waits for the end of the job. progress gets the number of rows that were
// read since its last call.
func runImport(ctx context.Context, server *apiclient.Client, rows []byte, progress func(int)) (job importJob, err error) {
	const path = "/api/v1/users/bulk-import"
	data, err := server.Call(ctx, http.MethodPost, path, nil, apiclient.Lines(rows))
	seen := 0
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if err == nil {
			err = json.Unmarshal(data, &job)
		}
		if err != nil {
			return job, err
		}
		progress(job.Imported + job.Failed - seen)
		seen = job.Imported + job.Failed
		switch job.State {
		case "completed":
			return job, nil
		case "cancelled":
			return job, errors.New("the import was cancelled")
		}
		select {
		case <-ctx.Done():
			return job, ctx.Err()
		case <-time.After(pause):
		}
		data, err = server.Call(ctx, http.MethodGet, path+"/"+url.PathEscape(job.ID), nil, nil)
	}
}
