package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Start starts the product's binary with a new data folder below dir and optional
// arguments, and connects to it. stop ends it.
func Start(ctx context.Context, binary, dir string, more ...string) (h *HTTP, stop func(), err error) {
	product, err := launch(ctx, binary, dir, more...)
	if err != nil {
		return nil, nil, err
	}
	stop = func() { StopProcess(product) }
	if h, err = await(ctx, filepath.Join(dir, "data", "bootstrap.json")); err != nil {
		stop()
		return nil, nil, err
	}
	return h, stop, nil
}

// launch starts the product's binary with the data folder below dir, and does not wait for it.
func launch(ctx context.Context, binary, dir string, more ...string) (*exec.Cmd, error) {
	args := []string{"serve", "--dev", "--data-dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}
	product := exec.CommandContext(ctx, binary, append(args, more...)...)
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	product.Stderr = log
	if err := errors.Join(product.Start(), log.Close()); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return product, nil
}

// await waits until the server has written its credentials and answers.
func await(ctx context.Context, bootstrap string) (*HTTP, error) {
	var credentials struct {
		BaseURL      string `json:"base_url"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Admin        struct {
			Email    string `json:"email"`
			Password string `json:"password"`
		} `json:"admin"`
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(bootstrap)
		if err == nil {
			if err = json.Unmarshal(text, &credentials); err == nil {
				var h *HTTP
				if h, err = Dial(ctx, credentials.BaseURL, credentials.ClientID, credentials.ClientSecret, 16); err == nil {
					h.email, h.password = credentials.Admin.Email, credentials.Admin.Password
					return h, nil
				}
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("the server did not start: %w", err)
		}
	}
}

// StopProcess ends a process that this process started, gracefully if possible.
func StopProcess(c *exec.Cmd) {
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return // it has ended already
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		if err := c.Process.Kill(); err == nil {
			<-ended
		}
	}
}
