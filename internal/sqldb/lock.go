package sqldb

import (
	"fmt"

	"github.com/gofrs/flock"
)

// lockFile creates and locks a file. The lock ends with Close or with the process, however that
// ends.
func lockFile(path string) (*flock.Flock, error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s is locked: the database is in use by another process", path)
	}
	if err != nil {
		return nil, err
	}
	return lock, nil
}
