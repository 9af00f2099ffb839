package iiod

import "ringwave/radio"

// Profile is what boards of a sort say of themselves: names, ranges, and how many antennas
// they have. The zero value stands for Pluto's.
type Profile struct {
	// Model is what the board calls itself, "" if nothing, and Transceiver what it is
	// built of, as Linux names it.
	Model, Transceiver string
	// Paths is the number of antennas each way. Each transceiver has up to two, in order.
	Paths int
	// Transceivers is their number. The second's devices are named with -B behind.
	Transceivers int
	// Receiver is the name of the device that received samples come from.
	Receiver string
	// The ranges, in hertz.
	RxFrequencies, TxFrequencies, Rates radio.Span[radio.Hertz]
}

// Profiles are the boards that can be emulated, by the names that programs have for them.
// Names and ranges are those of listings that their owners published; none was at hand.
func Profiles() map[string]Profile {
	wideRx := radio.Span[radio.Hertz]{Min: 70e6, Max: 6e9, Step: 1}
	wideTx := radio.Span[radio.Hertz]{Min: 46_875_001, Max: 6e9, Step: 1}
	narrow := radio.Span[radio.Hertz]{Min: 325e6, Max: 3.8e9, Step: 1}
	one := radio.Span[radio.Hertz]{Min: 2_083_333, Max: 61.44e6, Step: 1}
	two := radio.Span[radio.Hertz]{Min: 2_083_333, Max: 30.72e6, Step: 1}
	const lpc = "cf-ad9361-lpc"
	return map[string]Profile{
		"pluto":       {"Analog Devices PlutoSDR Rev.C (Z7010-AD9363A), emulated", "ad9363a", 1, 1, lpc, narrow, narrow, one},
		"pluto-plus":  {"plutoplus, emulated", "ad9361", 2, 1, lpc, wideRx, wideTx, two},
		"antsdr-e200": {"Analog Devices PlutoSDR Rev.C (Z7010-AD9364), emulated", "ad9364", 1, 1, lpc, wideRx, wideTx, one},
		"antsdr-e310": {"Analog Devices PlutoSDR Rev.C (Z7020-AD9361), emulated", "ad9361", 2, 1, lpc, wideRx, wideTx, two},
		"fmcomms5":    {"", "ad9361", 4, 2, "cf-ad9361-A", wideRx, wideTx, two},
	}
}

// gains returns the range of the receive gain at a frequency, in decibels: the transceiver
// has a table for each of three bands.
func gains(frequency int64) (lo, hi float64) {
	switch {
	case frequency > 4_000_000_000:
		return -10, 62
	case frequency > 1_300_000_000:
		return minRxGain, maxRxGain
	}
	return -1, 73
}
