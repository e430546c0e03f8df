// Package graphfile stores the graphs of tenants in a folder, one file each, so that a process
// that starts reads a file instead of all tuples of a tenant.
//
// A file is never needed, and never trusted for longer than it holds: its header says of which
// revision of which history the graph is, for the reader to compare with the database, and its
// chunks have checksums. It is not synced, because an incomplete file is recognized.
package graphfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stonetown/engine/internal/arena"
	"stonetown/engine/internal/chunks"
	"stonetown/engine/internal/graph"
	"stonetown/tuplestore"
)

// format begins each file. It changes when older versions of the product cannot read a file, or
// would understand something else.
const format = "stonetown graph 1"

const (
	suffix     = ".graph"
	unfinished = ".new-" // begins the name of a file that is being written
	// abandonedAfter is the age of a file that another process began to write and did not finish.
	abandonedAfter = time.Hour
)

// ErrOtherFormat is the error of a file of another version of the product.
var ErrOtherFormat = errors.New("the file has another format")

// Header says what graph a file has.
type Header struct {
	Tenant      string
	Epoch       string // of the history, as [tuplestore.Head]
	Revision    tuplestore.Revision
	CommittedAt time.Time // of the revision; with it, no other revision is taken for this one
	Bytes       int64     // of the graph in memory, estimated
}

// Folder is a folder of files. It is safe for concurrent use, also by several processes.
type Folder struct{ path string }

// Open opens a folder, which it creates, readable by its owner only, unless it exists.
func Open(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("folder of graphs: %w", err)
	}
	return &Folder{path}, nil
}

// Arena returns an empty arena of at most the given number of bytes, in a file without a name.
func (f *Folder) Arena(most int64) (*arena.Arena, error) { return arena.New(f.path, most) }

// file returns the path of the file of a tenant. Its name does not depend on which characters a
// file system allows.
func (f *Folder) file(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return filepath.Join(f.path, hex.EncodeToString(sum[:16])+suffix)
}

// Write writes the file of a tenant, in place of an older one. The graph must not change
// meanwhile.
func (f *Folder) Write(h Header, g *graph.Graph) (err error) {
	out, err := os.CreateTemp(f.path, unfinished+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	w := chunks.NewWriter(out)
	w.Text(format)
	w.Text(h.Tenant)
	w.Text(h.Epoch)
	w.Number(uint64(h.Revision))
	w.Number(uint64(h.CommittedAt.UnixMicro()))
	w.Number(uint64(h.Bytes))
	g.WriteTo(w)
	if err = errors.Join(w.End(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), f.file(h.Tenant))
}

// File is a file that is being read.
type File struct {
	Header
	file *os.File
	r    *chunks.Reader
}

// Read opens the file of a tenant. Without one the error is [os.ErrNotExist].
func (f *Folder) Read(tenant string) (*File, error) {
	file, err := open(f.file(tenant))
	if err == nil && file.Tenant != tenant {
		err = errors.Join(ErrOtherFormat, file.Close())
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

func open(path string) (_ *File, err error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	r := chunks.NewReader(in, info.Size())
	if r.Text() != format && r.Err() == nil {
		return nil, ErrOtherFormat
	}
	h := Header{
		Tenant: r.Text(), Epoch: r.Text(), Revision: tuplestore.Revision(r.Number()),
		CommittedAt: time.UnixMicro(int64(r.Number())), Bytes: int64(r.Number()),
	}
	if err = r.Err(); err != nil {
		return nil, err
	}
	return &File{h, in, r}, nil
}

// Graph reads the graph, to the heap or an arena. It fails with [chunks.ErrDamaged] if that is not
// the one that was written.
func (f *File) Graph(memory *arena.Arena) (*graph.Graph, error) {
	g := graph.Read(f.r, memory)
	if err := f.r.End(); err != nil {
		return nil, err
	}
	return g, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Prune removes the files that cannot be read and those that are not to be kept.
func (f *Folder) Prune(keep func(Header) bool) error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(f.path, entry.Name())
		if isKept(path, entry, keep) {
			continue
		}
		if removed := os.Remove(path); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// isKept reports whether a file is left where it is, as those are that this package did not write.
func isKept(path string, entry os.DirEntry, keep func(Header) bool) bool {
	if strings.HasPrefix(entry.Name(), unfinished) {
		info, err := entry.Info()
		return err != nil || time.Since(info.ModTime()) < abandonedAfter
	}
	if filepath.Ext(path) != suffix {
		return true
	}
	file, err := open(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return file.Close() == nil && keep(file.Header)
}
