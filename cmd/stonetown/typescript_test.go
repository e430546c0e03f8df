package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestTypeScriptClient starts the example of the TypeScript client with its one command, which installs
// and builds the client, and then runs the client's tests: in Node.js without a server and against one,
// in Chromium from another origin, and the code of its page in the documentation.
func TestTypeScriptClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	// The folders are where they are in the repository, because the example refers to the client.
	top := t.TempDir()
	client := filepath.Join(top, "sdk/typescript")
	for _, folder := range []string{"sdk/typescript", "examples/typescript", "api/openapi"} {
		copySources(t, filepath.Join("../..", folder), filepath.Join(top, folder))
	}
	data := filepath.Join(top, "data")
	server := start(t, "--dev", "--data-dir", data, "--rate-limits", "token.ip=unlimited")
	c := readJSON(t, filepath.Join(data, "bootstrap.json"))
	base := "http://" + server.Addr()
	tryExample(t, startExample(ctx, t, filepath.Join(top, "examples/typescript"), base))

	run := inFolder(ctx, client)
	setup, err := json.Marshal(map[string]string{"baseUrl": base, "clientId": c.ClientID, "clientSecret": c.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("generated", func(t *testing.T) {
		run(t, "", "npm", "run", "--silent", "types")
		for _, file := range []string{"src/api.gen.ts", "src/codes.gen.ts"} {
			made, err := os.ReadFile(filepath.Join(client, file))
			if err != nil {
				t.Fatal(err)
			}
			committed, err := os.ReadFile(filepath.Join("../../sdk/typescript", file))
			if err != nil || !bytes.Equal(made, committed) {
				t.Errorf("%s is not what the OpenAPI document makes: run make sdk; %v", file, err)
			}
		}
		for _, file := range []string{"sdk/typescript", "examples/typescript"} {
			lock, err := os.ReadFile(filepath.Join("../..", file, "package-lock.json"))
			if err != nil || bytes.Contains(lock, []byte(`"resolved": "http`)) {
				t.Errorf("the lock file of %s names where its packages were loaded from; %v", file, err)
			}
		}
	})
	writeGuide(t, filepath.Join(client, "guide"), base)
	copySources(t, "testdata/typescript", filepath.Join(client, "check"))
	t.Run("types", func(t *testing.T) { run(t, "", "npx", "tsc", "-p", "guide") })
	t.Run("units", func(t *testing.T) { run(t, "", "npm", "test", "--silent") })
	t.Run("server", func(t *testing.T) {
		if out := run(t, string(setup), "node", "check/check.mjs"); strings.Count(out, "ok ") != 8 {
			t.Errorf("not every step was taken:\n%s", out)
		}
	})
	t.Run("guide", func(t *testing.T) {
		out := inFolder(ctx, client)(t, "", "env", "CLIENT_ID="+c.ClientID, "CLIENT_SECRET="+c.ClientSecret, "node", "guide/out/guide/guide.js")
		if want := printedByGuide(t); out != want {
			t.Errorf("the guide prints\n%s\nand says that it prints\n%s", out, want)
		}
	})
	t.Run("browser", func(t *testing.T) {
		run(t, "", "npx", "vite", "build", "--config", "check/browser/vite.config.js")
		tryInBrowser(t, server, c, filepath.Join(client, "check/browser/dist"))
	})
}

// copySources copies a folder without what is installed or built there.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	source := os.DirFS(from)
	err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "node_modules" || d.Name() == "dist" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		}
		text, err := fs.ReadFile(source, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// startExample starts the example with npm, and returns its address.
func startExample(ctx context.Context, t *testing.T, folder, base string) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "npm", "start")
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = folder, t.Output(), 5*time.Second
	cmd.Env = append(os.Environ(), "BASE_URL="+base, "PORT=0", "NPM_CONFIG_PREFER_OFFLINE=true")
	// npm passes a signal to its shell, but not every shell passes it to the example.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("clients are tested in Node.js (Debian: apt install npm): %v", err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was stopped
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	t.Fatal("the example did not start")
	return ""
}

