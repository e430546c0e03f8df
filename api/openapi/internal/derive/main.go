// Command derive writes operations.gen.go: what the pipeline enforces of the operations of the OpenAPI
// document in the current folder, which is that of the package $GOPACKAGE.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"reflect"

	"stonetown/api/openapi/internal/parse"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("derive: ")
	if err := derive(os.Getenv("GOPACKAGE")); err != nil {
		log.Fatal(err)
	}
}

func derive(pkg string) error {
	document, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return err
	}
	operations, err := parse.Operations(document)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated from openapi.yaml by derive. DO NOT EDIT.\n\npackage %s\n\nimport \"stonetown/api/web\"\n\nvar operations = []web.Operation{\n", pkg)
	for _, op := range operations {
		b.WriteString("{")
		v := reflect.ValueOf(op)
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				fmt.Fprintf(&b, "%s: %#v,", v.Type().Field(i).Name, f)
			}
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
	text, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile("operations.gen.go", text, 0o644)
}
