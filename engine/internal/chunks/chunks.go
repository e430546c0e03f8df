// Package chunks writes numbers and texts to a file, and reads them.
//
// The file is a sequence of chunks, each with its length and a checksum. A [Reader] verifies a
// chunk before it decodes anything of it, and the last chunk is empty, so that neither damaged nor
// incomplete files are taken for what was written. A number or text is in one chunk.
package chunks

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"unsafe"
)

// ErrDamaged is the error of a file that is not what a [Writer] wrote.
var ErrDamaged = errors.New("the file is damaged or incomplete")

const (
	chunkBytes  = 256 << 10 // from this length on, a chunk is written
	headerBytes = 8         // the length of the chunk and its checksum
	// blockBytes is the size of the blocks of memory that texts share: one that is still in use
	// keeps a block.
	blockBytes = 4 << 10
)

var checksums = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a file. It must be closed with End. After an error it does nothing.
type Writer struct {
	w     io.Writer
	chunk []byte // with room for its header
	err   error
}

// NewWriter returns a writer of a file.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, chunk: make([]byte, headerBytes, headerBytes+chunkBytes+blockBytes)}
}

// Number writes a number.
func (w *Writer) Number(n uint64) {
	w.chunk = binary.AppendUvarint(w.chunk, n)
	w.flushFull()
}

// Text writes a text.
func (w *Writer) Text(s string) {
	w.chunk = append(binary.AppendUvarint(w.chunk, uint64(len(s))), s...)
	w.flushFull()
}

func (w *Writer) flushFull() {
	if len(w.chunk) >= headerBytes+chunkBytes {
		w.flush()
	}
}

func (w *Writer) flush() {
	if w.err == nil {
		content := w.chunk[headerBytes:]
		binary.LittleEndian.PutUint32(w.chunk, uint32(len(content)))
		binary.LittleEndian.PutUint32(w.chunk[4:], crc32.Checksum(content, checksums))
		_, w.err = w.w.Write(w.chunk)
	}
	w.chunk = w.chunk[:headerBytes]
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// End completes the file and returns the first error.
func (w *Writer) End() error {
	if len(w.chunk) > headerBytes {
		w.flush()
	}
	w.flush()
	return w.err
}

// Reader reads a file. After an error, all numbers are 0 and all texts empty.
type Reader struct {
	r     io.Reader
	left  int64 // bytes of the file that are not read
	chunk []byte
	rest  []byte // of the chunk
	block []byte // texts are stored in its free part
	err   error
}

// NewReader returns a reader of a file of some size in bytes.
func NewReader(r io.Reader, size int64) *Reader { return &Reader{r: r, left: size} }

// Number reads a number.
func (r *Reader) Number() uint64 {
	if len(r.rest) == 0 && !r.next() {
		return 0
	}
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// Count reads the number of items that follow, each of which takes a byte or more. There are no
// more of them than the file has bytes, so that memory can be allocated for them.
func (r *Reader) Count() int {
	n := r.Number()
	if n > uint64(r.left)+uint64(len(r.rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Text reads a text, which shares memory with others.
func (r *Reader) Text() string {
	n := r.Number()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return ""
	}
	if n == 0 {
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	if n > blockBytes/8 {
		return string(text)
	}
	if len(r.block)+len(text) > cap(r.block) {
		r.block = make([]byte, 0, blockBytes)
	}
	start := len(r.block)
	r.block = append(r.block, text...)
	return unsafe.String(&r.block[start], len(text)) // this part of the block does not change any more
}

// next reads the next chunk, which must not be the last, and reports whether there is one.
func (r *Reader) next() bool {
	if !r.read() {
		return false
	}
	if len(r.chunk) == 0 {
		r.Fail()
		return false
	}
	r.rest = r.chunk
	return true
}

func (r *Reader) read() bool {
	if r.err != nil {
		return false
	}
	var header [headerBytes]byte
	if !r.fill(header[:]) {
		return false
	}
	r.left -= headerBytes
	size := binary.LittleEndian.Uint32(header[:])
	if int64(size) > r.left {
		r.Fail()
		return false
	}
	r.left -= int64(size)
	r.chunk = slices.Grow(r.chunk[:0], int(size))[:size]
	if !r.fill(r.chunk) {
		return false
	}
	if crc32.Checksum(r.chunk, checksums) != binary.LittleEndian.Uint32(header[4:]) {
		r.Fail()
		return false
	}
	return true
}

// fill reads as many bytes as b has.
func (r *Reader) fill(b []byte) bool {
	_, err := io.ReadFull(r.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrDamaged
	}
	r.err = err
	return err == nil
}

// Fail makes ErrDamaged the error, if there is none: what was read makes no sense.
func (r *Reader) Fail() {
	if r.err == nil {
		r.err = ErrDamaged
	}
	r.rest = nil
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// End returns the first error, also if the file goes on.
func (r *Reader) End() error {
	if len(r.rest) > 0 || r.read() && len(r.chunk) > 0 || r.left > 0 {
		r.Fail()
	}
	return r.err
}
