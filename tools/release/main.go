// Command release writes the provenance of released files: an in-toto statement with the predicate
// SLSA Provenance v1, which says from which commit, with which command and toolchain they were built.
//
//	release SHA256SUMS > provenance.json
//
// The statement is not signed: it is for a pipeline to sign, whose identity is then the builder's.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	buildType = "urn:stonetown:build:make-release:1"
	source    = "urn:stonetown:source"
	predicate = "https://slsa.dev/provenance/v1"

	// localBuilder is the builder if BUILDER_ID does not name a pipeline.
	localBuilder = "urn:stonetown:builder:local"
)

// state is that of the repository and the toolchain with which the files were built.
type state struct {
	commit  string
	dirty   bool // there are changes that are not committed
	version string
	builder string // URI; empty: localBuilder
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: release SHA256SUMS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(sums string, w io.Writer) error {
	f, err := os.Open(sums)
	if err != nil {
		return err
	}
	defer f.Close()
	s := state{version: runtime.Version(), builder: os.Getenv("BUILDER_ID")}
	if s.commit, err = git("rev-parse", "HEAD"); err != nil {
		return err
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return err
	}
	s.dirty = changes != ""
	text, err := statement(f, s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// statement returns the statement about the files of a list of checksums, in the format of sha256sum.
func statement(sums io.Reader, s state) ([]byte, error) {
	var files []*intoto.ResourceDescriptor
	for lines := bufio.NewScanner(sums); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			return nil, fmt.Errorf("%q is no line of sha256sum", lines.Text())
		}
		files = append(files, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the list has no files")
	}
	external, err := structpb.NewStruct(map[string]any{"target": "release", "uncommitted_changes": s.dirty})
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(map[string]any{"go": s.version, "os": runtime.GOOS, "arch": runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	builder := s.builder
	if builder == "" {
		builder = localBuilder
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: external, InternalParameters: internal,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: source, Digest: map[string]string{"gitCommit": s.commit}}},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builder}},
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(p)
	if err != nil {
		return nil, err
	}
	fields := new(structpb.Struct)
	if err := protojson.Unmarshal(text, fields); err != nil {
		return nil, err
	}
	st := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: files, PredicateType: predicate, Predicate: fields}
	if err := st.Validate(); err != nil {
		return nil, err
	}
	return protojson.MarshalOptions{Multiline: true}.Marshal(st)
}
