package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/engines"
)

// The languages of other engines.
const (
	fromOpenFGA = "openfga"
	fromSpiceDB = "spicedb"
)

const fromUsage = "`engine` that the files are for: stonetown, openfga or spicedb (default by file name and content)"

// readData reads tests of a model, or files of another engine.
func readData(files []string, from string) (*importer.Data, error) {
	data := new(importer.Data)
	for _, file := range files {
		w, err := readForeign(file, from)
		if err != nil {
			return nil, err
		}
		data.Types = append(data.Types, w.Types...)
		data.Relations = append(data.Relations, w.Relations...)
		data.Assertions = append(data.Assertions, w.Assertions...)
		data.Report = append(data.Report, w.Report...)
	}
	return data, nil
}

func readForeign(file, from string) (*importer.Data, error) {
	dir, name, err := locate(file)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir) // links in the folder cannot lead out of it
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := engines.Read(root.FS(), name, engines.Engine(from))
	if errors.Is(err, engines.ErrUnknownFile) {
		return nil, fmt.Errorf("%w: set --from", err)
	}
	return data, err
}

// locate returns the folder to read and the name of the file in it. Files refer to others in
// folders above theirs, but not above the current folder of the process. A file elsewhere
// refers to files in its own folder and below. The real path of the file decides, not the given
// one.
func locate(file string) (dir, name string, err error) {
	if file, err = resolved(file); err != nil {
		return "", "", err
	}
	if dir, err = resolved("."); err != nil {
		return "", "", err
	}
	if name, err = filepath.Rel(dir, file); err != nil || !filepath.IsLocal(name) {
		dir, name = filepath.Dir(file), filepath.Base(file)
	}
	return dir, filepath.ToSlash(name), nil
}

// resolved returns the absolute path of a file, without links.
func resolved(file string) (string, error) {
	file, err := filepath.EvalSymlinks(file) // before Abs, because a link before .. matters
	if err != nil {
		return "", err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(file) // the path of the current folder may have links
}

// printReport prints the findings, and the numbers of types, relations and assertions.
func printReport(w io.Writer, data *importer.Data) {
	counts := map[importer.FindingKind]int{}
	for _, f := range data.Report {
		counts[f.Kind]++
		fmt.Fprintf(w, "%s %s: %s\n", at(f.At), f.Kind, f.Message)
	}
	fmt.Fprintf(w, "%d types, %d relations, %d assertions", len(data.Types), len(data.Relations), len(data.Assertions))
	for _, kind := range []importer.FindingKind{importer.Renamed, importer.Widened, importer.Unsupported} {
		if counts[kind] > 0 {
			fmt.Fprintf(w, "; %d %s", counts[kind], kind)
		}
	}
	fmt.Fprintln(w)
}

// printDifferences prints the assertions that do not hold, and the number of those that hold.
func printDifferences(w io.Writer, r *importer.Result) {
	for _, d := range r.Differences {
		fmt.Fprintf(w, "%s %s expected %s, got %s\n", at(d.At), d.Question, d.Want, d.Got)
	}
	if r.Passed+len(r.Differences) > 0 {
		fmt.Fprintf(w, "%d of %d assertions hold\n", r.Passed, r.Passed+len(r.Differences))
	}
}

// at formats a place as editors and compilers do.
func at(p importer.Place) string {
	if p.Line == 0 {
		return p.File + ":"
	}
	return fmt.Sprintf("%s:%d:", p.File, p.Line)
}

func hasUnsupported(data *importer.Data) bool {
	return slices.ContainsFunc(data.Report, func(f importer.Finding) bool { return f.Kind == importer.Unsupported })
}

// isExport distinguishes an export of this product from files of other engines.
func isExport(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := io.ReadFull(f, head)
	return strings.HasPrefix(string(head[:n]), `{"kind":`)
}
