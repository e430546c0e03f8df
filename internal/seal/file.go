package seal

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ReadKeyFile reads a master key from a file that holds KeySize bytes in
// standard base64, with or without a final newline.
// `head -c 32 /dev/urandom | base64` makes one.
func ReadKeyFile(path string) (*Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("seal: reading master key: %w", err)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		// The decoder's error would quote the file.
		return nil, fmt.Errorf("seal: %s does not hold a master key in base64", path)
	}
	key, err := NewKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%w, in %s", err, path)
	}
	return key, nil
}

// OpenKeyFile is ReadKeyFile that first creates the file, with a fresh key and
// readable by its owner only, when there is none, and its folder. It suits development and the
// first start of a single machine; elsewhere a missing key file is a mistake
// that a fresh key would hide.
func OpenKeyFile(path string) (*Key, error) {
	err := createKeyFile(path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("seal: creating master key: %w", err)
	}
	return ReadKeyFile(path)
}

// createKeyFile writes the key beside its path and links it there: of two
// processes that start together one wins and both read the whole winning key.
func createKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// CreateTemp makes files that only their owner may read.
	f, err := os.CreateTemp(filepath.Dir(path), ".master-key-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	raw := make([]byte, KeySize)
	rand.Read(raw)
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(raw) + "\n")
	// Synced, because sealed values may otherwise reach the disk before their key.
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
