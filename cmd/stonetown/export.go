package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	apiclient "stonetown/client"
	"stonetown/identity"
	"stonetown/oauth/client"
	"stonetown/tuplestore"
)

// exportPatience is longer than a restart of the server.
const exportPatience = 5 * time.Minute

func exportCommand(environ []string) *cobra.Command {
	r := &remote{environ: environ}
	cmd := r.command(&cobra.Command{
		Use:   "export [FILE]",
		Short: "Write everything a tenant has on a running server to a file",
		Long: `Writes the resource types, the resources with their attributes and the relations
with their conditions and expiry as lines of JSON to a file that only you can read,
or to the standard output. Each line has a kind: resource_type, resource or
relation.

The last line has the kind end and the number of lines of each kind; output without
it is incomplete. The file is created or replaced only when the export is complete.
Changes made while an export runs may or may not be included. Users and groups of
the tenant are not exported; relations that name them are.`,
		Example: `  stonetown export tenant.jsonl
  stonetown export | gzip > tenant.jsonl.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open(cmd.Flags(), exportPatience, apiclient.ScopeRead)
			if err != nil {
				return err
			}
			defer c.Close()
			toFile := len(args) == 1 && args[0] != "-"
			var p progress
			if toFile || !isTerminal(cmd.OutOrStdout()) { // lines on a terminal show the progress
				p = newProgress(cmd.ErrOrStderr(), "exporting", -1)
			}
			defer p.done()
			write := func(w io.Writer) error { return export(cmd.Context(), c, w, p) }
			if toFile {
				return replaceFile(args[0], write)
			}
			return write(cmd.OutOrStdout())
		},
	})
	// The only format is lines of JSON.
	if err := cmd.Flags().MarkHidden("output"); err != nil {
		panic(err)
	}
	return cmd
}

func export(ctx context.Context, c *apiclient.Client, w io.Writer, p progress) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	e := apiclient.Export{Client: c, Progress: p.add, Omit: isManaged}
	if err := e.Write(ctx, buffered); err != nil {
		return err
	}
	return buffered.Flush()
}

// isManaged reports whether a resource or a relation belongs to the users, groups and applications
// of the tenant, which are not part of an export.
func isManaged(resource apiclient.Ref, relation string) bool {
	o := tuplestore.Object{Type: resource.Type, ID: resource.ExternalID}
	_, managed := identity.Managed(o, relation)
	return managed || client.Managed(o, relation)
}

// replaceFile writes a file atomically. Only the owner can read it.
func replaceFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file; omit it to write to the standard output", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".export-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// progress shows the number of lines on a terminal.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress shows nothing unless w is a terminal. lines is the expected number of lines, or
// -1 if it is unknown.
func newProgress(w io.Writer, what string, lines int) progress {
	if !isTerminal(w) {
		return progress{}
	}
	return progress{progressbar.NewOptions(lines,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionSetItsString("lines"), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionThrottle(time.Second/5), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionClearOnFinish(),
	)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// add ignores errors of the terminal.
func (p progress) add(lines int) {
	if p.bar != nil {
		_ = p.bar.Add(lines)
	}
}

func (p progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
