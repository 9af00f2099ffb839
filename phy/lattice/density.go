package lattice

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// density is the histogram of |y| of one block and its characteristic function.
// Digits have zero mean and are as often d as -d, so the sign of y says nothing
// about the lattice; folding it away doubles the counts and makes the transform
// real.
//
// All is in units of a bin's width w = peak/bins, so that nothing depends on the
// receiver's gain. The transform has padding*bins + 1 points, turn_k =
// k/(2 padding bins) per bin: the zeros beyond the peak resolve phi, whose
// features are no narrower than half a turn over the whole range.
type density struct {
	bins    int
	width   float64 // w, in units of y
	inverse float64 // 1/w
	n       float64 // symbols

	dct    *fourier.DCT
	index  []int32   // of each symbol: bins + its signed bin
	signed []int32   // symbols a signed bin
	count  []float64 // folded; bin 0 counts twice, as it is half as wide
	phi    []float64 // the first len(window) points: phi at turn_k
	window []float64 // 1/sinc: what a bin's width takes from phi
}

// padding is the ratio of the transform's length to the occupied bins. Twice the
// range puts two to three points across a peak of phi; the teeth then refine the
// scale, and twice as many points found no more blocks.
const padding = 2

// maxTurn is the highest frequency used, in turns a bin. A histogram's bins
// alias 1-turn to turn with weight sinc(1-turn), which at 3/8 is half the weight
// of what is sought, and what is aliased has the noise's factor at 5/8.
const maxTurn = 0.375

func newDensity(bins int) *density {
	length := padding*bins + 1
	d := &density{
		bins:   bins,
		dct:    fourier.NewDCT(length),
		signed: make([]int32, 2*bins+1),
		count:  make([]float64, length),
		phi:    make([]float64, length),
		window: make([]float64, int(maxTurn*2*padding*float64(bins))+1),
	}
	for k := range d.window {
		d.window[k] = 1
		if x := math.Pi * d.turn(k); x > 0 {
			d.window[k] = x / math.Sin(x)
		}
	}
	return d
}

// turn returns the frequency of point k of the transform, in turns a bin.
func (d *density) turn(k int) float64 { return float64(k) / float64(2*padding*d.bins) }

// load takes in a block of at least one symbol and notes the bin of each.
func (d *density) load(y []float32) error {
	peak, varies := extent(y)
	if math.IsNaN(peak) || math.IsInf(peak, 0) {
		return ErrNotFinite
	}
	if !varies || peak == 0 {
		return ErrNoSignal
	}
	d.grow(len(y))
	d.n = float64(len(y))
	d.width = peak / float64(d.bins)
	d.inverse = 1 / d.width
	clear(d.signed)
	zero := float64(d.bins) + 0.5
	index := d.index[:len(y)]
	for k, v := range y {
		i := int32(float64(v)*d.inverse + zero)
		index[k] = i
		d.signed[i]++
	}
	d.fold()
	return nil
}

func (d *density) grow(n int) {
	if n > len(d.index) {
		d.index = make([]int32, n)
	}
}

// fold adds the bins of y and -y.
func (d *density) fold() {
	clear(d.count)
	for j := range d.bins + 1 {
		d.count[j] = float64(d.signed[d.bins+j] + d.signed[d.bins-j])
	}
}

// transform computes phi.
func (d *density) transform() {
	d.dct.Transform(d.phi, d.count)
	for k, g := range d.window {
		d.phi[k] *= g / (2 * d.n)
	}
}

// extent returns the largest |y|, NaN or Inf if there is one, and whether not all
// symbols are the same. Without their signs, floats are ordered as their bits.
func extent(y []float32) (peak float64, varies bool) {
	const magnitude = 1<<31 - 1
	first := math.Float32bits(y[0])
	largest, differ := uint32(0), uint32(0)
	for _, v := range y {
		b := math.Float32bits(v)
		largest = max(largest, b&magnitude)
		differ |= b ^ first
	}
	return float64(math.Float32frombits(largest)), differ != 0
}

// noiseBound returns an upper bound on the standard deviation of the noise, in
// bins. Whatever the digits and gains, |phi| is at most the noise's own factor
// exp(-2 pi^2 t^2 sigma^2); as the digits' factor comes near 1 somewhere, the
// best of these bounds is close: at N = 2 to 4 it was 0 % to 50 % too high, and
// twice the noise where the gains are nearly equal (sigma = 0.05, N = 4).
func (d *density) noiseBound() float64 {
	floor := math.Max(0.1, math.Min(0.7, 6/math.Sqrt(2*d.n)))
	bound := math.Inf(1)
	for k := 1; k < len(d.window)-1; k++ {
		p := math.Abs(d.phi[k])
		if p < floor || p < math.Abs(d.phi[k-1]) || p < math.Abs(d.phi[k+1]) {
			continue
		}
		t := d.turn(k)
		bound = math.Min(bound, -math.Log(math.Min(p, 1))/(t*t))
	}
	if math.IsInf(bound, 1) {
		// phi falls to the floor at once and stays there: no lattice. The spread
		// that the bins can hold is bound enough.
		return float64(d.bins)
	}
	return math.Max(math.Sqrt(bound/2)/math.Pi, binNoise)
}

// binNoise is the deviation within a bin, sqrt(1/12), below which bins do not show the
// noise. The bound can come out as 0 where it is not: symbols that a converter has put on
// a lattice of its own have |phi| = 1 at that lattice's frequency.
const binNoise = 0.2886751345948129
