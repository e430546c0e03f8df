package playground

import (
	"io/fs"
	"strings"
	"time"
)

// file is a folder with one file, whose text is in memory.
type file struct{ name, text string }

// Open implements [fs.FS].
func (f file) Open(name string) (fs.File, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return opened{strings.NewReader(f.text), f}, nil
}

// opened is the opened file.
type opened struct {
	*strings.Reader
	file
}

func (o opened) Stat() (fs.FileInfo, error) { return o, nil }
func (o opened) Close() error               { return nil }

func (o opened) Name() string     { return o.name }
func (o opened) Size() int64      { return int64(len(o.text)) }
func (opened) Mode() fs.FileMode  { return 0o444 }
func (opened) ModTime() time.Time { return time.Time{} }
func (opened) IsDir() bool        { return false }
func (opened) Sys() any           { return nil }
