package modem

import (
	"fmt"
	"math"
	"math/cmplx"
)

// Tracking is how a Demodulator follows the common phase along a frame.
type Tracking int

const (
	// Hold trusts the Sync's phase and frequency to the frame's end.
	Hold Tracking = iota
	// Line corrects the frequency by a line through the phases of the frame's
	// blocks. The phase at the preamble stays the Sync's.
	Line
	// Follow adds to that the blocks' smoothed deviations from the line: for
	// oscillators whose phases wander together. It is pinned at the first blocks,
	// so it moves the common phase by their error.
	Follow
)

// The bounds and default of Receive.Block.
const (
	minBlock     Symbols = 16
	maxBlock     Symbols = 1 << 16
	DefaultBlock Symbols = 256
)

// Receive is how a frame's symbols are received.
//
// Tracking takes a block's phase from the argument of the sum of squares of its
// complex symbols, halved, which needs symbols to be real and nothing else. Where
// all devices are in phase or in opposite phase that has the accuracy of the
// noise. Devices at other phases add their cross products, up to 1/sqrt(2 Block)
// radians a block that no signal-to-noise ratio removes; and devices in quadrature
// may leave no axis at all (Report.Realness). Symbols must not turn by more than a
// quarter turn a block beyond Sync.Offset.
type Receive struct {
	Tracking Tracking
	// Block is the number of symbols whose phase is taken together, 16 to 65536. 0
	// stands for DefaultBlock.
	Block Symbols
	// Clip is the magnitude of a component from which a sample counts as clipped:
	// radio.ClipLevel tells it; 0 for none.
	Clip Amplitude
}

// Report is what happened while a frame was received.
type Report struct {
	// Erased is the number of symbols flagged, Missing that of those among them
	// which lie outside the capture.
	Erased, Missing Symbols
	// Invalid is the number of samples of the frame that are no numbers, absurdly
	// large, or marked as lost; Clipped that of those that reach Receive.Clip.
	Invalid, Clipped int
	// Realness is the magnitude of the mean square of the symbols over their mean
	// power, median over blocks: near 1 for devices in phase, near 0 where no
	// common axis exists. It is 0 without tracking.
	Realness float64
	// Tracked tells that there was phase to be tracked. Otherwise Sync's was held.
	Tracked bool
	// Drift is the phase tracked from the preamble to the frame's end.
	Drift Radians
}

// Demodulator returns the symbols of frames. It is for one goroutine.
type Demodulator struct {
	sps     int
	recv    receiver
	receive Receive
	z       []complex64
	bursts  bursts
	track   tracker
}

// NewDemodulator makes a demodulator.
func NewDemodulator(cfg Config, receive Receive) (*Demodulator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if receive.Block == 0 {
		receive.Block = DefaultBlock
	}
	if receive.Block < minBlock || receive.Block > maxBlock {
		return nil, fmt.Errorf("blocks of %d symbols: allowed are %d to %d", receive.Block, minBlock, maxBlock)
	}
	if receive.Tracking < Hold || receive.Tracking > Follow {
		return nil, fmt.Errorf("tracking %d is none", receive.Tracking)
	}
	if !(receive.Clip >= 0) {
		return nil, fmt.Errorf("a clipping level of %v", receive.Clip)
	}
	return &Demodulator{
		sps:     cfg.SamplesPerSymbol,
		recv:    cfg.Pulse.receiver(cfg.SamplesPerSymbol),
		receive: receive,
		bursts:  newBursts(),
		track:   tracker{block: int(receive.Block)},
	}, nil
}

