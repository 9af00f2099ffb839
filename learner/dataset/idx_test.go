package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func idxBytes(dims []int, data []uint8) []byte {
	out := []byte{0, 0, 8, byte(len(dims))}
	for _, n := range dims {
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return append(out, data...)
}

func gzipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadIDX(t *testing.T) {
	plain := idxBytes([]int{2, 3}, []uint8{1, 2, 3, 4, 5, 6})
	for name, content := range map[string][]byte{"plain": plain, "gzip": gzipped(t, plain)} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadIDX("a.idx", bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Dims, []int{2, 3}) || !slices.Equal(got.Data, []uint8{1, 2, 3, 4, 5, 6}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestReadIDXLong has more elements than are allocated at once.
func TestReadIDXLong(t *testing.T) {
	data := make([]uint8, 5*firstGrowth+17)
	for i := range data {
		data[i] = uint8(i * 7)
	}
	got, err := ReadIDX("a.idx", bytes.NewReader(idxBytes([]int{len(data)}, data)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Data, data) {
		t.Error("the elements differ")
	}
}

func TestReadIDXErrors(t *testing.T) {
	good := idxBytes([]int{2, 3}, []uint8{1, 2, 3, 4, 5, 6})
	zipped := gzipped(t, good)
	badSum := slices.Clone(zipped)
	badSum[len(badSum)-8] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":           {nil, "the length is 0 bytes (it ends early); allowed is an idx header"},
		"magic":           {[]byte{0, 1, 8, 1, 0, 0, 0, 1, 9}, "the beginning is the bytes 00 01 08 01, which are not those of images or labels; allowed is an idx file as MNIST's are, which begins with 00 00"},
		"type":            {[]byte{0, 0, 0x0d, 1, 0, 0, 0, 1, 9}, "the bytes 00 00 0d 01, which are not those of images or labels; allowed is an idx file as MNIST's are, which has 08, unsigned bytes,"},
		"no dimension":    {[]byte{0, 0, 8, 0}, "the bytes 00 00 08 00, which are not those of images or labels; allowed is an idx file as MNIST's are, which has 1 to 4 as its fourth byte"},
		"five dimensions": {[]byte{0, 0, 8, 5}, "the bytes 00 00 08 05, which are not those of images or labels; allowed is an idx file as MNIST's are, which has 1 to 4 as its fourth byte"},
		"size 0":          {idxBytes([]int{2, 0}, nil), "the number of values along dimension 2 (bytes 8 to 11) is 0; allowed is 1 or more"},
		"size too large":  {idxBytes([]int{1 << 20, 1 << 10}, nil), "the number of values along dimension 2 (bytes 8 to 11) is 1024; allowed is 1 or more, with at most 536870912"},
		"header cut":      {good[:10], "the length is 10 bytes (it ends early)"},
		"content cut":     {good[:len(good)-1], "the length is 17 bytes (it ends early); allowed is the 18 bytes that its header declares"},
		"one byte more":   {append(slices.Clone(good), 0), "the length is more than 18 bytes; allowed is the 18 bytes"},
		"gzip cut":        {zipped[:len(zipped)-9], "(it ends early)"},
		"gzip header cut": {zipped[:5], "(it ends early)"},
		"gzip method":     {[]byte{0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0}, "the gzip header is no gzip header; allowed is a whole gzip header"},
		"gzip checksum":   {badSum, "the gzip checksum is not that of the content"},
		"gzip trailing":   {append(slices.Clone(zipped), "left over"...), "; allowed is the 18 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadIDX("folder/a.idx", bytes.NewReader(c.content))
			var format *FormatError
			if !errors.As(err, &format) {
				t.Fatalf("got %v, want a FormatError", err)
			}
			if !strings.HasPrefix(err.Error(), "folder/a.idx: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestReadIDXReaderError(t *testing.T) {
	broken := errors.New("the disk is on fire")
	r := io.MultiReader(bytes.NewReader(idxBytes([]int{9}, []uint8{1})), errReader{broken})
	_, err := ReadIDX("a.idx", r)
	var format *FormatError
	if !errors.Is(err, broken) || errors.As(err, &format) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestReadIDXHostileHeader declares half a gigabyte and sends nothing.
func TestReadIDXHostileHeader(t *testing.T) {
	content := idxBytes([]int{1 << 29}, []uint8{1, 2, 3})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadIDX("a.idx", bytes.NewReader(content)); err == nil {
		t.Fatal("no error")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("a header alone made the reader allocate %d bytes", got)
	}
}

func FuzzIDX(f *testing.F) {
	good := idxBytes([]int{2, 2, 2}, []uint8{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(good)
	f.Add(gzipped(f, good))
	f.Add(good[:11])
	f.Add(gzipped(f, good)[:20])
	f.Add(idxBytes([]int{1 << 15, 1 << 15, 1}, nil))
	f.Add(idxBytes([]int{1, 0}, nil))
	f.Add([]byte{0x1f, 0x8b})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := ReadIDX("fuzz.idx", bytes.NewReader(content))
		if err != nil {
			if !strings.Contains(err.Error(), "fuzz.idx") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		// What was read is what its plain form says.
		again, err := ReadIDX("again.idx", bytes.NewReader(idxBytes(got.Dims, got.Data)))
		if err != nil {
			t.Fatalf("reading back: %v", err)
		}
		if !slices.Equal(again.Dims, got.Dims) || !bytes.Equal(again.Data, got.Data) {
			t.Error("reading back gave another array")
		}
	})
}
