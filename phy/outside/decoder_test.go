package outside

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"math/big"
	"math/bits"
	"math/cmplx"
	"os"
	"slices"
	"strings"
)

// Recording is a round's samples and what its metadata say (section 10).
type Recording struct {
	Samples []complex128
	Meta    Meta
}

// Meta is what of the metadata is needed.
type Meta struct {
	Global struct {
		Datatype string   `json:"core:datatype"`
		Scale    float64  `json:"ringwave:scale"`
		Primes   []uint64 `json:"ringwave:primes"`
		Format   int      `json:"ringwave:frame_format"`
		Frames   struct {
			Run, Devices, Base int
			Group              int `json:"group_size"`
			BlockSymbols       int `json:"block_symbols"`
			Coefficients       []int
			S                  int `json:"samples_per_symbol"`
			R                  int `json:"preamble_symbols"`
			Pulse              string
			Edge               float64  `json:"edge_samples"`
			Tolerance          float64  `json:"tolerance_samples"`
			RollOff            float64  `json:"roll_off"`
			Span               int      `json:"span_symbols"`
			Level              float64  `json:"digit_level"`
			Phase              *float64 `json:"common_phase"`
		} `json:"ringwave:frames"`
	}
	Annotations []Annotation
}

// Annotation is about a frame or a transmission.
type Annotation struct {
	Start   int     `json:"core:sample_start"`
	Count   int     `json:"core:sample_count"`
	Label   string  `json:"core:label"`
	Comment string  `json:"core:comment"`
	Round   uint32  `json:"ringwave:round"`
	Attempt uint16  `json:"ringwave:attempt"`
	Again   int     `json:"ringwave:again"`
	Phase   string  `json:"ringwave:phase"`
	Group   int     `json:"ringwave:group"`
	Alpha   float64 `json:"ringwave:alpha"`
	Factors []int64 `json:"ringwave:group_factors"`
}

// ReadRecording reads NAME.sigmf-meta and NAME.sigmf-data.
func ReadRecording(name string) (*Recording, error) {
	text, err := os.ReadFile(name + ".sigmf-meta")
	if err != nil {
		return nil, err
	}
	r := &Recording{}
	if err := json.Unmarshal(text, &r.Meta); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name + ".sigmf-data")
	if err != nil {
		return nil, err
	}
	switch r.Meta.Global.Datatype {
	case "cf32_le":
		for ; len(data) >= 8; data = data[8:] {
			r.Samples = append(r.Samples, complex(float(data), float(data[4:])))
		}
	case "ci16_le":
		for ; len(data) >= 4; data = data[4:] {
			re, im := int16(binary.LittleEndian.Uint16(data)), int16(binary.LittleEndian.Uint16(data[2:]))
			r.Samples = append(r.Samples, complex(float64(re), float64(im))*complex(r.Meta.Global.Scale, 0))
		}
	case "ci8":
		for ; len(data) >= 2; data = data[2:] {
			r.Samples = append(r.Samples, complex(float64(int8(data[0])), float64(int8(data[1])))*complex(r.Meta.Global.Scale, 0))
		}
	default:
		return nil, fmt.Errorf("samples of type %s", r.Meta.Global.Datatype)
	}
	return r, nil
}

func float(b []byte) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

// Header is a frame's (section 8).
type Header struct {
	Run     uint16
	Round   uint32
	Attempt uint16
	Tx      int
	Again   int
	Group   int
	Repeat  int
}

// Frame is what was read of one.
type Frame struct {
	Header
	At      float64   // of the sequence's first symbol's centre, in the recording
	Soft    []float64 // behind the header: pattern and payload
	Pattern int       // symbols
}

// exponents are those of section 8.
var exponents = map[int][]int{5: {0, 2}, 6: {0, 1}, 7: {0, 1}, 8: {0, 2, 3, 4}, 9: {0, 4}, 10: {0, 3}, 11: {0, 2}, 12: {0, 1, 4, 6}}

