package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"stonetown/cmd/stonetown/internal/importer"
)

func testCommand() *cobra.Command {
	var from, junit string
	var covered bool
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run the tests of a model",
		Long: `Runs the assertions in files on an engine in memory, without a server. Each file has its
own types and relations. It prints the answers that differ and, if none does, the parts
of the types that no assertion depends on: without such a part, all assertions would
still hold. It fails if an answer differs or a file has no assertion.

The files have the format of this product, which examples/documents.test.yaml shows:
types or the name of a file with them, relations, and tests with questions that are
allowed, denied or undecided, lists, reasons, instants and values for conditions. Files
of OpenFGA and SpiceDB with assertions are read, too.`,
		Example: `  stonetown test model.test.yaml
  stonetown test *.test.yaml --require-coverage --junit report.xml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report := testReport{}
			failed, uncovered := 0, 0
			for _, file := range args {
				suite, missing, err := runTests(cmd, file, from)
				if err != nil {
					return err
				}
				report.Suites = append(report.Suites, suite)
				failed, uncovered = failed+suite.Failures, uncovered+missing
			}
			if junit != "" {
				if err := report.write(junit); err != nil {
					return err
				}
			}
			switch {
			case failed > 0:
				return fmt.Errorf("%d answers differ", failed)
			case covered && uncovered > 0:
				return fmt.Errorf("no assertion depends on %d parts", uncovered)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", fromUsage)
	f.StringVar(&junit, "junit", "", "write a report in the format of JUnit to a `file`")
	f.BoolVar(&covered, "require-coverage", false, "fail if no assertion depends on a part of the types")
	return cmd
}

// runTests runs the assertions of a file, and returns them with the number of uncovered parts.
func runTests(cmd *cobra.Command, file, from string) (suite testSuite, uncovered int, err error) {
	data, err := readData([]string{file}, from)
	if err != nil {
		return testSuite{}, 0, err
	}
	if len(data.Assertions) == 0 {
		return testSuite{}, 0, fmt.Errorf("%s: nothing was tested: the file has no assertions that can be run", file)
	}
	out := cmd.OutOrStdout()
	for _, f := range data.Report {
		fmt.Fprintf(out, "%s %s: %s\n", at(f.At), f.Kind, f.Message)
	}
	result, err := importer.Validate(cmd.Context(), data)
	if err != nil {
		return testSuite{}, 0, fmt.Errorf("%s: %w", file, err)
	}
	printDifferences(out, result)
	if len(result.Differences) > 0 {
		return suiteOf(file, data, result), 0, nil
	}
	parts, err := importer.Uncovered(cmd.Context(), data)
	if err != nil {
		return testSuite{}, 0, fmt.Errorf("%s: %w", file, err)
	}
	for _, part := range parts {
		fmt.Fprintf(out, "%s: no assertion depends on %s\n", file, part)
	}
	return suiteOf(file, data, result), len(parts), nil
}

// testReport is a report in the XML format of JUnit, which build servers read.
type testReport struct {
	XMLName xml.Name    `xml:"testsuites"`
	Suites  []testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	File    string       `xml:"file,attr"`
	Line    int          `xml:"line,attr,omitempty"`
	Failure *testFailure `xml:"failure"`
}

type testFailure struct {
	Message string `xml:"message,attr"`
}

func suiteOf(file string, data *importer.Data, result *importer.Result) testSuite {
	suite := testSuite{Name: file, Tests: len(data.Assertions), Failures: len(result.Differences)}
	for _, a := range data.Assertions {
		suite.Cases = append(suite.Cases, testCase{Class: a.Name, Name: a.Question(), File: a.At.File, Line: a.At.Line})
	}
	for _, d := range result.Differences {
		suite.Cases[d.Index].Failure = &testFailure{fmt.Sprintf("expected %s, got %s", d.Want, d.Got)}
	}
	return suite
}

func (r testReport) write(file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.WriteString(f, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(f)
	encoder.Indent("", "  ")
	return encoder.Encode(r)
}
