package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// calibrationResult is what came of a calibration.
type calibrationResult struct {
	file     calibration.File
	bench    moments.Bench
	moments  moments.Result
	outlook  outlook
	plots    []string
	recorded []string // the raw gains' files
}

// analyse makes statistics and the file of all blocks.
func (k *calibrator) analyse(now time.Time) (calibrationResult, error) {
	r := calibrationResult{bench: benchOf(k.cfg, k.blocks)}
	distortion, err := k.allowRounding(r.bench)
	if err != nil {
		return r, err
	}
	r.moments, err = moments.Analyse(r.bench, moments.Options{
		RoundSeconds: k.cfg.Calibration.RoundSeconds, OffsetHz: offsetTolerance(k.cfg), Model: lawOf(k.cfg),
		DistortionTolerance: distortion, GainStep: gainStep(k.cfg),
	})
	if err != nil {
		return r, intake.UserError(fmt.Errorf("what the soundings say: %w", err))
	}
	want, err := k.benchNow()
	if err != nil {
		return r, err
	}
	r.file, err = fileOf(k.cfg, k.blocks, r.moments, want, now)
	if err != nil {
		return r, err
	}
	if r.recorded, err = k.writeGains(r.bench); err != nil {
		return r, err
	}
	spectra, err := encodeSpectra(r.moments.Devices)
	if err != nil {
		return r, err
	}
	r.recorded = append(r.recorded, spectraName)
	return r, intake.PathError(k.folder.WriteAtomic(spectraName, spectra))
}

// writeGains writes the raw gains for NumPy and gives the files.
func (k *calibrator) writeGains(b moments.Bench) (files []string, err error) {
	for i, s := range b.Devices {
		data, err := calibration.EncodeGains(s.Gain)
		if err != nil {
			return files, err
		}
		name := fmt.Sprintf("gains-%d.npy", i+1)
		if err := k.folder.WriteAtomic(name, data); err != nil {
			return files, intake.PathError(err)
		}
		files = append(files, name)
	}
	return files, nil
}

// lawOf gives the law of the gains where it is known: that of a simulated channel. What
// soundings say of it can seldom tell a Rician envelope from a Gaussian gain.
func lawOf(c config.Config) moments.Model {
	switch {
	case c.OverRadios():
		return moments.Undecided
	case c.Channel.Model == "rician":
		return moments.Rician
	}
	return moments.Gaussian
}

// gainStep gives the step of emulated gains, 0 for others.
func gainStep(c config.Config) float64 {
	if c.OverRadios() || c.Channel.Gains != "lattice" {
		return 0
	}
	return math.Ldexp(1, -c.Channel.GainLatticeBits)
}

// benchNow says what the bench is. One that was measured whole before is not opened for
// that.
func (k *calibrator) benchNow() (w want, err error) {
	switch {
	case k.bench != nil:
		return k.bench.want, nil
	case k.cfg.OverRadios():
		return w, intake.UserError(fmt.Errorf("%s: all blocks were made in an earlier sitting, whose session of radios is over: calibrate again", k.folder.Path()))
	}
	return simulatedBench(k.cfg, k.root), nil
}

type want = calibration.Want

// offsetTolerance is how far a carrier may be off: so far that it turns the phase by
// 0.1 rad in the round's time, or in a millisecond where that is not known.
func offsetTolerance(c config.Config) float64 {
	round := c.Calibration.RoundSeconds
	if round == 0 {
		round = 1e-3
	}
	return 0.1 / (2 * math.Pi * round)
}

// benchOf makes the series of the devices.
func benchOf(c config.Config, blocks []sounder.Block) moments.Bench {
	n, looks, rate := c.Devices.Count, c.Calibration.Looks, c.Link.SampleRateHz
	b := moments.Bench{Looks: looks, Devices: make([]moments.Series, n)}
	for _, block := range blocks {
		b.Session = append(b.Session, block.Session)
		for k, r := range block.Records {
			b.Devices[k%n] = addRecord(b.Devices[k%n], r, rate)
		}
	}
	for _, s := range b.Devices {
		fillNoise(s)
	}
	b.BlockSeconds, b.LookSeconds = spacing(c, blocks)
	return b
}

// spacing gives the time from block to block, the median of what it was, and from look
// to look.
func spacing(c config.Config, blocks []sounder.Block) (block, look float64) {
	var steps []float64
	for k := 1; k < len(blocks); k++ {
		if d := blocks[k].At - blocks[k-1].At; d > 0 && blocks[k].Session == blocks[k-1].Session {
			steps = append(steps, float64(d)/c.Link.SampleRateHz)
		}
	}
	slices.Sort(steps)
	block = 1 / c.Link.SampleRateHz
	if len(steps) > 0 {
		block = steps[len(steps)/2]
	}
	cfg, err := soundingConfig(c)
	if err != nil {
		return block, block / float64(c.Calibration.Looks)
	}
	return block, float64(cfg.LookSamples()) / c.Link.SampleRateHz
}

