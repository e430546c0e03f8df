package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// Results of an examination.
const (
	fine    = "ok"
	warning = "warning"
	problem = "problem"
)

// finding is the result of one examination.
type finding struct {
	About  string `json:"about"`
	Result string `json:"result"` // fine, warning or problem
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // unless it is fine
}

// findings are those of one run.
type findings struct {
	list  []finding
	about string // of the next findings
}

func (f *findings) fine(format string, args ...any) {
	f.list = append(f.list, finding{f.about, fine, fmt.Sprintf(format, args...), ""})
}

func (f *findings) warn(remedy, format string, args ...any) {
	f.list = append(f.list, finding{f.about, warning, fmt.Sprintf(format, args...), remedy})
}

func (f *findings) problem(remedy, format string, args ...any) {
	f.list = append(f.list, finding{f.about, problem, fmt.Sprintf(format, args...), remedy})
}

// problems returns how many there are.
func (f *findings) problems() (n int) {
	for _, one := range f.list {
		if one.Result == problem {
			n++
		}
	}
	return n
}

// examinationTimeout bounds one examination.
const examinationTimeout = 20 * time.Second

func doctorCommand(environ []string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the settings and what the server depends on",
		Long: `Examines, with the settings of the server: the database with its speed, durability and
clock, the master key, the folders, the hosts of tenants from DNS to the responses behind the
proxy, mail, and services. Each finding has its remedy. It changes nothing and sends no
message. The server may be running; the hosts are examined by requests to it.

It exits with 1 if there are problems; warnings are no problems.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q; it must be text or json", output)
			}
			config, err := resolveConfig(cmd.Flags(), environ)
			if err != nil {
				return err // which names each setting that is not valid
			}
			f := examine(cmd.Context(), config)
			if output == "json" {
				err = printJSON(cmd.OutOrStdout(), f.list)
			} else {
				err = f.write(cmd.OutOrStdout())
			}
			if n := f.problems(); err == nil && n > 0 {
				err = errors.New(count(n, "problem"))
			}
			return err
		},
	}
	configFlags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format`: text or json")
	return cmd
}

// examine makes all examinations.
func examine(ctx context.Context, config Config) *findings {
	f := new(findings)
	for _, e := range []struct {
		about string
		of    func(context.Context, Config, *findings)
	}{
		{"database", examineDatabase},
		{"folders", examineFolders},
		{"server", examineServer},
		{"hosts", examineHosts},
		{"proxy", examineProxy},
		{"mail", examineMail},
		{"services", examineServices},
	} {
		f.about = e.about
		bounded, cancel := context.WithTimeout(ctx, examinationTimeout)
		e.of(bounded, config, f)
		cancel()
	}
	return f
}

func (f *findings) write(out io.Writer) error {
	var errs []error
	print := func(format string, args ...any) {
		_, err := fmt.Fprintf(out, format, args...)
		errs = append(errs, err)
	}
	for _, one := range f.list {
		print("%-8s %-9s %s\n", one.Result, one.About, one.Text)
		if one.Remedy != "" {
			print("%-18s → %s\n", "", one.Remedy)
		}
	}
	return errors.Join(errs...)
}

// count says how many there are of something.
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprint(n, " ", of, "s")
}
