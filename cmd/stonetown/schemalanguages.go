package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	strict "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stonetown/api/resources"
	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/openfga"
	"stonetown/cmd/stonetown/internal/importer/spicedb"
	"stonetown/internal/definitions"
	"stonetown/schema"
)

// languageFlag is the language in which types are printed.
type languageFlag string

const yamlFormat languageFlag = "yaml"

func (l *languageFlag) add(f *pflag.FlagSet) {
	f.StringVar((*string)(l), "format", string(yamlFormat), "`language` of the text: yaml, openfga or spicedb")
}

func (l languageFlag) validate() error {
	switch l {
	case yamlFormat, fromOpenFGA, fromSpiceDB:
		return nil
	}
	return fmt.Errorf("--format is %q; it must be %s, %s or %s", string(l), yamlFormat, fromOpenFGA, fromSpiceDB)
}

// text prints definitions in the form of the API, and returns what the language cannot say.
func (l languageFlag) text(definitions []json.RawMessage) (text string, lost []string, err error) {
	types := make([]schema.Type, 0, len(definitions))
	for _, d := range definitions {
		var in resources.ResourceTypeInput
		if err := strict.Unmarshal(d, &in); err != nil {
			return "", nil, err
		}
		types = append(types, resources.TypeOf(in))
	}
	var printed importer.Printed
	switch l {
	case fromOpenFGA:
		printed = openfga.Print(types)
	case fromSpiceDB:
		printed = spicedb.Print(types)
	default:
		var b strings.Builder
		all, err := definitionsOf(types)
		if err == nil {
			err = printAllYAML(&b, all)
		}
		return b.String(), nil, err
	}
	return printed.Text, printed.Lost, nil
}

// printAllYAML prints definitions as one YAML document, a list.
func printAllYAML(w io.Writer, list []json.RawMessage) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return definitions.WriteYAML(w, text)
}

func printLost(w io.Writer, lost []string) {
	for _, what := range lost {
		fmt.Fprintln(w, "cannot be said:", what)
	}
}

// definitionsOf returns types in the form of the API.
func definitionsOf(types []schema.Type) ([]json.RawMessage, error) {
	definitions := make([]json.RawMessage, 0, len(types))
	for _, t := range types {
		text, err := strict.Marshal(resources.Definition(t), strict.Deterministic(true))
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, json.RawMessage(text))
	}
	return definitions, nil
}

// readDefinitions reads types in the form of the API, or in the language of another engine.
func readDefinitions(cmd *cobra.Command, files []string, from string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for _, file := range files {
		definitions, err := readDefinition(cmd, file, from)
		if err != nil {
			return nil, err
		}
		all = append(all, definitions...)
	}
	return all, nil
}

func readDefinition(cmd *cobra.Command, file, from string) ([]json.RawMessage, error) {
	if from == "" {
		from = map[string]string{".fga": fromOpenFGA, ".mod": fromOpenFGA, ".zed": fromSpiceDB}[filepath.Ext(file)]
	}
	if from != "" {
		data, err := readForeign(file, from)
		if err != nil {
			return nil, err
		}
		for _, f := range data.Report {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s %s: %s\n", at(f.At), f.Kind, f.Message)
		}
		if hasUnsupported(data) {
			return nil, errors.New("not everything has an equivalent")
		}
		return definitionsOf(data.Types)
	}
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(cmd.InOrStdin())
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	types, err := definitions.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	all := make([]json.RawMessage, 0, len(types))
	for _, d := range types {
		all = append(all, d.JSON)
	}
	return all, nil
}
