package diagnosis

// Report is what lost frames had in common: counts, and medians over those that were found,
// NaN where there are none.
type Report struct {
	Link Link
	// Of Frames frames Lost were not read, of which NotFound were not even found; Unscaled
	// are frames of b that were found and that no scale reads.
	Frames, Lost, NotFound, Unscaled int
	// Of Attempts attempts that were declared void, Changed were as gains were others than
	// those of b, Odd as they are not what is known of them, Noisy as what decodes is no
	// noise where it should be, and Silent as all gains were 0.
	Attempts, Changed, Odd, Noisy, Silent int

	Devices int // in a slot
	// Of frames that were not found: figures of Sight.
	Excess, Standing, Line float64
	// Of frames that were found: figures of Sight, and of modem.Report, with amplitudes over
	// that of a device.
	Turn, Wander, LeastReal, MostReal float64
	Drift, Realness                   float64
	Untracked                         bool
	Receiver, Carrier                 float64
	Image, Block, Echo                float64
	Clock                             float64
	// Figures of Sight.
	Slip, Timed, Fade, Struck, Quiet, Tone float64
	Erased, Missing                        float64 // shares of the symbols
	Clipped                                float64 // samples
	Seconds                                float64 // of a frame behind the preamble
	SNR                                    float64 // of a real symbol of 1 by the preamble, in dB, interference included
}
