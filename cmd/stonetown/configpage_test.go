package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// TestConfigurationPage requires that docs/configuration.md has every setting, with the flag, the
// variable and the comment of its field in [Config].
func TestConfigurationPage(t *testing.T) {
	const file = "../../docs/configuration.md"
	want := configurationPage(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s is not that of config.go (%v): run go generate ./cmd/stonetown", file, err)
	}
}

// configurationPage returns the page.
func configurationPage(t *testing.T) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	configFlags(flags)
	documented := map[string]bool{"config": true} // it is not a setting itself
	var b strings.Builder
	b.WriteString(`# Configuration

The settings of ` + "`stonetown serve`" + ` and of the commands that open its database. The value of a setting comes from the last of these that has one: its default, the YAML file of ` + "`--config`" + ` (or ` + "`STONETOWN_CONFIG`" + `), the environment, its flag. An unknown key of the file is an error. Lists are YAML lists, or texts with commas. Durations are numbers with units, such as ` + "`90s` or `1h30m`" + `. Secrets are not settings: settings name files with secrets. [Operations](operations.md#settings) describes the settings that matter as the load grows.
`)
	var config *ast.StructType
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Config" {
			config = spec.Type.(*ast.StructType)
		}
		return config == nil
	})
	settings := map[string]string{} // by their fields
	for _, field := range config.Fields.List {
		if field.Tag != nil {
			settings[field.Names[0].Name] = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("yaml")
		}
	}
	fieldName := regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)
	var names, lines []string
	var comment string
	write := func() {
		if len(names) == 0 {
			return
		}
		if !strings.Contains(comment, "efault") && !strings.Contains(comment, "Required") {
			t.Errorf("the comment of %s does not state the default", names)
		}
		comment = fieldName.ReplaceAllStringFunc(strings.Join(strings.Fields(comment), " "), func(word string) string {
			if name := settings[word]; name != "" {
				return "`" + name + "`"
			}
			return word
		})
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n", strings.Join(names, ", "), strings.Join(lines, "\n"), comment)
		names, lines = nil, nil
	}
	for _, field := range config.Fields.List {
		if field.Tag == nil {
			continue // not a setting
		}
		if field.Doc != nil { // others share the comment of the field before
			write()
			comment = field.Doc.Text()
		}
		name := settings[field.Names[0].Name]
		f := flags.Lookup(strings.ReplaceAll(name, "_", "-"))
		if f == nil {
			t.Errorf("%s has no flag", name)
			continue
		}
		documented[f.Name] = true
		kind, _ := pflag.UnquoteUsage(f)
		variable := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("env")
		names = append(names, "`"+name+"`")
		lines = append(lines, fmt.Sprintf("- `%s`, `STONETOWN_%s`", strings.TrimSpace("--"+f.Name+" "+kind), variable))
	}
	write()
	flags.VisitAll(func(f *pflag.Flag) {
		if !documented[f.Name] {
			t.Errorf("--%s is missing", f.Name)
		}
	})
	if len(documented) < 40 {
		t.Errorf("%d flags", len(documented))
	}
	return b.String()
}
