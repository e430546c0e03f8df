package arena

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes room on the disk for a part of a file: a process that writes to mapped memory for
// which there is none is ended by the kernel.
func reserve(file *os.File, offset, size int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, offset, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return writeZeros(file, offset, size)
	}
	return err
}