// Sequence returns the preamble's symbols, guards excluded (section 8).
func Sequence(length int) []float64 {
	m := bits.Len(uint(length))
	bit := make([]int, length)
	bit[0] = 1
	for k := m; k < length; k++ {
		for _, e := range exponents[m] {
			bit[k] ^= bit[k-m+e]
		}
	}
	s := make([]float64, length)
	for k, b := range bit {
		s[k] = float64(1 - 2*b)
	}
	return s
}

// held is what the first frame of an attempt settles: where its sequence is
// behind the beginning of the frame.
type held struct {
	attempt uint16
	first   float64
}

// decoder has what does not change from frame to frame.
type decoder struct {
	*Recording
	sequence []float64
	cyclic   int
	window   int // W
	q        *big.Int
	digits   int          // L
	checks   int          // C
	held     map[int]held // of a group's attempt
	starts   []int        // of the frames, as annotations say
}

func newDecoder(r *Recording) (*decoder, error) {
	f := r.Meta.Global.Frames
	if f.Pulse != "flat-top" && f.Pulse != "root-raised-cosine" {
		return nil, fmt.Errorf("pulse %q", f.Pulse)
	}
	d := &decoder{Recording: r, sequence: Sequence(f.R), cyclic: 3, q: big.NewInt(1), held: map[int]held{}}
	if f.Pulse != "flat-top" {
		d.cyclic = f.Span/2 + 2
	}
	for _, a := range r.Meta.Annotations {
		if a.Label == "frame" {
			d.starts = append(d.starts, a.Start)
		}
	}
	tolerance := f.Tolerance
	if tolerance == 0 {
		tolerance = f.Edge
	}
	d.window = int(math.Floor(float64(f.S) - 2*f.Edge - tolerance))
	least := uint64(math.MaxUint64)
	for _, p := range r.Meta.Global.Primes {
		d.q.Mul(d.q, new(big.Int).SetUint64(p))
		least = min(least, p)
	}
	for power := big.NewInt(1); power.Cmp(d.q) < 0; power.Mul(power, big.NewInt(int64(f.Base))) {
		d.digits++
	}
	for sound := 1.0; sound < math.Exp2(40); sound *= float64(least) {
		d.checks++
	}
	return d, nil
}

// correlation returns c and M at sample t (section 9).
func (d *decoder) correlation(t int) (c complex128, m float64) {
	energy, step := 0.0, d.Meta.Global.Frames.S
	for k, s := range d.sequence {
		y := d.Samples[t+k*step]
		c += complex(s, 0) * y
		energy += real(y)*real(y) + imag(y)*imag(y)
	}
	if energy == 0 {
		return 0, 0
	}
	return c, (real(c)*real(c) + imag(c)*imag(c)) / (float64(len(d.sequence)) * energy)
}

// next finds the first sequence from sample t on, -1 if there is none.
func (d *decoder) next(t int) int {
	s := d.Meta.Global.Frames.S
	span := (len(d.sequence) - 1) * s
	limit := 2 / float64(len(d.sequence)) * math.Log(4e9)
	best, at := limit, -1
	for ; t+span < len(d.Samples); t++ {
		if _, m := d.correlation(t); m > best {
			best, at = m, t
		}
		if at >= 0 && t > at+2*s {
			break
		}
	}
	return at
}

// response returns n values of the composite response from sample t on, with the given
// offset to the sequence's symbols (section 9).
func (d *decoder) response(t, n int, offset float64) []complex128 {
	r := make([]complex128, n)
	for i := range r {
		for k, v := range d.sequence {
			if at := t + i + k*d.Meta.Global.Frames.S; at >= 0 && at < len(d.Samples) {
				r[i] += complex(v+offset, 0) * d.Samples[at]
			}
		}
	}
	return r
}

func power(x complex128) float64 { return real(x)*real(x) + imag(x)*imag(x) }

// peak returns the instant of the sequence's first symbol, of root-raised-cosine pulses: to
// a 64th of a sample, that at which the filtered response is largest.
func (d *decoder) peak(at int) float64 {
	f := d.Meta.Global.Frames
	reach := (f.Span*f.S+1)/2 + 2*f.S
	r := d.response(at-reach, 2*reach+1, 0)
	best, most := 0.0, 0.0
	for step := -48 * f.S; step <= 48*f.S; step++ {
		t := float64(step) / 64
		if z := filter(r, float64(reach)+t, f.S, f.Span, f.RollOff); power(z) > most {
			best, most = t, power(z)
		}
	}
	return float64(at) + best
}

