package uplink

import (
	"cmp"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// The most that is kept of a frame for plots.
const (
	viewSamples = 1 << 16
	viewSymbols = 1 << 13
	viewPhases  = 256
	viewRounds  = 1 << 14
)

// Viewer is shown what a link receives while it does. It must not hold the link up.
type Viewer interface {
	// Record takes in what the receiver has read, between frames, too.
	radio.Sink
	// WantsFrame reports whether it would take a frame now; Frame takes one. Look returns
	// how it is drawn: at any later time, from any goroutine.
	WantsFrame() bool
	Frame(look func() chart.LinkView)
}

// show shows a frame to who wants to see one.
func (l *Receiving) show(o phy.Observation) {
	if l.Viewer == nil || !l.Viewer.WantsFrame() {
		return
	}
	v := new(frameView)
	v.keep(o)
	l.Viewer.Frame(func() chart.LinkView { return l.look(v) })
}

// FrameLook returns how a frame is drawn that a receiver of a configuration had: at any later
// time, from any goroutine.
func FrameLook(c config.Config, receiving phy.WaveformConfig, o phy.Observation) func() chart.LinkView {
	l := &Receiving{receiving: receiving, sampleRate: c.Link.SampleRateHz, samplesPerSymbol: c.Link.SamplesPerSymbol}
	v := new(frameView)
	v.keep(o)
	return func() chart.LinkView { return l.look(v) }
}

// Record shows what the receiver reads: radio.Sink.
func (s shown) Record(samples []complex64, meta radio.Meta) error {
	if s.link.Viewer == nil {
		return nil
	}
	return s.link.Viewer.Record(samples, meta)
}

// shown is what a receiver reads, on its way to the viewer that its link has by then.
type shown struct{ link *Receiving }

// waveView is what is kept of a run for plots: the last frame of b that was read, where a
// round's scale is found, the last frame that was not, and the gains of rounds.
type waveView struct {
	read, lost frameView
	gains      chart.RoundGains
}

// frameView is a frame.
type frameView struct {
	there   bool
	slot    slot.Slot
	group   int
	repeat  int
	failure string
	samples []complex64 // from the frame's beginning on
	sync    modem.Sync
	begins  int // where in the capture samples begin
	symbols []complex64
	seen    []float64 // phases that stretches of symbols show, evenly apart
	phases  []float64 // as they were tracked there; empty where they were held
	apart   int       // symbols from one to the next
	soft    []float32
	alpha   float64
	floor   float64 // power in the silence around it
}

// keep takes a frame in.
func (v *waveView) keep(o phy.Observation) {
	switch {
	case o.Failure != "":
		v.lost.keep(o)
	case o.Group == 0 && o.Slot.Transmission == slot.TxKey:
		v.read.keep(o)
	}
}

// keepGains takes a round's gains in.
func (v *waveView) keepGains(k int, scaled []float64, alpha float64) {
	g := &v.gains
	if n := len(g.Rounds); !(alpha > 0) || n == viewRounds || n > 0 && g.Rounds[n-1] >= k {
		return
	}
	row := make([]float64, len(scaled))
	for i, h := range scaled {
		row[i] = h / alpha
	}
	g.Rounds, g.Gains = append(g.Rounds, k), append(g.Gains, row)
}

func (v *frameView) keep(o phy.Observation) {
	v.there, v.slot, v.group, v.repeat, v.failure, v.sync, v.alpha = true, o.Slot, o.Group, o.Repeat, o.Failure, o.Sync, o.Alpha
	v.begins = min(max(0, int(o.Sync.Start)), len(o.Samples))
	samples := o.Samples[v.begins:]
	v.samples = append(v.samples[:0], samples[:min(len(samples), viewSamples)]...)
	v.soft = append(v.soft[:0], o.Soft[:min(len(o.Soft), viewSymbols)]...)
	v.floor = floorOf(o.Samples, o.Guard/2)
	v.keepSymbols(o)
	v.keepPhase(o)
}

// keepPhase keeps how the phase moves along a frame.
func (v *frameView) keepPhase(o phy.Observation) {
	v.phases, v.seen = v.phases[:0], v.seen[:0]
	v.apart = max(16, len(o.Symbols)/viewPhases)
	last := 0.0
	for k := 0; k+v.apart <= len(o.Symbols); k += v.apart {
		var squares complex128
		for _, z := range o.Symbols[k : k+v.apart] {
			squares += complex128(z * z)
		}
		angle := cmplx.Phase(squares) / 2
		last += math.Remainder(angle-last, math.Pi)
		tracked := float64(o.Phase(k + v.apart/2))
		v.seen = append(v.seen, last+tracked)
		if o.Report.Tracked {
			v.phases = append(v.phases, tracked)
		}
	}
}

// keepSymbols keeps complex symbols, as large as the soft ones, which are the last of them.
func (v *frameView) keepSymbols(o phy.Observation) {
	scale := 0.0
	if o.Sync.Amplitude > 0 {
		scale = 1 / float64(o.Sync.Amplitude)
	}
	symbols := o.Symbols[max(0, len(o.Symbols)-len(o.Soft)):]
	if len(o.Soft) == 0 {
		symbols = o.Symbols
	}
	both, own := 0.0, 0.0
	for k, y := range o.Soft[:min(len(o.Soft), len(symbols))] {
		x := float64(real(symbols[k]))
		both += x * float64(y)
		own += x * x
	}
	if both > 0 && own > 0 {
		scale = both / own
	}
	v.symbols = v.symbols[:0]
	for _, z := range symbols[:min(len(symbols), viewSymbols)] {
		if z != 0 { // erased
			v.symbols = append(v.symbols, complex(float32(scale)*real(z), float32(scale)*imag(z)))
		}
	}
}

// floorOf returns the mean power, beside its mean, of so many samples at either end.
func floorOf(samples []complex64, length int) float64 {
	if length == 0 || 2*length > len(samples) {
		return 0
	}
	total := 0.0
	for _, part := range [...][]complex64{samples[:length], samples[len(samples)-length:]} {
		var sum complex128
		energy := 0.0
		for _, x := range part {
			sum += complex128(x)
			energy += float64(real(x))*float64(real(x)) + float64(imag(x))*float64(imag(x))
		}
		mean := sum / complex(float64(length), 0)
		total += (energy/float64(length) - real(mean)*real(mean) - imag(mean)*imag(mean)) / 2
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return 0
	}
	return total
}

// name says which frame it is.
func (v *frameView) name() string {
	text := fmt.Sprintf("round %d, attempt %d, %v", v.slot.Round, v.slot.Attempt+1, v.slot.Transmission)
	if v.group > 0 {
		text += fmt.Sprintf(", group %d", v.group+1)
	}
	if v.repeat > 0 {
		text += fmt.Sprintf(", sent again (%d)", v.repeat)
	}
	return text
}

// Plot draws what a radio engineer wants to see of a run into a folder, under a title, and
// returns the files: of rounds, of the last frame of b that was read, and of the last frame
// that was not, whose files begin with "lost-" if both were to be had.
func (l *Receiving) Plot(dir, title string, rows []runfolder.Row) ([]string, error) {
	files, err := chart.LinkPlots(dir, title, rows, l.view.gains)
	if err != nil {
		return files, err
	}
	prefix := ""
	for _, v := range [...]*frameView{&l.view.read, &l.view.lost} {
		if !v.there {
			continue
		}
		more, err := chart.FramePlots(dir, prefix, title, l.look(v))
		if files = append(files, more...); err != nil {
			return files, err
		}
		prefix = "lost-"
	}
	return files, nil
}

// look returns a frame as it is drawn.
func (l *Receiving) look(v *frameView) chart.LinkView {
	// An eye in the middle of what was kept shows payload and not header.
	centre, period := float64(v.sync.Payload)-float64(v.begins), float64(l.samplesPerSymbol)
	centre += period * math.Max(0, math.Floor((float64(len(v.samples))/2-centre)/period))
	view := chart.LinkView{
		Frame: v.name(), Failure: v.failure,
		Samples: v.samples, SampleRate: l.sampleRate, SamplesPerSymbol: l.samplesPerSymbol,
		Centre: centre, Phase: float64(v.sync.Theta), Symbols: v.symbols, Soft: v.soft, Alpha: v.alpha, SNR: math.NaN(),
		Reference: l.receiving.Modem.Spectrum(chart.SpectrumBins), Floor: v.floor,
	}
	if a := float64(v.sync.Amplitude); a > 0 && v.sync.Noise > 0 {
		view.SNR = 10 * math.Log10(a*a/(float64(v.sync.Noise)/2))
	}
	view.Seen, view.Tracked = v.seen, v.phases
	if v.sync == (modem.Sync{}) { // nobody knows where symbols are
		view.Centre = math.NaN()
	}
	for k := range v.seen {
		view.Seconds = append(view.Seconds, (float64(k)+0.5)*float64(v.apart)*period/l.sampleRate)
	}
	view.Density = l.density(v)
	return view
}

// density returns what decides about a frame's first block; nothing where no receiver
// looks at it.
func (l *Receiving) density(v *frameView) (d lattice.View) {
	block := v.soft[:min(len(v.soft), cmp.Or(l.receiving.BlockSymbols, len(v.soft)))]
	r, err := lattice.New(l.receiving.Lattice)
	if err != nil || len(block) == 0 {
		return d
	}
	if d, err = r.View(slices.Clone(block), v.alpha); err != nil {
		return lattice.View{}
	}
	return d
}
