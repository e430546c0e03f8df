package post

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stonetown/internal/id"
)

// Folder keeps what it is given in a folder, for development: a letter as an .eml file,
// which mail programs open, and everything as .json.
type Folder struct{ dir string }

// Item is what a folder holds.
type Item struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	To      string    `json:"to"`
	From    string    `json:"from,omitzero"`
	Subject string    `json:"subject,omitzero"` // of a letter
	Text    string    `json:"text"`
	HTML    string    `json:"html,omitzero"`
}

// NewFolder makes the folder, for its owner's eyes only.
func NewFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make outbox: %w", err)
	}
	return &Folder{dir}, nil
}

// Mail implements [Mailer].
func (f *Folder) Mail(_ context.Context, l Letter) error {
	item := f.item(Item{To: l.To, From: l.FromName, Subject: l.Subject, Text: l.Text, HTML: l.HTML})
	m, err := message("stonetown@localhost", l)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrRefused)
	}
	var text bytes.Buffer
	if _, err = m.WriteTo(&text); err == nil {
		err = os.WriteFile(filepath.Join(f.dir, item.ID+".eml"), text.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep letter: %w", err)
	}
	return f.keep(item)
}

// Accepts implements [Texter].
func (f *Folder) Accepts(string) bool { return true }

// Text implements [Texter].
func (f *Folder) Text(_ context.Context, number, text string) error {
	return f.keep(f.item(Item{To: number, Text: text}))
}

// item gives an item a name under which the newest comes last.
func (f *Folder) item(item Item) Item {
	item.At = time.Now().UTC()
	item.ID = item.At.Format("20060102T150405.000000") + "_" + strings.TrimPrefix(id.New(id.Letter), id.Letter+"_")[:8]
	return item
}

func (f *Folder) keep(item Item) error {
	text, err := json.MarshalIndent(item, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, item.ID+".json"), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep letter: %w", err)
	}
	return nil
}

// Items are what was kept, the newest first, at most limit.
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
