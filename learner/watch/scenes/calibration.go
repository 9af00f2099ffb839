package scenes

import (
	"fmt"
	"math"
	"math/cmplx"
	"strconv"
	"sync"

	"ringwave/calibration/sounder"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/watch"
	"ringwave/learner/watch/air"
	"ringwave/radio"
)

// mostGains is how many gains of a device plots are drawn of.
const mostGains = 4096

// Calibration is the scene of a calibration.
type Calibration struct {
	*Work
	config config.Config
	frames *air.Display

	mu      sync.Mutex
	devices []sounded
}

// sounded is what was heard of a device.
type sounded struct {
	n, missed      int
	clipped        int64
	sum            complex128
	power          float64 // of the gains, summed
	noise          float64 // of an estimate, summed
	offset, delay  float64 // of the last
	gains          []complex128
	seconds        []float64
	sessions       []int
	stride, behind int // of gains every stride-th is kept; behind counts since
}

// NewCalibration begins the scene of a calibration.
func NewCalibration(o WorkOptions, c config.Config) *Calibration {
	if !c.OverRadios() {
		o.CarriersOff = nil
	}
	k := &Calibration{Work: newWork(o, watch.KindCalibration, c.CalibrationHeading(), "block"), config: c, devices: make([]sounded, c.Devices.Count)}
	if text, err := c.Encode(); err == nil { // else the command says so
		k.scene.SetConfig(string(text))
	}
	k.frames = air.New(air.Config{SampleRate: radio.Hertz(c.Link.SampleRateHz), Centre: radio.Hertz(c.Radio.FrequencyHz)})
	k.scene.SetAir(k.frames)
	k.scene.SetRefresh(k.refresh)
	return k
}

// Observer returns what hears of the calibration for its scene, and then for the next.
func (k *Calibration) Observer(next experiment.CalibrationObserver) experiment.CalibrationObserver {
	if k == nil {
		return next
	}
	o := next
	o.Opening = func() radio.Sink { return k.frames }
	o.Block = k.block
	o.Blocks = func(done, total int) {
		k.Progress("block", done, total, share(done, total))
		if next.Blocks != nil {
			next.Blocks(done, total)
		}
	}
	o.Advice = func(done, total int) {
		k.Progress("simulation for advice", done, total, share(done, total))
		if next.Advice != nil {
			next.Advice(done, total)
		}
	}
	return o
}

// Concluded takes in the result.
func (k *Calibration) Concluded(r experiment.CalibrationResult, err error) {
	if k == nil {
		return
	}
	if err == nil {
		for _, v := range r.File.Violations {
			k.scene.Event(watch.EventWarning, v)
		}
	}
	_ = k.End(err) // who calls has it
}

// block takes in what was heard of a block.
func (k *Calibration) block(b sounder.Block) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.devices)
	for at, rec := range b.Records {
		d := &k.devices[at%n]
		d.clipped += rec.Clipped
		if rec.Estimate == nil {
			d.missed++
			k.scene.Event(watch.EventLost, fmt.Sprintf("block %d, device %d: not heard: %s", b.Number+1, at%n+1, rec.Missed))
			continue
		}
		e := rec.Estimate
		d.n++
		d.sum += e.Gain
		d.power += real(e.Gain)*real(e.Gain) + imag(e.Gain)*imag(e.Gain)
		d.noise += e.GainVar
		d.offset, d.delay = float64(e.Offset)*k.config.Link.SampleRateHz, float64(e.Delay)
		d.keep(e.Gain, float64(b.At)/k.config.Link.SampleRateHz, b.Session)
	}
	k.scene.Touch()
}

// keep keeps a gain for plots: where there are very many, every so many-th.
func (d *sounded) keep(g complex128, seconds float64, session int) {
	d.stride = max(1, d.stride)
	if d.behind++; d.behind < d.stride {
		return
	}
	d.behind = 0
	if len(d.gains) == mostGains {
		half := mostGains / 2
		for i := range half {
			d.gains[i], d.seconds[i], d.sessions[i] = d.gains[2*i], d.seconds[2*i], d.sessions[2*i]
		}
		d.gains, d.seconds, d.sessions = d.gains[:half], d.seconds[:half], d.sessions[:half]
		d.stride *= 2
	}
	d.gains, d.seconds, d.sessions = append(d.gains, g), append(d.seconds, seconds), append(d.sessions, session)
}

// refresh sets what is known so far.
func (k *Calibration) refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := watch.Table{Name: "links", View: watch.ViewBench, Title: "Links so far", Columns: []watch.Column{
		{Label: "device", Numeric: true}, {Label: "soundings", Numeric: true}, {Label: "not heard", Numeric: true},
		{Label: "mean gain |μ|", Numeric: true}, {Label: "phase", Unit: "rad", Numeric: true}, {Label: "second moment Ω", Numeric: true}, {Label: "deviation σ", Numeric: true},
		{Label: "SNR of an estimate", Unit: "dB", Numeric: true}, {Label: "delay", Unit: "samples", Numeric: true}, {Label: "carrier offset", Unit: "Hz", Numeric: true}, {Label: "clipped samples", Numeric: true},
	}, Note: "Moments of the complex gain per sent amplitude, the estimates' own noise taken off; the result has those of the real effective gain, with intervals."}
	view := chart.CalibrationView{Title: k.config.CalibrationHeading()}
	for i := range k.devices {
		d := &k.devices[i]
		if d.n == 0 {
			t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), "0", strconv.Itoa(d.missed), "", "", "", "", "", "", "", strconv.FormatInt(d.clipped, 10)})
			continue
		}
		n := float64(d.n)
		mean, omega := d.sum/complex(n, 0), max(0, (d.power-d.noise)/n)
		sigma := math.Sqrt(max(0, omega-real(mean)*real(mean)-imag(mean)*imag(mean)))
		snr := 10 * math.Log10(omega/(d.noise/n))
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), strconv.Itoa(d.n), strconv.Itoa(d.missed), short(cmplx.Abs(mean)), short(cmplx.Phase(mean)), short(omega), short(sigma), short(snr), short(d.delay), short(d.offset), strconv.FormatInt(d.clipped, 10)})
		view.Devices = append(view.Devices, chart.LinkSeries{Name: fmt.Sprintf("device %d", i+1), Gain: append([]complex128(nil), d.gains...), Seconds: append([]float64(nil), d.seconds...), Session: append([]int(nil), d.sessions...)})
	}
	k.scene.SetTables([]watch.Table{t})
	if len(view.Devices) > 0 {
		k.scene.SetPlots(drawn(watch.ViewBench, chart.CalibrationPictures(view), nil))
	}
}