// addRecord adds a burst to a device's series.
func addRecord(s moments.Series, r sounder.Record, rate float64) moments.Series {
	nan := math.NaN()
	row := sounding.Estimate{GainVar: nan, Delay: 0, DDelayVar: nan, DOffsetVar: nan}
	gain, noise, delay, offset := complex(nan, nan), nan, nan, nan
	if e := r.Estimate; e != nil {
		row, gain, noise = *e, e.Gain, float64(e.Noise)
		s.NoiseDoF = float64(e.NoiseDoF)
		delay, offset = float64(e.Delay+e.DDelay), float64(e.Offset+e.DOffset)*rate
	}
	s.Gain, s.GainVar, s.Noise = append(s.Gain, gain), append(s.GainVar, row.GainVar), append(s.Noise, noise)
	s.Clipped = append(s.Clipped, r.Clipped)
	s.Delay, s.DelayVar = append(s.Delay, delay), append(s.DelayVar, row.DDelayVar)
	s.Offset, s.OffsetVar = append(s.Offset, offset), append(s.OffsetVar, row.DOffsetVar*rate*rate)
	return s
}

// fileOf makes the calibration file.
func fileOf(c config.Config, blocks []sounder.Block, m moments.Result, w want, now time.Time) (calibration.File, error) {
	k := c.Calibration
	cfg, err := soundingConfig(c)
	if err != nil {
		return calibration.File{}, err
	}
	block, _ := spacing(c, blocks)
	now = now.UTC().Truncate(time.Second)
	f := calibration.File{
		Version: calibration.Version, Created: now, ValidUntil: now.Add(time.Duration(k.ValidHours * float64(time.Hour))),
		Program: "ringwave " + runfolder.NewManifest(now).Program.Version, Violations: shared(m), Bench: w.Bench,
		Sounding: calibration.Sounding{
			Kind: k.Sequence, Length: k.Length, Root: cfg.Sounding.Config().Root, SamplesPerChip: k.SamplesPerChip, Repetitions: k.Repetitions,
			Blocks: k.Blocks, Looks: k.Looks, Sessions: k.Sessions, BlockSeconds: block, RoundSeconds: k.RoundSeconds,
			Amplitude: float64(cfg.Amplitude),
		},
	}
	if n := len(blocks); n > 0 {
		f.Bench.ReceiverEpoch = uint64(blocks[n-1].Receiver)
	}
	last := lastSession(blocks)
	first := sounding.Pool(estimatesOf(blocks, last, 0, c.Devices.Count))
	for i, d := range m.Devices {
		f.Devices = append(f.Devices, deviceOf(c, i, blocks, d, w.Transmitters[i], first))
	}
	return f, nil
}

// shared gives the sentences of violations that no single device is to blame for.
func shared(m moments.Result) []string {
	var out []string
	for _, s := range m.Violations() {
		own := slices.ContainsFunc(m.Devices, func(d moments.Device) bool { return slices.Contains(d.Violations(), s) })
		if !own {
			out = append(out, s)
		}
	}
	return out
}

func lastSession(blocks []sounder.Block) int {
	if len(blocks) == 0 {
		return 0
	}
	return blocks[len(blocks)-1].Session
}

// estimatesOf gives the estimates of device i in a session, -1 for all sessions.
func estimatesOf(blocks []sounder.Block, session, i, devices int) []sounding.Estimate {
	var out []sounding.Estimate
	for _, b := range blocks {
		if session >= 0 && b.Session != session {
			continue
		}
		for k := i; k < len(b.Records); k += devices {
			if e := b.Records[k].Estimate; e != nil {
				out = append(out, *e)
			}
		}
	}
	return out
}

// quantile95 is the normal distribution's of an interval of 95 %.
const quantile95 = 1.959963984540054

// around gives an estimate of a variance with its interval.
func around(v, variance float64) calibration.Value {
	half := quantile95 * math.Sqrt(variance)
	return calibration.Interval(v, v-half, v+half)
}