// place returns the first sample of the sequence's first symbol's window (section 9).
func (d *decoder) place(at int) int {
	s, w := d.Meta.Global.Frames.S, d.window
	lowest := at - s/2 - w/2
	r := d.response(lowest-s, 3*s+w+1, -1)
	blemish, energy, most := make([]float64, s+1), make([]float64, s+1), 0.0
	for k := range blemish {
		var mean complex128
		for n := range w {
			mean += r[s+k+n] / complex(float64(w), 0)
		}
		for n := range w {
			blemish[k] += power(r[s+k+n]-mean) + power(r[k+n]) + power(r[2*s+k+n])
		}
		energy[k] = float64(w) * power(mean)
		most = max(most, energy[k])
	}
	best := 0
	for k := range blemish {
		blemish[k] += 0.05 * (most - energy[k])
		if blemish[k] < blemish[best] {
			best = k
		}
	}
	limit, from, to := blemish[best]*(1+4/math.Sqrt(3*float64(w))), best, best
	for from > 0 && blemish[from-1] <= limit {
		from--
	}
	for to < s && blemish[to+1] <= limit {
		to++
	}
	return lowest + (from+to)/2
}

// settled returns by how many samples windows are to move to be where the payload's symbols
// are flat, the first of them beginning at a sample (section 9).
func (d *decoder) settled(first int) int {
	s, w := d.Meta.Global.Frames.S, float64(d.window)
	if d.window < 2 {
		return 0
	}
	n := 2*(s/2) + 1
	deviation, gain, square, strength := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	symbols, most := 0.0, 0.0
	for k := 0; k < 512 && first+k*s+s/2+d.window <= len(d.Samples); k++ {
		one := make([]float64, n)
		for m := range one {
			var sum complex128
			for _, x := range d.Samples[first+k*s-s/2+m:][:d.window] {
				sum += x
				one[m] += power(x)
			}
			one[m] -= power(sum) / w
			strength[m] += power(sum) / w
		}
		for m, v := range one {
			deviation[m] += v
			gain[m] += one[s/2] - v
			square[m] += (one[s/2] - v) * (one[s/2] - v)
		}
		symbols++
	}
	for _, p := range strength {
		most = max(most, p)
	}
	best := s / 2
	for m, v := range deviation {
		if v < deviation[best] && strength[m] >= 0.75*most {
			best = m
		}
	}
	variance := square[best] - gain[best]*gain[best]/symbols
	if gain[best]*gain[best] <= 16*variance || deviation[s/2] < 1.25*deviation[best]+1e-7*most {
		return 0
	}
	return best - s/2
}

// placed returns by how many samples the windows of n symbols, the first of them centred at
// an instant, are to move to be where the whole frame is flat (section 9).
func (d *decoder) placed(at float64, n int) int {
	const reach = 2
	if d.window < 2 || d.Meta.Global.Frames.Pulse != "flat-top" {
		return 0
	}
	first := int(math.Round(at - float64(d.window-1)/2))
	spread := func(at int) (v, p float64) {
		var sum complex128
		for _, x := range d.Samples[at:][:d.window] {
			sum += x
			p += power(x)
		}
		w := float64(d.window)
		return (p - power(sum)/w) / w, p / w
	}
	var some []float64
	for i := range 31 {
		v, _ := spread(first + n*i/31*d.Meta.Global.Frames.S)
		some = append(some, v)
	}
	slices.Sort(some)
	var sum [2*reach + 1]float64
	windows, strength := 0.0, 0.0
	for k := 0; k < n; k += max(1, n/1024) {
		at := first + k*d.Meta.Global.Frames.S
		if v, _ := spread(at); v > 16*some[len(some)/2] {
			continue
		}
		for m := range sum {
			v, p := spread(at + m - reach)
			sum[m] += v
			strength += p
		}
		windows++
	}
	best := 0
	for m, v := range sum {
		if v < sum[best] {
			best = m
		}
	}
	flat := func(m int) bool {
		return m >= 0 && m < len(sum) && sum[m] <= 4*sum[best]+5e-4*strength/float64(len(sum))
	}
	from, to := best, best
	for flat(from - 1) {
		from--
	}
	for flat(to + 1) {
		to++
	}
	return int(math.Floor(float64(from+to)/2)) - reach
}

