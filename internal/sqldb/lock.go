package sqldb

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile creates and locks a file. The lock ends with the file's Close or
// with the process, however that ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s is locked: the database is in use by another process", path)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
