package hackrf

import (
	"ringwave/radio"
	"ringwave/radio/iq"
)

const (
	// fullScale is the integer that stands for an amplitude of 1.
	fullScale = 127
	// sampleBytes is the length of a sample: I and Q of 8 bits, signed.
	sampleBytes = 2
	// clipLevel is the amplitude that only integers at the limit reach.
	clipLevel radio.Amplitude = (fullScale - 0.5) / fullScale
)

// samples is the board's format, in single precision to be fast.
var samples = iq.New(iq.Config{Format: iq.CI8, Step: 1.0 / fullScale, Single: true})
