//go:build unix

package arena

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// createUnnamed creates a file and removes its name.
func createUnnamed(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, ".mapped-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, err
	}
	return file, nil
}

// mappings are the mapped segments of a file.
type mappings struct{ all [][]byte }

func (m *mappings) add(file *os.File, offset int64, size int) ([]byte, error) {
	memory, err := m.keep(unix.Mmap(int(file.Fd()), offset, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
	if err == nil {
		// A traversal reads single pages, all over the file. To read ahead, megabytes on some disks, would
		// push out pages in use where there is no room for all of them.
		_ = unix.Madvise(memory, unix.MADV_RANDOM)
	}
	return memory, err
}

func (m *mappings) addAnonymous(size int) ([]byte, error) {
	return m.keep(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE))
}

func (m *mappings) keep(memory []byte, err error) ([]byte, error) {
	if err == nil {
		m.all = append(m.all, memory)
	}
	return memory, err
}

func (m *mappings) unmap() {
	for _, memory := range m.all {
		_ = unix.Munmap(memory)
	}
}

// leavesFree checks that a tenth of the disk stays free after growing by size, or most bytes if that
// is less.
func leavesFree(file *os.File, size, most uint64) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &s); err != nil {
		return err
	}
	free, reserve := uint64(s.Bavail)*uint64(s.Bsize), min(uint64(s.Blocks)*uint64(s.Bsize)/10, most)
	if free < size+reserve {
		return fmt.Errorf("%w: %d MiB of the disk have to stay free", ErrFull, reserve>>20)
	}
	return nil
}