// tryExample uses the service of the example as two people.
func tryExample(t *testing.T, address string) {
	t.Helper()
	request := func(user, method, path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		if user != "" {
			r.Header.Set("Authorization", "Demo "+user)
		}
		resp, err := httpClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
	for _, step := range []struct{ user, method, path, body, want string }{
		{"", "GET", "/documents", "", "401"},
		{"cleo", "PUT", "/documents/plan", "the plan", "201"},
		{"eve", "PUT", "/documents/plan", "another plan", "409"},
		{"cleo", "GET", "/documents/plan", "", "200 the plan"},
		{"dora", "GET", "/documents/plan", "", "403"},
		{"", "GET", "/documents/plan", "", "401"},
		{"cleo", "GET", "/documents/absent", "", "403"},
		{"dora", "PUT", "/documents/plan/viewers/dora", "", "403"},
		{"cleo", "PUT", "/documents/plan/viewers/dora", "", "204"},
		{"dora", "GET", "/documents/plan", "", "200 the plan"},
		{"dora", "GET", "/documents", "", `200 ["plan"]`},
	} {
		if got := request(step.user, step.method, step.path, step.body); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s %s of %q: %s, want %s", step.method, step.path, step.user, got, step.want)
		}
	}
}

const typescriptGuide = "docs/typescript-client.md"

// writeGuide writes the code of the guide: a program of those sections that go on from another, and a
// module of each framework. Its tsconfig.json also has the sources and tests of the client.
func writeGuide(t *testing.T, folder, base string) {
	t.Helper()
	files := map[string]string{"tsconfig.json": `{
		"extends": "../tsconfig.json",
		"compilerOptions": {
			"noEmit": false, "rootDir": "..", "outDir": "out", "jsx": "react-jsx",
			"paths": {"stonetown": ["../src/index.ts"], "stonetown/*": ["../src/*.ts"]}
		},
		"include": [".", "../src", "../test"]
	}`}
	for _, b := range blocks(t, typescriptGuide) {
		switch {
		case b.language == "sh":
		case b.section == "Express", b.section == "Fastify", b.section == "React":
			files[strings.ToLower(b.section)+"."+b.language] += b.text
		default:
			files["guide.ts"] += strings.ReplaceAll(b.text, "https://acme.example.com", base)
		}
	}
	if len(files) != 5 {
		t.Errorf("%d files", len(files))
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// printedByGuide returns what the comments of the guide say that it prints.
func printedByGuide(t *testing.T) (lines string) {
	t.Helper()
	for _, b := range blocks(t, typescriptGuide) {
		for line := range strings.Lines(b.text) {
			if code, comment, found := strings.Cut(strings.TrimSuffix(line, "\n"), " // "); found && strings.Contains(code, "console.log(") {
				lines += comment + "\n"
			}
		}
	}
	return lines
}

// tryInBrowser opens a page of another origin, which calls the API with a token of the user.
func tryInBrowser(t *testing.T, server *running, c credentials, dist string) {
	t.Helper()
	b := openBrowser(t, server)
	pages := http.NewServeMux()
	pages.Handle("/", http.FileServer(http.Dir(dist)))
	pages.HandleFunc("/setup.json", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(map[string]string{"baseUrl": b.base, "accessToken": server.token(c)}); err != nil {
			t.Error(err)
		}
	})
	site := httptest.NewServer(pages)
	defer site.Close()
	api, token := "http://"+server.Addr()+"/api/v1/", server.token(c)
	post := func(path string, body any) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := server.do("POST", api+path, hostOf(t, c.BaseURL), token, string(text)); status != http.StatusCreated {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
	}
	post("applications", map[string]any{"name": "page", "type": "spa", "redirect_uris": []string{}, "allowed_origins": []string{site.URL}})
	for _, id := range []string{"one", "two"} { // three does not exist
		post("resources", map[string]any{"type": "document", "external_id": id})
	}
	post("resources/document/one/relations", map[string]any{"relation": "viewer", "subject": map[string]any{"type": "user", "id": "ann"}})

	b.do(chromedp.Navigate(site.URL))
	for _, words := range []string{"one allowed", "two denied", "three denied"} {
		b.do(chromedp.WaitVisible(chromedp.Search(fmt.Sprintf(`//li[starts-with(normalize-space(), %q)]`, words))))
	}
	b.do(chromedp.Click(chromedp.CSS("#two")), chromedp.WaitVisible(chromedp.Search(`//li[starts-with(normalize-space(), "two allowed")]`)))
	b.do(chromedp.Click(chromedp.CSS("#count")))
	b.says("2 requests")
}
