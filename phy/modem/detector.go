package modem

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"ringwave/crypto/vector"
	"ringwave/phy/kernel"
)

// ErrNoPreamble says that a capture holds no preamble: nothing was sent, too
// weakly, or the capture begins too late.
var ErrNoPreamble = errors.New("no preamble found")

// DefaultFalseAlarm is a Search.FalseAlarm for long captures.
const DefaultFalseAlarm = 1e-9

// mostThreshold is the highest threshold that a preamble still passes for certain.
const mostThreshold = 0.75

// mostTurns is how many turns of the carrier in a preamble are looked for, either way.
const mostTurns = 8

// Search is how preambles are searched for.
type Search struct {
	// MaxOffset bounds the frequency offset that all devices have in common. 0
	// says that there is none, and none is estimated.
	MaxOffset CyclesPerSample
	// FalseAlarm bounds the probability that a tested instant without a preamble
	// passes for one; two instants a symbol period are tested. It holds whatever
	// is received there, noise or symbols of any size, as long as the signs of
	// symbols are independent. 0 stands for DefaultFalseAlarm.
	FalseAlarm float64
}

// Sync is where a frame lies in a capture, and how it is turned. All of it
// describes the superposition; theta and amplitude those of
// sum_i h_i e^{j phi_i}.
type Sync struct {
	// Start and Payload are the instants of the first preamble symbol and of the
	// first symbol after the preamble. They are fractional with
	// RootRaisedCosine; with FlatTop they are the middle of the receiver's window.
	Start, Payload Samples
	// Theta is the common phase at the instant Reference, in (-pi, pi], and Offset
	// the common frequency.
	Theta     Radians
	Reference Samples
	Offset    CyclesPerSample
	// Amplitude is the received amplitude of a symbol of 1, Noise the complex noise
	// power of a soft symbol, residual interference included.
	Amplitude Amplitude
	Noise     Power
	// Quality is the share of the preamble's power that is preamble, 0 to 1.
	Quality float64
	// Lost is the number of preamble symbols that could not be used.
	Lost Symbols
}

func wrap(phase float64) Radians {
	return Radians(math.Pi - math.Mod(math.Mod(math.Pi-phase, 2*math.Pi)+2*math.Pi, 2*math.Pi))
}

// Detector finds preambles. It is for one goroutine.
//
// It tests two instants a symbol period, with means over half symbols: at each it
// correlates one mean a symbol with the preamble's sequence p and compares
//
//	M = |sum_k p_k y_k|^2 / (L sum_k |y_k|^2) <= 1
//
// with a threshold of (2/L) ln(4 H/P), P being Search.FalseAlarm and H the number
// of frequencies tried. If the signs of y_k are independent given the magnitudes,
// Hoeffding's inequality bounds the probability that the real or the imaginary
// part alone exceeds its share by 2 exp(-L M/2), whatever the magnitudes. The
// refined instant must pass the threshold again. In noise power N a sample and
// amplitude A, M is about S/(1 + S), S = A^2 sps/(2 N), for a half symbol inside
// the pulse.
type Detector struct {
	cfg       Config
	search    Search
	threshold float64
	sequence  []float32
	guard     Symbols
	kernel    kernel.Kernel
	reversed  []float32 // the sequence from its end, as taps of a filter
	half      [2][]float32
	tried     []hypothesis
	from, to  int // of tried, those that are

	y, turned, product []complex64
	energy             []float64 // energy[k]: of y[:k]
	score              []score

	fine refiner
}

// hypothesis is a frequency and what turns symbols back by it; nil where that is 0.
type hypothesis struct {
	offset CyclesPerSample
	back   []complex64
}

// blockPreambles is how many preambles, and as many symbols, are looked at together.
const blockPreambles = 4

// score is the best that was found at one symbol.
type score struct {
	quality float64
	half    int // of the symbol: 0 or 1
	tried   int
}

// NewDetector makes a detector.
func NewDetector(cfg Config, search Search) (*Detector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if search.FalseAlarm == 0 {
		search.FalseAlarm = DefaultFalseAlarm
	}
	if !(search.FalseAlarm > 0 && search.FalseAlarm < 1) {
		return nil, fmt.Errorf("a false-alarm probability of %v: it must be above 0 and below 1", search.FalseAlarm)
	}
	highest := CyclesPerSample(mostTurns / (float64(cfg.Preamble.Length) * float64(cfg.SamplesPerSymbol)))
	if !(search.MaxOffset >= 0 && search.MaxOffset <= highest) {
		return nil, fmt.Errorf("a frequency offset of up to %v cycles a sample: a preamble of %d symbols takes 0 to %.2g", search.MaxOffset, cfg.Preamble.Length, highest)
	}
	d := &Detector{cfg: cfg, search: search, sequence: cfg.Preamble.sequence(), guard: cfg.Pulse.guard(cfg.SamplesPerSymbol)}
	d.layOut()
	d.to = len(d.tried)
	d.threshold = 2 / float64(cfg.Preamble.Length) * math.Log(4*float64(len(d.tried))/search.FalseAlarm)
	if d.threshold > mostThreshold {
		return nil, fmt.Errorf("a preamble of %d symbols is too short for a false-alarm probability of %v", cfg.Preamble.Length, search.FalseAlarm)
	}
	d.fine = newRefiner(cfg, d.sequence, search.MaxOffset > 0)
	return d, nil
}

