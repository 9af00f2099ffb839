package pluto

import (
	"fmt"
	"regexp"
	"strconv"

	"ringwave/radio"
	"ringwave/radio/iq"
)

const (
	// converterBits is the width of the board's converters.
	converterBits = 12
	// fullScale is the converter's integer for an amplitude of 1. The integer
	// below its negative is received and never sent.
	fullScale = 1<<(converterBits-1) - 1
	// clipLevel is the amplitude that only integers at the limit reach.
	clipLevel radio.Amplitude = (fullScale - 0.5) / fullScale
	// sampleBytes is the length of a sample: I and Q of 16 bits.
	sampleBytes = 4
)

var formats = regexp.MustCompile(`^(le|be):[sS](\d{1,2})/16>>(\d{1,2})$`)

// parseFormat reads a format as descriptions have it: le:S12/16>>0. What is wider than
// the converter has its integer in the upper bits.
func parseFormat(s string) (iq.Config, error) {
	m := formats.FindStringSubmatch(s)
	if m == nil {
		return iq.Config{}, fmt.Errorf("samples have the format %q; allowed is signed in 16 bits, as le:S12/16>>0", s)
	}
	order := iq.CI16LE
	if m[1] == "be" {
		order = iq.CI16BE
	}
	width, _ := strconv.Atoi(m[2]) // two digits
	shift, _ := strconv.Atoi(m[3])
	if width < converterBits || width+shift > 16 {
		return iq.Config{}, fmt.Errorf("samples have the format %q; allowed is %d bits or more within 16", s, converterBits)
	}
	return iq.Config{Format: order, Step: 1.0 / fullScale, Bits: converterBits, Shift: width - converterBits + shift}, nil
}