// deviceOf makes a device's table. Its delay is against that of the first device.
func deviceOf(c config.Config, i int, blocks []sounder.Block, d moments.Device, t calibration.Transmitter, first sounding.Pooled) calibration.Device {
	n, rate := c.Devices.Count, c.Link.SampleRateHz
	all := estimatesOf(blocks, -1, i, n)
	placed := sounding.Pool(estimatesOf(blocks, lastSession(blocks), i, n))
	out := calibration.Device{
		Index: i + 1, Transmitter: t, Soundings: len(all), Missed: len(blocks)*c.Calibration.Looks - len(all), Clipped: d.Clipped,
		Mu: valueOf(d.Mu), Omega: valueOf(d.Omega), Sigma: valueOf(d.Sigma), KFactor: valueOf(d.KFactor), SNRdB: valueOf(d.SNRdB),
		OffsetHz:               around(float64(placed.Offset)*rate, placed.OffsetVar*rate*rate),
		CoherenceSeconds:       d.Coherence.Low,
		PhaseDriftRadPerSecond: valueOf(d.PhaseDrift), GainDriftDBPerSecond: valueOf(d.GainDrift),
		Violations: d.Violations(),
	}
	if n := len(blocks); n > 0 && i < len(blocks[n-1].Transmitters) {
		out.Epoch = uint64(blocks[n-1].Transmitters[i])
	}
	if i > 0 {
		out.DelaySamples = around(float64(placed.Delay-first.Delay), placed.DelayVar+first.DelayVar)
	}
	for _, p := range d.Phase {
		out.PhasePerSessionRad = append(out.PhasePerSessionRad, p.Value)
		if !math.IsNaN(p.Value) {
			out.PhaseRad = valueOf(p)
		}
	}
	out.Model = calibration.Gaussian
	if d.Model == moments.Rician {
		out.Model = calibration.Rician
	}
	if d.PhaseLasts.Verdict != moments.Unresolved {
		lasts := d.PhaseLasts.Verdict == moments.Yes
		out.PhaseLasts = &lasts
	}
	out.DCI, out.DCQ, out.ImageDB, out.IQGainDB, out.IQPhaseRad = hardwareOf(all)
	return out
}

func valueOf(v moments.Value) calibration.Value { return calibration.Interval(v.Value, v.Low, v.High) }

// hardwareOf pools DC and image of bursts, the image by its precision.
func hardwareOf(all []sounding.Estimate) (dcI, dcQ, imageDB, gainDB, phaseRad float64) {
	var dc, image complex128
	weights := 0.0
	for _, e := range all {
		dc += e.DC / complex(float64(len(all)), 0)
		if w := 1 / e.ImageVar; w > 0 && !math.IsInf(w, 0) {
			image += e.Image * complex(w, 0)
			weights += w
		}
	}
	if weights == 0 {
		return real(dc), imag(dc), math.NaN(), math.NaN(), math.NaN()
	}
	image /= complex(weights, 0)
	gainDB, phaseRad = sounding.TransmitterIQ(image)
	power := real(image)*real(image) + imag(image)*imag(image)
	return real(dc), imag(dc), 10 * math.Log10(power), gainDB, phaseRad
}

// jsonValue is a value with its interval.
type jsonValue struct {
	Value runfolder.Float `json:"value"`
	Low   runfolder.Float `json:"low"`
	High  runfolder.Float `json:"high"`
}

func asJSON(v calibration.Value) jsonValue {
	return jsonValue{runfolder.Float(v.Value), runfolder.Float(v.Low), runfolder.Float(v.High)}
}