// layOut lays out frequencies half a cycle a preamble apart: the one nearest to the truth
// loses at most 0.9 dB.
func (d *Detector) layOut() {
	length, sps := len(d.sequence), d.cfg.SamplesPerSymbol
	d.kernel = kernel.New(vector.Fastest())
	d.reversed = slices.Clone(d.sequence)
	slices.Reverse(d.reversed)
	for half := range d.half {
		first, end := d.halfSymbol(half)
		d.half[half] = slices.Repeat([]float32{1 / float32(end-first)}, end-first)
	}
	n := blockPreambles * (length + 1)
	d.y, d.turned, d.energy = make([]complex64, n), make([]complex64, n), make([]float64, n+1)
	d.score = make([]score, n-length+1)
	d.product = make([]complex64, len(d.score))
	period := float64(length * sps)
	side := int(math.Ceil(max(0, 2*float64(d.search.MaxOffset)*period-0.5)))
	for h := -side; h <= side; h++ {
		tried := hypothesis{offset: CyclesPerSample(0.5 * float64(h) / period)}
		if h != 0 {
			tried.back = make([]complex64, n)
			for k := range tried.back {
				tried.back[k] = complex64(cmplx.Rect(1, -2*math.Pi*float64(tried.offset)*float64(k*sps)))
			}
		}
		d.tried = append(d.tried, tried)
	}
}

// Threshold returns the least Sync.Quality of a preamble.
func (d *Detector) Threshold() float64 { return d.threshold }

// FirstNear is First for a capture in which the frequency offset is about what it was in
// another one: it is looked for there before it is looked for everywhere.
func (d *Detector) FirstNear(samples []complex64, offset CyclesPerSample) (Sync, error) {
	near := 0
	for h, tried := range d.tried {
		if math.Abs(float64(tried.offset-offset)) < math.Abs(float64(d.tried[near].offset-offset)) {
			near = h
		}
	}
	d.from, d.to = max(0, near-1), min(near+2, len(d.tried))
	s, err := d.first(samples)
	if err == nil || d.to-d.from == len(d.tried) {
		return s, err
	}
	return d.First(samples)
}

// First returns the first preamble of a capture, or ErrNoPreamble.
func (d *Detector) First(samples []complex64) (Sync, error) {
	d.from, d.to = 0, len(d.tried)
	return d.first(samples)
}

func (d *Detector) first(samples []complex64) (Sync, error) {
	var found []Sync
	d.scan(samples, func(s Sync) bool {
		found = append(found, s)
		return false
	})
	if len(found) == 0 {
		return Sync{}, ErrNoPreamble
	}
	return found[0], nil
}

// Find returns all preambles of a capture in their order; none is no error. Samples
// that are no numbers count as zeros.
func (d *Detector) Find(samples []complex64) []Sync {
	d.from, d.to = 0, len(d.tried)
	var found []Sync
	d.scan(samples, func(s Sync) bool {
		found = append(found, s)
		return true
	})
	return found
}

// candidate is the best score of the last half preamble.
type candidate struct {
	score
	symbol int
}

// scan calls yield for every preamble until it returns false.
func (d *Detector) scan(samples []complex64, yield func(Sync) bool) {
	length := len(d.sequence)
	total := len(samples) / d.cfg.SamplesPerSymbol
	var best candidate
	settle := func() bool {
		c := best
		best = candidate{}
		if c.quality == 0 {
			return true
		}
		s, ok := d.refine(samples, c)
		return !ok || yield(s)
	}
	for from := 0; from+length <= total; from += len(d.score) {
		scores := d.score[:min(len(d.score), total-length+1-from)]
		d.correlate(scores, samples, from, total)
		for k, s := range scores {
			if best.quality > 0 && from+k-best.symbol > length/2 && !settle() {
				return
			}
			if s.quality >= d.threshold && s.quality > best.quality {
				best = candidate{s, from + k}
			}
		}
	}
	settle()
}