// symbol returns the complex symbol that is centred at t.
func (d *decoder) symbol(t float64) (z complex128) {
	f := d.Meta.Global.Frames
	if f.Pulse != "flat-top" {
		return filter(d.Samples, t, f.S, f.Span, f.RollOff)
	}
	first := int(math.Round(t - float64(d.window-1)/2))
	for _, x := range d.Samples[first : first+d.window] {
		z += x
	}
	return z / complex(float64(d.window), 0)
}

// filter applies a root-raised-cosine pulse at the instant t of x.
func filter(x []complex128, t float64, s, span int, rollOff float64) (z complex128) {
	half := float64(span*s+1) / 2
	energy := 0.0
	for i := int(math.Ceil(t - half)); i <= int(math.Floor(t+half)); i++ {
		from := float64(i) - t
		p := pulse(from/float64(s), rollOff) * min(1, half-math.Abs(from))
		energy += p * p
		if i >= 0 && i < len(x) {
			z += complex(p, 0) * x[i]
		}
	}
	return z / complex(energy, 0)
}

// pulse is the root-raised-cosine one of section 9; where it is 0/0 it is taken a little
// beside.
func pulse(u, b float64) float64 {
	if den := u * (1 - 16*b*b*u*u); math.Abs(den) < 1e-9 {
		u += 1e-6
	}
	x := 4 * b * u
	return (math.Sin(math.Pi*u*(1-b)) + x*math.Cos(math.Pi*u*(1+b))) / (math.Pi * u * (1 - x*x))
}

// Frames finds and demodulates all frames of a recording.
func Frames(r *Recording) ([]Frame, *decoder, error) {
	d, err := newDecoder(r)
	if err != nil {
		return nil, nil, err
	}
	var frames []Frame
	for t := 0; ; {
		at := d.next(t)
		if at < 0 {
			return frames, d, nil
		}
		instant := 0.0
		if r.Meta.Global.Frames.Pulse == "flat-top" {
			first := d.place(at)
			first += d.settled(first + (len(d.sequence)+d.cyclic)*r.Meta.Global.Frames.S)
			instant = float64(first) + float64(d.window-1)/2
		} else {
			instant = d.peak(at)
		}
		f, err := d.frame(instant)
		if err != nil {
			return frames, d, fmt.Errorf("the frame at sample %d: %w", at, err)
		}
		frames = append(frames, f)
		t = at + (len(d.sequence)+2*d.cyclic+128+len(f.Soft))*r.Meta.Global.Frames.S
	}
}

// frame reads the soft symbols of a frame whose sequence's first symbol is at an instant.
func (d *decoder) frame(at float64) (f Frame, err error) {
	p := d.Meta.Global.Frames
	var sum complex128
	for k, s := range d.sequence {
		sum += complex(s, 0) * d.symbol(at+float64(k*p.S))
	}
	begin := at + float64((len(d.sequence)+d.cyclic)*p.S)
	phase := cmplx.Phase(sum)
	if f.Header, err = header(d.soft(begin, 128, phase), d.Meta.Global.Format); err != nil {
		return f, err
	}
	if f.Tx >= len(p.Coefficients) || f.Group*p.Group >= p.Devices {
		return f, fmt.Errorf("header %+v", f.Header)
	}
	start := at // of the frame
	for _, s := range d.starts {
		if float64(s) < at {
			start = float64(s)
		}
	}
	h, ok := d.held[f.Group]
	if !ok || h.attempt != f.Attempt || f.Tx == 0 && f.Repeat == 0 {
		h = held{f.Attempt, at - start}
		d.held[f.Group] = h
	}
	size := min(p.Group, p.Devices-f.Group*p.Group)
	f.Pattern = 64 * ((size + 63) / 64)
	n := p.Coefficients[f.Tx]
	perBlock := d.perBlock()
	blocks := (n + perBlock - 1) / perBlock
	symbols := f.Pattern + (n+d.checks*blocks)*d.digits
	shift := h.first - (at - start)
	near := math.Abs(shift) <= 2
	if !near {
		shift = 0
	}
	if p.Phase != nil {
		phase = *p.Phase
	} else if !near || f.Tx == 0 {
		moved := float64(d.placed(begin+shift, 128+symbols))
		shift += moved
		if f.Tx == 0 {
			h.first += moved
			d.held[f.Group] = h
		}
	}
	at, begin = at+shift, begin+shift
	f.At = at
	f.Soft = d.soft(begin+float64(128*p.S), symbols, phase)
	return f, nil
}

