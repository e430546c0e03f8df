package seal

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// MaxKeys is how many keys a file of master keys may have.
const MaxKeys = 8

// ReadKeyFile reads a master key from a file that holds KeySize bytes in
// standard base64, with or without a final newline.
// `head -c 32 /dev/urandom | base64` makes one.
//
// During a rotation the file has a key on each line, at most [MaxKeys]. The first one is
// returned, with the rest as its others.
func ReadKeyFile(path string) (*Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("seal: reading master key: %w", err)
	}
	var keys []*Key
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(line))
		if err != nil {
			// The decoder's error would quote the file.
			return nil, fmt.Errorf("seal: %s does not hold a master key in base64", path)
		}
		key, err := NewKey(raw)
		if err != nil {
			return nil, fmt.Errorf("%w, in %s", err, path)
		}
		if slices.ContainsFunc(keys, func(k *Key) bool { return k.id == key.id }) {
			return nil, fmt.Errorf("seal: %s has the master key %s twice", path, key.id)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("seal: %s is empty, want a master key in base64", path)
	case len(keys) > MaxKeys:
		return nil, fmt.Errorf("seal: %s has %d master keys, at most %d are allowed", path, len(keys), MaxKeys)
	}
	return keys[0].WithOthers(keys[1:]...), nil
}

// WriteKeyFile replaces the keys in a file, of which the first one seals. Readers get all of the
// old content or all of the new one. When it returns nil, a crash does not bring the old one back.
func WriteKeyFile(path string, keys ...*Key) error {
	temporary, err := writeKeys(path, keys)
	if err != nil {
		return fmt.Errorf("seal: writing master keys: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(fmt.Errorf("seal: writing master keys: %w", err), os.Remove(temporary))
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("seal: writing master keys: %w", err)
	}
	return nil
}

// syncFolder writes the names in a folder to the disk.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // which cannot sync a folder
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// GenerateKey returns a fresh key.
func GenerateKey() (*Key, error) {
	raw := make([]byte, KeySize)
	rand.Read(raw)
	return NewKey(raw)
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
	key, err := GenerateKey()
	if err != nil {
		return err
	}
	temporary, err := writeKeys(path, []*Key{key})
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// writeKeys writes keys to a new file beside path and returns its name.
func writeKeys(path string, keys []*Key) (temporary string, err error) {
	// CreateTemp makes files that only their owner may read.
	f, err := os.CreateTemp(filepath.Dir(path), ".master-key-*")
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		_, werr := f.WriteString(base64.StdEncoding.EncodeToString(key.raw) + "\n")
		err = errors.Join(err, werr)
	}
	// Synced, because sealed values may otherwise reach the disk before their key.
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