// correlate fills the scores of symbols from on.
func (d *Detector) correlate(scores []score, samples []complex64, from, total int) {
	clear(scores)
	y := d.y[:len(scores)+len(d.sequence)-1]
	product := d.product[:len(scores)]
	for half := range 2 {
		d.means(y, samples, from, half)
		if d.energy[len(y)] == 0 {
			continue
		}
		for h := d.from; h < d.to; h++ {
			// Turned back by the frequency, the sequence's signs are all that is left.
			against := y
			if back := d.tried[h].back; back != nil {
				against = d.turned[:len(y)]
				for k, x := range y {
					against[k] = times(x, back[k])
				}
			}
			d.kernel.Convolve(product, against, d.reversed, 1)
			d.best(scores, half, h)
		}
	}
}

// best keeps in scores what the correlation in product is better at, if it passes the
// threshold.
func (d *Detector) best(scores []score, half, tried int) {
	length := len(d.sequence)
	// Differences of sums are no better than this; less energy is silence.
	floor := d.energy[len(scores)+length-1] * 1e-12
	later := d.energy[length:]
	for k, x := range d.product[:len(scores)] {
		re, im := float64(real(x)), float64(imag(x))
		energy := later[k] - d.energy[k]
		most := energy * float64(length)
		if p := float64(re*re) + float64(im*im); energy > floor && p > scores[k].quality*most && p >= d.threshold*most {
			scores[k] = score{p / most, half, tried}
		}
	}
}

// means fills y with the mean of the first or second half of each symbol period
// from a symbol on, and energy with the running sum of their powers.
func (d *Detector) means(y, samples []complex64, from, half int) {
	sps := d.cfg.SamplesPerSymbol
	first, _ := d.halfSymbol(half)
	taps := d.half[half]
	samples = samples[from*sps+first:]
	d.kernel.Correlate(y, samples, taps, sps)
	sum := 0.0
	for k, x := range y {
		if !valid(x) {
			x = validMean(samples[k*sps:k*sps+len(taps)], taps[0])
			y[k] = x
		}
		sum += power(complex128(x))
		d.energy[k+1] = sum
	}
}

// halfSymbol returns the samples of a half within its symbol.
func (d *Detector) halfSymbol(half int) (first, end int) {
	sps := d.cfg.SamplesPerSymbol
	if half == 0 {
		return 0, sps / 2
	}
	return sps / 2, sps
}

// validMean returns the mean of samples of which some are no numbers, and count as 0.
func validMean(samples []complex64, scale float32) complex64 {
	var re, im float32
	for _, x := range samples {
		if valid(x) {
			re += float32(real(x) * scale)
			im += float32(imag(x) * scale)
		}
	}
	return complex(re, im)
}

// refine turns a candidate into a Sync, if it stands a closer look.
func (d *Detector) refine(samples []complex64, c candidate) (Sync, bool) {
	first, end := d.halfSymbol(c.half)
	instant := Samples(c.symbol*d.cfg.SamplesPerSymbol) + Samples(first+end-1)/2
	s, ok := d.fine.refine(samples, instant, d.tried[c.tried].offset)
	// A preamble tells frequencies apart to one cycle over its length.
	blur := 1 / float64(len(d.sequence)*d.cfg.SamplesPerSymbol)
	if !ok || s.Quality < d.threshold || math.Abs(float64(s.Offset)) > float64(d.search.MaxOffset)+blur {
		return Sync{}, false
	}
	return d.framed(s), true
}

// framed returns a sequence's Sync as the frame's: the instant found is that of the
// sequence, and the guards lie around it.
func (d *Detector) framed(s Sync) Sync {
	sps := Samples(d.cfg.SamplesPerSymbol)
	s.Payload = s.Start + Samples(int(d.guard)+len(d.sequence))*sps
	s.Start -= Samples(d.guard) * sps
	return s
}

// settling is the number of symbols that Settle looks at.
const settling = 512

// Settle returns s moved to where the symbols that follow the preamble are flat, up
// to so many of them. It is for FlatTop and changes nothing with other pulses.
//
// The preamble shows the sum of the devices' pulses. With gains of both signs that
// may be flat, or strongest, on the edges of some device. The symbols of a frame,
// which devices choose independently, show the edges of each. The instant moves by
// whole samples, half a symbol at most, and only if that is significantly better;
// phase, amplitude and noise are then those of the preamble at the new instant; the
// frequency stays. A Sync of another capture that began alike serves as well. It
// allocates nothing.
func (d *Detector) Settle(samples []complex64, s Sync, symbols Symbols) Sync {
	n := min(int(symbols), settling)
	if !placed(s.Payload, n*d.cfg.SamplesPerSymbol) {
		return s
	}
	shift := Samples(d.fine.recv.settle(samples, s.Payload, n))
	if shift == 0 {
		return s
	}
	s.Start += shift
	s.Payload += shift
	sequence := s.Payload - Samples((int(d.guard)+len(d.sequence))*d.cfg.SamplesPerSymbol)
	if again, ok := d.fine.again(samples, sequence, s.Offset); ok {
		return d.framed(again)
	}
	return s
}