// perBlock returns K.
func (d *decoder) perBlock() int { return max(1, d.Meta.Global.Frames.BlockSymbols/d.digits) }

func (d *decoder) soft(at float64, n int, theta float64) []float64 {
	y := make([]float64, n)
	turn := cmplx.Rect(1/d.Meta.Global.Frames.Level, -theta)
	for k := range y {
		y[k] = real(d.symbol(at+float64(k*d.Meta.Global.Frames.S)) * turn)
	}
	return y
}

// header reads a header from the signs of its symbols (section 8).
func header(y []float64, format int) (h Header, err error) {
	var b [16]byte
	for i, v := range y {
		if v < 0 != (format >= 3 && i%2 == 1) {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	if crc32.Checksum(b[:12], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(b[12:]) {
		return h, fmt.Errorf("a header with a wrong CRC-32C: %x", b)
	}
	u16 := func(i int) uint16 { return binary.BigEndian.Uint16(b[i:]) }
	return Header{
		Run: u16(0), Round: binary.BigEndian.Uint32(b[2:]), Attempt: u16(6), Tx: int(b[8]) % 4, Again: int(b[8]) / 4,
		Group: int(u16(9)), Repeat: int(b[11]),
	}, nil
}

// Elements returns sum H_i x_i mod q of a frame read at alpha, and the integer pattern.
func (d *decoder) Elements(f Frame, alpha float64) (y []*big.Int, pattern []int64) {
	n, perBlock := d.Meta.Global.Frames.Coefficients[f.Tx], d.perBlock()
	soft, skip := f.Soft, f.Pattern // of the first block
	for from := 0; from < n; from += perBlock {
		k := min(perBlock, n-from)
		length := skip + (k+d.checks)*d.digits
		integers := Integers(soft[:length], alpha)
		if skip > 0 {
			pattern = integers[:skip]
		}
		for c := range k {
			y = append(y, d.join(integers[skip+c*d.digits:][:d.digits]))
		}
		soft, skip = soft[length:], 0
	}
	return y, pattern
}

// join returns sum_l B^l y_l mod q, lowest digit first (sections 2 and 8).
func (d *decoder) join(digits []int64) *big.Int {
	x, base := new(big.Int), big.NewInt(int64(d.Meta.Global.Frames.Base))
	for l := len(digits) - 1; l >= 0; l-- {
		x.Mul(x, base).Add(x, big.NewInt(digits[l]))
	}
	return x.Mod(x, d.q)
}

// Digest is that of section 10.
func (d *decoder) Digest(y []*big.Int) string {
	h := sha256.New()
	for _, p := range d.Meta.Global.Primes {
		prime := new(big.Int).SetUint64(p)
		for _, x := range y {
			h.Write(binary.LittleEndian.AppendUint64(nil, new(big.Int).Mod(x, prime).Uint64()))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Integers reads a block of soft symbols at a scale (section 11).
func Integers(y []float64, alpha float64) []int64 {
	out := make([]int64, len(y))
	clear := true
	for k, v := range y {
		x := math.RoundToEven(alpha * v)
		out[k] = int64(x)
		clear = clear && math.Abs(alpha*v-x) < 0.4
	}
	if clear {
		return out
	}
	c := newComb(y)
	if c == nil || !c.serves(alpha) {
		return out
	}
	for k, v := range y {
		bin := int(math.Abs(v)/c.width + 0.5)
		x := int64(math.RoundToEven(alpha * c.width * c.centre[c.tooth[bin]]))
		if v < 0 {
			x = -x
		}
		out[k] = x
	}
	return out
}

// bins is the resolution of a block's density.
const bins = 1024

// comb is the teeth of a block's density, in bins.
type comb struct {
	width          float64
	tooth          []int // of each bin
	centre, spread []float64
}

func newComb(y []float64) *comb {
	largest := 0.0
	for _, v := range y {
		largest = max(largest, math.Abs(v))
	}
	if largest == 0 {
		return nil
	}
	c := &comb{width: largest / bins, tooth: make([]int, bins+1)}
	count := make([]float64, bins+1)
	for _, v := range y {
		bin := int(math.Abs(v)/c.width + 0.5)
		count[bin]++
		if bin == 0 {
			count[0]++
		}
	}
	sigma := noise(count, float64(len(y)))
	a := int(0.7*sigma + 0.5)
	smooth := box(box(count, a), a)
	peaks := peaks(smooth, float64(2*a+1), len(y))
	first := 0
	for i, p := range peaks {
		last := bins
		if i+1 < len(peaks) {
			last = valley(smooth, p, peaks[i+1])
		}
		c.add(count, first, last, sigma)
		first = last + 1
	}
	return c
}

// noise bounds the deviation of a block's noise, in bins.
func noise(count []float64, n float64) float64 {
	const step = 1.0 / (4 * bins) // turns a bin
	phi := make([]float64, 3*bins/2)
	for k := range phi {
		t := float64(k) * step
		phi[k] = -count[0] / 2 // which counts twice there
		for j, m := range count {
			phi[k] += m * math.Cos(2*math.Pi*t*float64(j))
		}
		if phi[k] /= n; k > 0 { // what a bin's width takes
			phi[k] *= math.Pi * t / math.Sin(math.Pi*t)
		}
	}
	floor, least := max(0.1, min(0.7, 6/math.Sqrt(2*n))), float64(bins)
	for k := 1; k < len(phi)-1; k++ {
		p, t := math.Abs(phi[k]), float64(k)*step
		if p >= floor && p >= math.Abs(phi[k-1]) && p >= math.Abs(phi[k+1]) {
			least = min(least, math.Sqrt(-math.Log(min(p, 1))/2)/(math.Pi*t))
		}
	}
	return max(least, math.Sqrt(1.0/12))
}

func box(x []float64, a int) []float64 {
	out := make([]float64, len(x))
	for j := range x {
		for i := j - a; i <= j+a; i++ {
			if k := max(i, -i); k < len(x) {
				out[j] += x[k]
			}
		}
	}
	return out
}

func peaks(smooth []float64, length float64, symbols int) (found []int) {
	gain := 6 * length
	if symbols < 256 {
		gain = 2.0 / 3 * length
	}
	rising, at, top, bottom := true, 0, smooth[0], 0.0
	for j, v := range smooth {
		switch {
		case rising && v >= top:
			top, at = v, j
		case rising && v < top-math.Sqrt(gain*top):
			found, rising, bottom = append(found, at), false, v
		case !rising && v <= bottom:
			bottom = v
		case !rising && v > bottom+math.Sqrt(gain*(bottom+length)):
			rising, top, at = true, v, j
		}
	}
	if rising {
		found = append(found, at)
	}
	return found
}

func valley(smooth []float64, from, to int) int {
	best, middle := from, (from+to)/2
	away := func(j int) int { return max(j-middle, middle-j) }
	for j := from; j < to; j++ {
		if smooth[j] < smooth[best] || smooth[j] == smooth[best] && away(j) < away(best) {
			best = j
		}
	}
	return best
}

// add makes a tooth of the bins from first to last.
func (c *comb) add(count []float64, first, last int, sigma float64) {
	weight, sum, square := 0.0, 0.0, 0.0
	for j := first; j <= last; j++ {
		c.tooth[j] = len(c.centre)
		weight += count[j]
		sum += count[j] * float64(j)
		square += count[j] * float64(j) * float64(j)
	}
	centre, spread := 0.0, 0.0
	if weight > 0 {
		if first > 0 {
			centre = sum / weight
		}
		own := (sigma*sigma + 1.0/12) * (1 + 3*math.Sqrt(2/weight))
		spread = math.Sqrt(max(0, square/weight-centre*centre-own))
	}
	c.centre, c.spread = append(c.centre, centre), append(c.spread, spread)
}

// serves reports whether no tooth comes near a boundary between integers.
func (c *comb) serves(alpha float64) bool {
	for i, centre := range c.centre {
		x := alpha * c.width * centre
		if math.Abs(x-math.RoundToEven(x))+1.25*alpha*c.width*c.spread[i] > 0.48 {
			return false
		}
	}
	return true
}

// Decode returns what was received in the transmission of an annotation, all groups and
// repeats of it, as a digest.
func Decode(d *decoder, frames []Frame, a Annotation) (string, error) {
	tx := map[string]int{"b": 0, "c0": 1, "c1": 2, "D": 3}[a.Phase]
	p := d.Meta.Global.Frames
	n := p.Coefficients[tx]
	total := make([]*big.Int, n)
	for k := range total {
		total[k] = new(big.Int)
	}
	for g := range (p.Devices + p.Group - 1) / p.Group {
		var soft []Frame
		for _, f := range frames {
			if f.Round == a.Round && f.Attempt == a.Attempt && f.Tx == tx && f.Again == a.Again && f.Group == g {
				soft = append(soft, f)
			}
		}
		alpha := d.alpha(a, g)
		if len(soft) == 0 || alpha == 0 || g >= len(a.Factors) {
			return "", fmt.Errorf("group %d: %d frames, alpha %v, factors %v", g, len(soft), alpha, a.Factors)
		}
		y, _ := d.Elements(mean(soft), alpha)
		for k, x := range y {
			total[k].Add(total[k], new(big.Int).Mul(x, big.NewInt(a.Factors[g])))
		}
	}
	for _, x := range total {
		x.Mod(x, d.q)
	}
	return d.Digest(total), nil
}

// alpha returns the scale at which a group's frame of a transmission was read.
func (d *decoder) alpha(a Annotation, group int) float64 {
	for _, f := range d.Meta.Annotations {
		if f.Label == "frame" && f.Round == a.Round && f.Attempt == a.Attempt && f.Phase == a.Phase && f.Again == a.Again && f.Group == group && f.Alpha > 0 {
			return f.Alpha
		}
	}
	return 0
}

// mean combines the repeats of a frame.
func mean(frames []Frame) Frame {
	f := frames[0]
	f.Soft = append([]float64(nil), f.Soft...)
	for _, again := range frames[1:] {
		for k, v := range again.Soft {
			f.Soft[k] += v
		}
	}
	for k := range f.Soft {
		f.Soft[k] /= float64(len(frames))
	}
	return f
}

// Want returns the digest that an annotation says, or "" where nothing was read.
func Want(a Annotation) string {
	digest, ok := strings.CutPrefix(a.Comment, "sha256 ")
	if !ok {
		return ""
	}
	return digest
}

// Geometry returns when, behind its beginning, the preamble's sequence begins, and how many
// samples a frame has, guards included (sections 8 and 9).
func Geometry(r *Recording, f Frame) (first float64, window int) {
	p := r.Meta.Global.Frames
	half, cyclic := float64(p.S)/2, 3
	if p.Pulse != "flat-top" {
		half, cyclic = float64(p.Span*p.S+1)/2, p.Span/2+2
	}
	d := math.Ceil(half) + float64(p.S)
	tail := int(math.Ceil((d+half)/float64(p.S))) + 1
	return float64((24+cyclic)*p.S) + d, (24 + cyclic + p.R + cyclic + 128 + len(f.Soft) + tail + 24) * p.S
}
