package campaign

import (
	"math"
	"slices"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
)

// file returns the calibration file.
func (c *Config) file(blocks []sounder.Block, m moments.Result, w calibration.Want, carriers map[int]Carriers) calibration.File {
	now := w.Now.UTC().Truncate(time.Second)
	f := calibration.File{
		Version: calibration.Version, Created: now, ValidUntil: now.Add(c.Valid),
		Program: c.Program, Violations: shared(m), Bench: w.Bench, Sounding: c.sounding(blocks),
	}
	if n := len(blocks); n > 0 {
		f.Bench.ReceiverEpoch = uint64(blocks[n-1].Receiver)
	}
	first := sounding.Pool(Estimates(blocks, lastSession(blocks), 0, c.Soundings.Devices))
	leaks := c.leakages(blocks, carriers)
	for i, d := range m.Devices {
		found := c.device(i, blocks, d, w.Transmitters[i], first)
		if n := len(blocks); n > 0 {
			carriers[blocks[n-1].Session].describe(&found, i, float64(blocks[n-1].At)/float64(c.SampleRate))
		}
		leaks[i].describe(&found)
		found.ClockPPM = c.clock(i, blocks)
		f.Devices = append(f.Devices, found)
	}
	return f
}

// sounding returns the table of what was sent.
func (c *Config) sounding(blocks []sounder.Block) calibration.Sounding {
	k, s := &c.Soundings, c.Soundings.Sounding.Config()
	return calibration.Sounding{
		Kind: s.Kind.String(), Length: s.Length, Root: s.Root, SamplesPerChip: s.SamplesPerChip, Repetitions: s.Repetitions,
		Blocks: k.Blocks, Looks: k.Looks, Sessions: max(1, k.Sessions), BlockSeconds: c.blockSeconds(blocks), RoundSeconds: c.RoundSeconds,
		Amplitude: float64(k.Amplitude),
	}
}

// shared returns the sentences of violations that no single device is to blame for.
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

// device returns the table of device i. Its delay is against that of the first device.
func (c *Config) device(i int, blocks []sounder.Block, d moments.Device, t calibration.Transmitter, first sounding.Pooled) calibration.Device {
	n := c.Soundings.Devices
	all := Estimates(blocks, AllSessions, i, n)
	placed := sounding.Pool(Estimates(blocks, lastSession(blocks), i, n))
	out := calibration.Device{
		Index: i + 1, Transmitter: t, Soundings: len(all), Missed: len(blocks)*c.Soundings.Looks - len(all), Clipped: d.Clipped,
		Mu: valueOf(d.Mu), Omega: valueOf(d.Omega), Sigma: valueOf(d.Sigma), KFactor: valueOf(d.KFactor), SNRdB: valueOf(d.SNRdB),
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

// quantile95 is the normal distribution's of an interval of 95 %.
const quantile95 = 1.959963984540054

// around returns an estimate of that variance with its interval.
func around(v, variance float64) calibration.Value {
	half := quantile95 * math.Sqrt(variance)
	return calibration.Interval(v, v-half, v+half)
}

// halfWidth returns the standard error that an interval tells of.
func halfWidth(v calibration.Value) float64 {
	if w := v.High - v.Low; w > 0 && !math.IsInf(w, 0) {
		return w / (2 * quantile95)
	}
	return 0
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
