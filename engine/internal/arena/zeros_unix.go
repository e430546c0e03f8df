//go:build unix

package arena

import "os"

// writeZeros writes zeros to a part of a file.
func writeZeros(file *os.File, offset, size int64) error {
	zeros := make([]byte, min(size, 1<<20))
	for size > 0 {
		n, err := file.WriteAt(zeros[:min(size, int64(len(zeros)))], offset)
		if err != nil {
			return err
		}
		offset, size = offset+int64(n), size-int64(n)
	}
	return nil
}
