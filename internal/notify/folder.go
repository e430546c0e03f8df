package notify

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Folder stores mails and text messages in a folder, for development: mails as .eml files,
// which mail programs open, and both as .json files.
type Folder struct{ dir string }

// Item is a mail or a text message in a folder.
type Item struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	To      string    `json:"to"`
	From    string    `json:"from,omitzero"`
	Subject string    `json:"subject,omitzero"` // of a mail
	Text    string    `json:"text"`
	HTML    string    `json:"html,omitzero"`
}

// NewFolder creates the folder, which only its owner can read.
func NewFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create outbox: %w", err)
	}
	return &Folder{dir}, nil
}

// SendMail implements [Mailer].
func (f *Folder) SendMail(_ context.Context, m Mail) error {
	item := f.item(Item{To: m.To, From: m.FromName, Subject: m.Subject, Text: m.Text, HTML: m.HTML})
	msg, err := message("stonetown@localhost", m)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrRefused)
	}
	var text bytes.Buffer
	if _, err = msg.WriteTo(&text); err == nil {
		err = os.WriteFile(filepath.Join(f.dir, item.ID+".eml"), text.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("store message: %w", err)
	}
	return f.store(item)
}

// Accepts implements [Texter].
func (f *Folder) Accepts(string) bool { return true }

// SendText implements [Texter].
func (f *Folder) SendText(_ context.Context, number, text string) error {
	return f.store(f.item(Item{To: number, Text: text}))
}

// item sets the time and the id of an item. The ids of later items are greater.
func (f *Folder) item(item Item) Item {
	item.At = time.Now().UTC()
	item.ID = item.At.Format("20060102T150405.000000") + "_" + strings.ToLower(rand.Text()[:8])
	return item
}

func (f *Folder) store(item Item) error {
	text, err := json.MarshalIndent(item, "", "  ")
	if err == nil {
		// A reader finds all of a file, or none.
		name := filepath.Join(f.dir, item.ID)
		if err = os.WriteFile(name+".new", text, 0o600); err == nil {
			err = os.Rename(name+".new", name+".json")
		}
	}
	if err != nil {
		return fmt.Errorf("store message: %w", err)
	}
	return nil
}

// Items returns the items, newest first, at most limit.
func (f *Folder) Items(limit int) ([]Item, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	var items []Item
	for _, entry := range slices.Backward(entries) {
		if filepath.Ext(entry.Name()) != ".json" || len(items) == limit {
			continue
		}
		text, err := os.ReadFile(filepath.Join(f.dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var item Item
		if err == nil {
			err = json.Unmarshal(text, &item)
		}
		if err != nil {
			return nil, fmt.Errorf("read outbox: %s: %w", entry.Name(), err)
		}
		items = append(items, item)
	}
	return items, nil
}