// Demodulate writes the soft symbols that follow the preamble at s to dst and
// flags in erased, of the same length, those that depend on samples which are not
// in the capture, no numbers, clipped, or struck by a burst. They are set to 0, but for a
// flat-top symbol all of whose samples were clipped alike: it keeps the value to which it
// was. A symbol of 1 comes out as the device's real gain, samples per symbol as in
// Modulator.Scale.
//
// It allocates only for frames longer than all before.
func (d *Demodulator) Demodulate(dst []float32, erased []bool, samples []complex64, s Sync) Report {
	erased = erased[:len(dst)]
	z := d.symbols(len(dst))
	report := d.filter(z, erased, samples, s.Payload)

	step := -2 * math.Pi * float64(s.Offset) * float64(d.sps)
	since := float64(s.Payload-s.Reference) / float64(d.sps) // symbols
	phase := -float64(s.Theta) + step*since
	if d.receive.Tracking == Hold {
		project(dst, z, phase, step)
		return report
	}
	rotate(z, phase, step)
	d.track.measure(z, erased)
	report.Realness = d.track.realness()
	report.Tracked = d.track.solve(since, d.receive.Tracking == Follow)
	for b := 0; b*d.track.block < len(z); b++ {
		from, to := b*d.track.block, min((b+1)*d.track.block, len(z))
		phase, step := d.track.turn(b)
		project(dst[from:to], z[from:to], -phase, -step)
		report.Drift = Radians(phase + step*float64(to-from))
	}
	return report
}

func (d *Demodulator) symbols(n int) []complex64 {
	if cap(d.z) < n {
		d.z = make([]complex64, n)
	}
	return d.z[:n]
}

// filter sets z to the complex symbols from the instant on, and flags those that
// are damaged, which are set to 0.
func (d *Demodulator) filter(z []complex64, erased []bool, samples []complex64, instant Samples) Report {
	clear(erased)
	if !placed(instant, len(z)*d.sps) {
		for k := range z {
			z[k], erased[k] = 0, true
		}
		return Report{Erased: Symbols(len(z)), Missing: Symbols(len(z))}
	}
	d.recv.tune(instant)
	first, end := d.recv.footprint()
	c := comb{first, end, d.sps}
	from, to := c.inside(len(samples), len(z))
	damage := c.flag(erased, samples, d.receive.Clip)
	for k := range z {
		if k < from || k >= to {
			erased[k] = true
		}
	}
	if from < to {
		d.recv.tune(instant + Samples(from*d.sps))
		d.recv.filter(z[from:to], samples)
	}
	report := Report{Missing: Symbols(len(z) - (to - from)), Invalid: damage.invalid, Clipped: damage.clipped}
	d.settle(z, erased, samples, from, to, first)
	if from < to {
		d.bursts.mark(z[from:to], erased[from:to], samples, d.recv, first+from*d.sps, d.sps)
	}
	for _, e := range erased {
		if e {
			report.Erased++
		}
	}
	return report
}

// placed reports whether an instant can be an index: a Sync need not come from a
// Detector.
func placed(t Samples, length int) bool {
	const far = 1 << 50
	return t > -far && t < far && int64(length) < far
}

// renew is how many turns of a phasor are made by multiplication before it is
// computed afresh.
const renew = 256

// rotate multiplies z[k] by e^{j(phase + k step)}.
func rotate(z []complex64, phase, step float64) {
	turn := cmplx.Rect(1, step)
	for from := 0; from < len(z); from += renew {
		w := cmplx.Rect(1, phase+step*float64(from))
		part := z[from:min(from+renew, len(z))]
		for k, x := range part {
			re, im := float32(real(w)), float32(imag(w))
			part[k] = complex(real(x)*re-imag(x)*im, real(x)*im+imag(x)*re)
			w *= turn
		}
	}
}

// project sets dst[k] to the real part of z[k] e^{j(phase + k step)}.
func project(dst []float32, z []complex64, phase, step float64) {
	turn := cmplx.Rect(1, step)
	for from := 0; from < len(z); from += renew {
		w := cmplx.Rect(1, phase+step*float64(from))
		part := z[from:min(from+renew, len(z))]
		out := dst[from:][:len(part)]
		for k, x := range part {
			out[k] = real(x)*float32(real(w)) - imag(x)*float32(imag(w))
			w *= turn
		}
	}
}