// json gives the result for machines.
func (r *calibrationResult) json() any {
	type device struct {
		Index      int             `json:"device"`
		Serial     string          `json:"serial,omitempty"`
		Mu         jsonValue       `json:"mu"`
		Omega      jsonValue       `json:"omega"`
		Sigma      jsonValue       `json:"sigma"`
		KFactor    jsonValue       `json:"k_factor"`
		SNRdB      jsonValue       `json:"snr_db"`
		Phase      jsonValue       `json:"phase_rad"`
		Delay      jsonValue       `json:"delay_samples"`
		Offset     jsonValue       `json:"offset_hz"`
		Model      string          `json:"model"`
		PhaseLasts *bool           `json:"phase_lasts"`
		Coherence  runfolder.Float `json:"coherence_seconds"`
		PhaseNoise *jsonNoise      `json:"phase_noise"`
		GainNoise  *jsonNoise      `json:"gain_noise"`
		Soundings  int             `json:"soundings"`
		Missed     int             `json:"missed"`
		Clipped    int64           `json:"clipped"`
		Violations []string        `json:"violations"`
	}
	out := struct {
		Created    time.Time       `json:"created"`
		Bench      string          `json:"bench"`
		Devices    []device        `json:"devices"`
		Violations []string        `json:"violations"`
		Advice     json.RawMessage `json:"advice,omitempty"`
		Files      []string        `json:"files"`
	}{Created: r.file.Created, Bench: string(r.file.Bench.Kind), Violations: orEmpty(r.moments.Violations()), Advice: r.outlook.json()}
	for _, d := range r.file.Devices {
		m := r.moments.Devices[d.Index-1]
		out.Devices = append(out.Devices, device{
			d.Index, d.Serial, asJSON(d.Mu), asJSON(d.Omega), asJSON(d.Sigma), asJSON(d.KFactor), asJSON(d.SNRdB),
			asJSON(d.PhaseRad), asJSON(d.DelaySamples), asJSON(d.OffsetHz), string(d.Model), d.PhaseLasts,
			runfolder.Float(d.CoherenceSeconds), phaseNoiseOf(m).json(), gainNoiseOf(m).json(), d.Soundings, d.Missed, d.Clipped, orEmpty(d.Violations),
		})
	}
	for _, p := range slices.Concat(r.recorded, r.plots) {
		out.Files = append(out.Files, filepath.Base(p))
	}
	return out
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// print is a calibration's last word.
func (r *calibrationResult) print(w io.Writer, dir string) {
	s := r.file.Sounding
	fmt.Fprintf(w, "\nLinks of %d devices, from %d blocks of %d looks in %d sessions (95 %% intervals)\n", len(r.file.Devices), s.Blocks, s.Looks, s.Sessions)
	r.printTable(w, []column{
		{"mu", func(d calibration.Device) string { return interval(d.Mu) }},
		{"Omega", func(d calibration.Device) string { return interval(d.Omega) }},
		{"sigma", func(d calibration.Device) string { return interval(d.Sigma) }},
		{"K", func(d calibration.Device) string { return interval(d.KFactor) }},
		{"SNR, dB", func(d calibration.Device) string { return interval(d.SNRdB) }},
	})
	fmt.Fprintln(w)
	r.printTable(w, []column{
		{"phase, rad", func(d calibration.Device) string { return interval(d.PhaseRad) }},
		{"lasts", func(d calibration.Device) string { return lasting(d.PhaseLasts) }},
		{"delay, samples", func(d calibration.Device) string { return interval(d.DelaySamples) }},
		{"carrier offset, Hz", func(d calibration.Device) string { return interval(d.OffsetHz) }},
		{"law", func(d calibration.Device) string { return string(d.Model) }},
		{"image, dB", func(d calibration.Device) string { return fmt.Sprintf("%.1f", d.ImageDB) }},
		{"missed", func(d calibration.Device) string { return fmt.Sprint(d.Missed) }},
		{"clipped", func(d calibration.Device) string { return fmt.Sprint(d.Clipped) }},
	})
	if columns := r.noiseColumns(); columns != nil {
		fmt.Fprintln(w)
		r.printTable(w, columns)
	}
	if v := r.moments.Violations(); len(v) > 0 {
		fmt.Fprintln(w, "\nAssumptions that this bench violates:")
		for _, sentence := range v {
			fmt.Fprintf(w, "  * %s\n", sentence)
		}
	} else {
		fmt.Fprintf(w, "\nNone of the %d assumptions tested is violated.\n", len(r.moments.Tests))
	}
	r.outlook.print(w)
	fmt.Fprintf(w, "\nFile: %s\nPlots:\n", filepath.Join(dir, calibrationName))
	for _, p := range r.plots {
		if strings.HasSuffix(p, ".png") {
			fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Clean(p))
		}
	}
}

// column is one of a table, with a cell a device.
type column struct {
	head string
	cell func(calibration.Device) string
}

// printTable prints columns as wide as they need.
func (r *calibrationResult) printTable(w io.Writer, columns []column) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "  device")
	for _, c := range columns {
		fmt.Fprintf(t, "\t%s", c.head)
	}
	fmt.Fprintln(t)
	for _, d := range r.file.Devices {
		fmt.Fprintf(t, "  %d", d.Index)
		for _, c := range columns {
			fmt.Fprintf(t, "\t%s", c.cell(d))
		}
		fmt.Fprintln(t)
	}
	t.Flush() // what w says of itself, the caller's next line says too
}

// lasting says whether phases of sessions agree.
func lasting(lasts *bool) string {
	switch {
	case lasts == nil:
		return "unresolved"
	case *lasts:
		return "yes"
	}
	return "no"
}

// interval writes a value and its interval to two digits of the interval's width.
func interval(v calibration.Value) string {
	width := v.High - v.Low
	if !(width > 0) || math.IsInf(width, 0) {
		return fmt.Sprintf("%.4g [%.4g, %.4g]", v.Value, v.Low, v.High)
	}
	decimals := min(12, max(0, 1-int(math.Floor(math.Log10(width)))))
	return fmt.Sprintf("%.*f [%.*f, %.*f]", decimals, v.Value, decimals, v.Low, decimals, v.High)
}
