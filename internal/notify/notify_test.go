package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// server is a mail server that refuses mails to nobody@ permanently and to later@ temporarily.
type server struct {
	mu    sync.Mutex
	mails []string // the recipient, a line break, the mail
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server *server
	to     string
}

func (*session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch {
	case strings.HasPrefix(to, "nobody@"):
		return &smtp.SMTPError{Code: 550, Message: "no such mailbox"}
	case strings.HasPrefix(to, "later@"):
		return &smtp.SMTPError{Code: 451, Message: "try again"}
	}
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.to+"\n"+string(text))
	return err
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

func TestSMTP(t *testing.T) {
	backend := new(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := smtp.NewServer(backend)
	s.Domain = "localhost"
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { s.Close() })

	mailer, err := NewSMTP("smtp://"+listener.Addr().String(), "", "accounts@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := mailer.Check(t.Context()); err != nil || len(backend.mails) > 0 {
		t.Fatal(err, backend.mails)
	}
	mail := Mail{FromName: "Ünits \"& Co\"\r\nBcc: x@example.com", To: "ann@example.com", Subject: "Grüße\r\nBcc: y@example.com", Text: "hello\n.\nworld", HTML: "<p>hello</p>"}
	if err := mailer.SendMail(t.Context(), mail); err != nil {
		t.Fatal(err)
	}
	got := backend.mails[0]
	head, _, _ := strings.Cut(got, "\r\n\r\n")
	for _, line := range strings.Split(head, "\n") {
		if strings.HasPrefix(strings.ToLower(line), "bcc:") {
			t.Errorf("a field became a header:\n%s", head)
		}
	}
	for _, want := range []string{"ann@example.com\n", "<accounts@example.com>", "text/plain", "text/html", "Auto-Submitted: auto-generated", "hello"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the mail:\n%s", want, got)
		}
	}
	mail.To = "nobody@example.com"
	if err := mailer.SendMail(t.Context(), mail); !errors.Is(err, ErrRefused) {
		t.Errorf("to an unknown mailbox: %v, want ErrRefused", err)
	}
	mail.To = "later@example.com"
	if err := mailer.SendMail(t.Context(), mail); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("temporarily refused: %v, want an error that is not final", err)
	}
	mail.To = "not an address"
	if err := mailer.SendMail(t.Context(), mail); !errors.Is(err, ErrRefused) {
		t.Errorf("to an invalid address: %v, want ErrRefused", err)
	}
	s.Close()
	if err := mailer.Check(t.Context()); err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("a server that is gone: %v, want an error about its own port", err)
	}
	mail.To = "ann@example.com"
	if err := mailer.SendMail(t.Context(), mail); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("without a server: %v, want an error that is not final", err)
	}
}

func TestSMTPConfiguration(t *testing.T) {
	for _, bad := range [][2]string{{"http://localhost", "a@b.c"}, {"smtp://", "a@b.c"}, {"smtp://localhost", "nobody"}, {"smtp://localhost:x", "a@b.c"}} {
		if _, err := NewSMTP(bad[0], "", bad[1]); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, good := range []string{"smtps://ann@mail.example.com", "smtp://mail.example.com:587"} {
		if _, err := NewSMTP(good, "x", "a@b.c"); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestGateway(t *testing.T) {
	status, got := http.StatusOK, map[string]string{}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("header: %v", r.Header)
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
	}))
	defer gateway.Close()
	g := NewGateway(gateway.URL, "t0ken", []string{"+49", "+1"})
	if err := g.SendText(t.Context(), "+4930123456", "123456"); err != nil || got["to"] != "+4930123456" || got["text"] != "123456" {
		t.Errorf("%v: %v", got, err)
	}
	for code, final := range map[int]bool{400: true, 404: true, 408: false, 429: false, 500: false, 503: false, 302: false} {
		status = code
		if err := g.SendText(t.Context(), "+4930123456", "x"); err == nil || errors.Is(err, ErrRefused) != final {
			t.Errorf("%d: %v, final: %v", code, err, final)
		}
	}
	for number, want := range map[string]bool{"+4930123456": true, "+15551234567": true, "+33123456789": false} {
		if g.Accepts(number) != want {
			t.Errorf("Accepts(%s) = %v", number, !want)
		}
	}
	if !NewGateway(gateway.URL, "", nil).Accepts("+33123456789") {
		t.Error("without countries not all are accepted")
	}
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := g.SendText(late, "+4930123456", "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "outbox")
	f, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"first", "second"} {
		if err := f.SendMail(t.Context(), Mail{FromName: "dev", To: "ann@example.com", Subject: subject, Text: "hello", HTML: "<p>hello</p>"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SendText(t.Context(), "+4930123456", "123456"); err != nil {
		t.Fatal(err)
	}
	items, err := f.Items(2)
	if err != nil || len(items) != 2 || items[0].To != "+4930123456" || items[1].Subject != "second" {
		t.Errorf("%+v, %v", items, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 { // two mails in two forms, and a text message
		t.Errorf("%d files, %v", len(entries), err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v %v", entry.Name(), info.Mode(), err)
		}
	}
}

// A folder that is read while items are stored has whole ones.
func TestFolderIsReadWhileItIsWritten(t *testing.T) {
	f, err := NewFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stored := make(chan error, 1)
	go func() {
		for range 500 {
			if err := f.SendText(context.Background(), "+15550100", strings.Repeat("text ", 1000)); err != nil {
				stored <- err
				return
			}
		}
		stored <- nil
	}()
	for {
		if _, err := f.Items(10); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-stored:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

func TestNone(t *testing.T) {
	var n None
	if err := errors.Join(n.SendMail(t.Context(), Mail{})); !errors.Is(err, ErrNone) || !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	if err := n.SendText(t.Context(), "", ""); !errors.Is(err, ErrNone) || n.Accepts("+4930123456") {
		t.Error(err)
	}
}
