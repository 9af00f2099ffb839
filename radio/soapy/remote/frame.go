package remote

import (
	"encoding/binary"
	"fmt"

	"ringwave/radio/soapy"
)

// frameHead is the length of what stands before the samples of each block, and all that
// there is of an acknowledgement and of news.
const frameHead = 24

// transport is what the size of a block leaves to headers of IPv6 and UDP, whichever
// protocol there is.
const transport = 48

// maxDatagram is how much of a block servers send at once: over UDP the rest is lost.
const maxDatagram = 4096

// frame is what stands before samples.
type frame struct {
	bytes    uint32 // with these
	sequence uint32 // of blocks; of the next one to come in acknowledgements
	// elems is the number of samples, or a code; in acknowledgements how many blocks may be
	// on their way.
	elems int32
	flags soapy.Flags
	time  soapy.Time
}

func parseFrame(b []byte) frame {
	w := binary.BigEndian
	return frame{w.Uint32(b), w.Uint32(b[4:]), int32(w.Uint32(b[8:])), soapy.Flags(w.Uint32(b[12:])), soapy.Time(w.Uint64(b[16:]))}
}

func (f frame) put(b []byte) {
	w := binary.BigEndian
	w.PutUint32(b, f.bytes)
	w.PutUint32(b[4:], f.sequence)
	w.PutUint32(b[8:], uint32(f.elems))
	w.PutUint32(b[12:], uint32(f.flags))
	w.PutUint64(b[16:], uint64(f.time))
}

// check says what is wrong with a block of samples of so many bytes, of which there may be
// most in all.
func (f frame) check(sample, most int) error {
	want := int64(frameHead) + int64(max(0, f.elems))*int64(sample)
	if int64(f.bytes) != want || want > int64(most) {
		return fmt.Errorf("a block of %d bytes for %d samples of %d bytes; allowed is %d, and %d at most: %w", f.bytes, f.elems, sample, want, most, soapy.ErrCorruption)
	}
	return nil
}

// sampleBytes returns the length of a sample of a format.
func sampleBytes(format string) (int, error) {
	switch format {
	case "CF32":
		return 8, nil
	case "CS16":
		return 4, nil
	case "CS8", "CU8":
		return 2, nil
	}
	return 0, fmt.Errorf("the format %q; allowed is CF32, CS16, CS8, CU8", format)
}
