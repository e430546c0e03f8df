//go:build unix && !linux

package arena

import "os"

// reserve takes room on the disk for a part of a file: a process that writes to mapped memory for
// which there is none is ended by the kernel.
func reserve(file *os.File, offset, size int64) error { return writeZeros(file, offset, size) }
