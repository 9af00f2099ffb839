package dataset

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	idxUnsignedByte = 0x08
	maxDims         = 4
	// maxElements bounds what a header may declare: ten times MNIST's training
	// images. Memory is taken as bytes arrive, so a header alone costs nothing.
	maxElements = 1 << 29
	// firstGrowth is the most that is allocated before any element has arrived.
	firstGrowth = 1 << 20
	// growth is how many times what has arrived is then allocated besides.
	growth = 3
)

// FormatError says what in a file is not as its format demands.
type FormatError struct {
	File    string // the file's name as it was given
	Where   string // the position or field
	Value   string // what was found there
	Allowed string // what may be there
}

// Error returns one sentence with the file, the position, the value and what is
// allowed.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s is %s; allowed is %s", e.File, e.Where, e.Value, e.Allowed)
}

// Array is the content of an idx file of unsigned bytes.
type Array struct {
	Dims []int   // the sizes, slowest index first; one to four
	Data []uint8 // the elements, row-major; the product of Dims in number
}

// ReadIDX reads an idx file of unsigned bytes, plain or compressed with gzip,
// which is decided by its first two bytes. The name is for errors only. The
// stream must end where the header says that the elements end; if ReadIDX
// succeeds it has read r to its end. An Array has at most 2^29 elements, and no
// more memory is taken than a small multiple of the bytes that have arrived.
//
// What is wrong with the content is a *FormatError; what is wrong with reading
// is r's error, wrapped.
func ReadIDX(name string, r io.Reader) (*Array, error) { return readIDX(name, r, nil) }

// readIDX is ReadIDX, but where keep is given Data has the elements of those first indices
// alone that it wants: the others are read and forgotten.
func readIDX(name string, r io.Reader, keep func(i int) bool) (*Array, error) {
	d, err := newDecoder(name, r)
	if err != nil {
		return nil, err
	}
	dims, err := d.header()
	if err != nil {
		return nil, err
	}
	data, err := d.elements(dims, keep)
	if err != nil {
		return nil, err
	}
	return &Array{Dims: dims, Data: data}, nil
}

// decoder reads one idx stream; it counts bytes after decompression.
type decoder struct {
	name string
	r    io.Reader
	pos  int
}

// newDecoder looks whether the stream is compressed.
func newDecoder(name string, r io.Reader) (*decoder, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	d := &decoder{name: name, r: buffered}
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, d.failed("the gzip header", "a whole gzip header", err)
		}
		d.r = unzipped
	}
	return d, nil
}

// header reads the magic number and the sizes. The product of the sizes that it
// gives is at most maxElements.
func (d *decoder) header() ([]int, error) {
	var magic [4]byte
	if err := d.full(magic[:], "an idx header of 4 bytes and 4 bytes a dimension"); err != nil {
		return nil, err
	}
	if magic[0] != 0 || magic[1] != 0 {
		return nil, d.noIDX(magic, "begins with 00 00")
	}
	if magic[2] != idxUnsignedByte {
		return nil, d.noIDX(magic, "has 08, unsigned bytes, as its third byte, the type of its elements")
	}
	if magic[3] < 1 || magic[3] > maxDims {
		return nil, d.noIDX(magic, fmt.Sprintf("has 1 to %d as its fourth byte, how many sizes follow: 1 for labels, 3 for images", maxDims))
	}
	dims := make([]int, magic[3])
	total := int64(1)
	for i := range dims {
		var b [4]byte
		at := d.pos
		if err := d.full(b[:], "an idx header of 4 bytes and 4 bytes a dimension"); err != nil {
			return nil, err
		}
		size := binary.BigEndian.Uint32(b[:])
		// total <= 2^29 and size < 2^32: the product is below 2^61.
		total *= int64(size)
		if size == 0 || total > maxElements {
			return nil, d.bad(fmt.Sprintf("the number of %s (bytes %d to %d)", sizeOf(i, len(dims)), at, at+3), fmt.Sprint(size),
				fmt.Sprintf("1 or more, with at most %d elements in all", maxElements))
		}
		dims[i] = int(size)
	}
	return dims, nil
}

// sizeOf names what the i-th of so many sizes counts.
func sizeOf(i, of int) string {
	switch {
	case i == 0 && of == 1:
		return "labels"
	case i == 0:
		return "images"
	case of == 3:
		return [...]string{1: "rows of an image", 2: "columns of an image"}[i]
	}
	return fmt.Sprintf("values along dimension %d", i+1)
}

// noIDX refuses a file by its first four bytes, which are not as an idx file has them.
func (d *decoder) noIDX(magic [4]byte, allowed string) error {
	return d.bad("the beginning", fmt.Sprintf("the bytes % x, which are not those of images or labels", magic), "an idx file as MNIST's are, which "+allowed)
}

// elements reads the elements, keeps those of the first indices that are wanted, or all
// without keep, and makes sure that the stream ends after them.
func (d *decoder) elements(dims []int, keep func(i int) bool) ([]uint8, error) {
	total := 1
	for _, n := range dims {
		total *= n
	}
	rows := dims[0]
	if keep == nil {
		rows, keep = 1, func(int) bool { return true }
	}
	allowed := fmt.Sprintf("the %d bytes that its header declares", d.pos+total)
	var data []uint8
	for i := range rows {
		start := len(data)
		for end := start + total/rows; len(data) < end; {
			from := len(data)
			data = slices.Grow(data, min(end-from, max(growth*from, firstGrowth)))
			data = data[:min(cap(data), end)]
			if err := d.full(data[from:], allowed); err != nil {
				return nil, err
			}
		}
		if !keep(i) {
			data = data[:start]
		}
	}
	var extra [1]byte
	switch _, err := io.ReadFull(d.r, extra[:]); {
	case err == nil:
		return nil, d.bad("the length", fmt.Sprintf("more than %d bytes", d.pos), allowed)
	case err != io.EOF:
		return nil, d.failed("the end", allowed, err)
	}
	return data, nil
}

// full fills b or says what is missing.
func (d *decoder) full(b []byte, allowed string) error {
	n, err := io.ReadFull(d.r, b)
	d.pos += n
	if err != nil {
		return d.failed(fmt.Sprintf("the content from byte %d on", d.pos), allowed, err)
	}
	return nil
}

// failed turns an error of a reader into a FormatError where the bytes are at
// fault, and wraps it otherwise.
func (d *decoder) failed(where, allowed string, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return d.bad("the length", fmt.Sprintf("%d bytes (it ends early)", d.pos), allowed)
	case errors.Is(err, gzip.ErrHeader):
		return d.bad(where, "no gzip header", allowed)
	case errors.Is(err, gzip.ErrChecksum):
		return d.bad("the gzip checksum", "not that of the content", "a match")
	case errors.As(err, &corrupt):
		return d.bad(where, fmt.Sprintf("corrupt gzip data at compressed byte %d", int64(corrupt)), allowed)
	}
	return fmt.Errorf("reading %s at byte %d: %w", d.name, d.pos, err)
}

func (d *decoder) bad(where, value, allowed string) error {
	return &FormatError{File: d.name, Where: where, Value: value, Allowed: allowed}
}
