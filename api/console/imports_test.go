package console

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A file reaches the operation while the browser sends it, with the kind of encoding that it has, also
// after the deadline of pages.
func TestUploadIsAStream(t *testing.T) {
	half := make(chan struct{})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := bufio.NewReader(r.Body)
		first, err := lines.ReadString('\n')
		close(half) // the browser sends the rest after that
		rest, errOfRest := io.ReadAll(lines)
		if err != nil || errOfRest != nil || first != "{\"email\":\"a\"}\n" || string(rest) != "{}\n" || r.Context().Err() != nil {
			t.Errorf("%q, %q, %v, %v, %v", first, rest, err, errOfRest, r.Context().Err())
		}
		if r.Header.Get("Content-Type") != "application/x-ndjson" || r.Header.Get("Content-Encoding") != "" || r.URL.RawQuery != "send_verification=true" || r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("%v %v", r.URL, r.Header)
		}
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(object{"data": object{"id": "job_1"}})
	})
	body, browser := io.Pipe()
	form := multipart.NewWriter(browser)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = form.WriteField("once", "x")
		_ = form.WriteField("send_verification", "yes")
		file, _ := form.CreateFormFile("file", "users.ndjson")
		_, _ = io.WriteString(file, "{\"email\":\"a\"}\n")
		<-half
		_, _ = io.WriteString(file, "{}\n")
		_ = form.Close()
		_ = browser.Close()
	}()
	v, w := sent(t, api, "ses_a", nil)
	v.scopes = []string{"users:write"}
	cancel()
	v.r = httptest.NewRequestWithContext(ctx, http.MethodPost, importAction, body)
	v.r.Header.Set("Content-Type", form.FormDataContentType())
	if err := upload(v); err != nil || w.Code != http.StatusSeeOther || w.Header().Get("Location") != importsPage+"/job_1" {
		t.Errorf("%v, %d %v", err, w.Code, w.Header())
	}
}

// Forms without a file, or with an empty one, are shown again, and no operation is called.
func TestUploadWithoutFile(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("called: %s", r.Method)
		}
		_ = json.NewEncoder(w).Encode(object{"data": []any{}})
	})
	for name, body := range map[string]string{
		"no form":       "x",
		"no part":       "--b--\r\n",
		"no file":       "--b\r\nContent-Disposition: form-data; name=\"once\"\r\n\r\nx\r\n--b--\r\n",
		"an empty file": "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n\r\n--b--\r\n",
	} {
		v, w := sent(t, api, "ses_a", nil)
		v.scopes = []string{"users:read", "users:write"}
		v.r = httptest.NewRequest(http.MethodPost, importAction, strings.NewReader(body))
		v.r.Header.Set("Content-Type", `multipart/form-data; boundary="b"`)
		if err := upload(v); err != nil || w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `name="file" accept=".ndjson,.jsonl,.gz" required aria-invalid="true"`) {
			t.Errorf("%s: %v, %d\n%s", name, err, w.Code, w.Body)
		}
	}
}
