package samltest

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"stonetown/internal/samlprotocol"
)

// Python returns a Python that has pysaml2, and makes sure of xmlsec1, which pysaml2 runs.
func Python(t *testing.T) string {
	t.Helper()
	Program(t, "xmlsec1")
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import saml2").Run() == nil {
			return name
		}
	}
	t.Fatal("make setup installs python3-pysaml2")
	return ""
}

// Program returns the path of a program.
func Program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("make setup installs %s: %v", name, err)
	}
	return path
}

// XMLSec1 runs xmlsec1, and returns its output.
func XMLSec1(t *testing.T, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), Program(t, "xmlsec1"), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("xmlsec1 %v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	return out
}

// File writes a file, and returns its path.
func File(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// PEM returns a private key and its certificate in PEM.
func PEM(t testing.TB, key samlprotocol.Key) (private, certificate []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: key.Certificate.Raw})
}

// Files writes a key in PEM, and returns the paths of the private key and of the certificate.
func Files(t *testing.T, key samlprotocol.Key) (private, certificate string) {
	t.Helper()
	p, c := PEM(t, key)
	return File(t, "key.pem", p), File(t, "certificate.pem", c)
}

// Message is [samlprotocol.Message] in JSON.
type Message struct {
	URL  string     `json:"url"`
	Form url.Values `json:"form"`
}

// Peer is a program that reads a line of JSON for each operation, and answers with a line of JSON.
type Peer struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Reader
	stderr bytes.Buffer
}

// Start starts a program, which ends with its input, at the end of the test.
func Start(t *testing.T, name string, args ...string) *Peer {
	t.Helper()
	cmd := exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{t: t, in: in, out: bufio.NewReader(out)}
	cmd.Stderr = &p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("%v\n%s", err, p.stderr.String())
		}
	})
	return p
}

// Do sends an operation, and reads its answer.
func (p *Peer) Do(operation, answer any) {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(operation); err != nil {
		p.t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	if err := json.Unmarshal(line, answer); err != nil {
		p.t.Fatalf("%v\n%s", err, line)
	}
}
