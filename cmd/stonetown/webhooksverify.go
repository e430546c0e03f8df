package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	apiclient "stonetown/client"
	"stonetown/webhooks/signature"
)

// Exit codes of webhooks verify, for scripts.
const (
	exitNotVerified = 1
	exitNoRequest   = 2 // there is nothing to verify
)

// maxCapture bounds a captured request, in bytes. A delivery is at most 256 KiB and headers.
const maxCapture = 1 << 20

func webhooksVerifyCommand(environ []string) *cobra.Command {
	var secretFile, at string
	var tolerance time.Duration
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify the signatures of a captured delivery",
		Long: `Verifies the signatures of a webhook delivery that was captured as a raw HTTP/1.1
message: request line, headers, an empty line, and the body with every byte as it was
received. - is the standard input. Without Content-Length the body is the rest of FILE.

The signing secret of the subscription is in --secret-file or in
STONETOWN_WEBHOOK_SECRET.

Exits with 0 if the Standard Webhooks signature is valid, with 1 if it is not, and with
2 for an error. The X-Service signature is reported, too, but does not decide: it does
not sign the timestamp, so it does not tell a copy of a delivery from the original.`,
		Example: `  stonetown webhooks verify --secret-file secret delivery.http
  stonetown webhooks verify --secret-file secret --at 2026-11-20T19:27:00Z - <delivery.http`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return &exitError{exitNoRequest, fmt.Errorf("%w: FILE", err)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v := verification{at: time.Now(), tolerance: tolerance}
			err := v.read(cmd.InOrStdin(), args[0], secretFile, env.ToMap(environ), at)
			if err != nil {
				return &exitError{exitNoRequest, err}
			}
			verified, err := v.write(cmd.OutOrStdout())
			if err != nil {
				return &exitError{exitNoRequest, err}
			}
			if !verified {
				return &exitError{code: exitNotVerified}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitNoRequest, err} })
	f := cmd.Flags()
	f.StringVar(&secretFile, "secret-file", "", "`file` that holds the signing secret, whsec_...")
	f.StringVar(&at, "at", "", "verify as if at this `time` (RFC 3339; default now)")
	f.DurationVar(&tolerance, "tolerance", signature.Tolerance, "how far the timestamp may be from that time")
	return cmd
}

// verification is a captured delivery and all that its signatures depend on.
type verification struct {
	header    http.Header
	body      []byte
	secret    signature.Secret
	at        time.Time
	tolerance time.Duration
}

// read reads the inputs of the command.
func (v *verification) read(stdin io.Reader, file, secretFile string, environment map[string]string, at string) error {
	if v.tolerance < 0 {
		return fmt.Errorf("--tolerance is %v; it must not be negative", v.tolerance)
	}
	given, err := instant("at", at)
	if err != nil {
		return err
	}
	if !given.IsZero() {
		v.at = given
	}
	if v.secret, err = webhookSecret(secretFile, environment); err != nil {
		return err
	}
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	v.header, v.body, err = readCapture(in)
	return err
}

// webhookSecret reads the signing secret from its source.
func webhookSecret(file string, environment map[string]string) (signature.Secret, error) {
	source, text := "STONETOWN_WEBHOOK_SECRET", environment["STONETOWN_WEBHOOK_SECRET"]
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return signature.Secret{}, fmt.Errorf("signing secret: %w", err)
		}
		source, text = file, strings.TrimSpace(string(content))
	}
	if text == "" && file == "" {
		return signature.Secret{}, errors.New("the signing secret is required: set --secret-file or STONETOWN_WEBHOOK_SECRET")
	}
	secret, err := signature.ParseSecret(text)
	if err != nil {
		return signature.Secret{}, fmt.Errorf("%s: %w", source, err)
	}
	return secret, nil
}

// readCapture reads a raw HTTP/1.1 request.
func readCapture(in io.Reader) (http.Header, []byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxCapture+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxCapture {
		return nil, nil, errors.New("the captured request is longer than 1 MiB")
	}
	r := bufio.NewReader(bytes.NewReader(text))
	request, err := http.ReadRequest(r)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("no empty line ends the headers")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("not a raw HTTP/1.1 request: %w", err)
	}
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Length") == "" && len(request.TransferEncoding) == 0 {
		body = r
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the body of the captured request is incomplete: %w", err)
	}
	return request.Header, content, nil
}

// write prints the result, and reports whether the Standard Webhooks form is valid.
func (v *verification) write(out io.Writer) (bool, error) {
	standard := signature.Verify(v.header, v.body, v.secret, v.at, v.tolerance)
	service := signature.VerifyService(v.header, v.body, v.secret, v.at, v.tolerance)
	var event struct {
		Type string `json:"event_type"`
	}
	if json.Unmarshal(v.body, &event) != nil || event.Type == "" {
		event.Type = v.header.Get(signature.HeaderEvent)
	}
	age := ""
	if seconds, err := strconv.ParseInt(v.header.Get(signature.HeaderTimestamp), 10, 40); err == nil {
		age = v.at.Sub(time.Unix(seconds, 0)).Truncate(time.Second).String()
	}
	var text strings.Builder
	for _, line := range []struct{ name, value string }{
		{"Standard Webhooks", outcome(standard)},
		{"X-Service", outcome(service)},
		{"event type", event.Type},
		{"event id", v.header.Get(signature.HeaderID)},
		{"delivery", v.header.Get(signature.HeaderDelivery)},
		{"attempt", v.header.Get(signature.HeaderAttempt)},
		{"age", age},
	} {
		if line.value == "" {
			line.value = "unknown"
		}
		fmt.Fprintf(&text, "%-18s %s\n", line.name+":", apiclient.Printable(line.value))
	}
	_, err := io.WriteString(out, text.String())
	return standard == nil, err
}

func outcome(err error) string {
	if err == nil {
		return "valid"
	}
	return "not valid: " + err.Error()
}
