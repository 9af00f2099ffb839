package campaign

import (
	"context"
	"math"

	"ringwave/calibration"
	"ringwave/calibration/advice"
	"ringwave/calibration/moments"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// Use is how the bench is to be used, which the advice is about.
type Use struct {
	// Options are what the advice is asked for.
	advice.Options
	// Converters are those that rounds will pass. A board's own are left out: what they
	// add is in the noise that was measured.
	Converters Converters
	// Relative has gains in units of the mean of their magnitudes, as runs over radios
	// have them, and Converters.Receiver.FullScale in units of received amplitudes.
	Relative bool
	// FreshOnRetry says that each attempt meets new gains.
	FreshOnRetry bool
}

// Advise computes what the bench can carry, and puts it into the file, too.
func (r *Result) Advise(ctx context.Context, u Use) error {
	bench, err := r.Bench(u)
	if err != nil {
		return err
	}
	a, err := advice.Give(ctx, bench, u.Options)
	if err != nil {
		return err
	}
	r.Advice, r.File.Advice = &a, nil
	if a.Own != nil {
		line := adviceLine(*a.Own)
		line.Own = true
		r.File.Advice = append(r.File.Advice, line)
	}
	for _, o := range a.Outlooks {
		r.File.Advice = append(r.File.Advice, adviceLine(o))
	}
	return nil
}

func adviceLine(o advice.Outlook) calibration.AdviceLine {
	return calibration.AdviceLine{
		Regime: o.Regime.String(), Group: o.Group, Base: o.Base, SamplesPerSymbol: o.SamplesPerSymbol, Repeats: o.Repeats,
		ParameterSet: o.Set, Success: calibration.Interval(o.AtOnce, o.Low, o.High), AirtimeSeconds: o.AirtimeSeconds,
	}
}

// Bench returns the bench as the soundings found it, for that use of it.
func (r *Result) Bench(u Use) (advice.Bench, error) {
	if err := u.Converters.validate(len(r.File.Devices)); err != nil {
		return advice.Bench{}, err
	}
	unit, noise, earliest := 0.0, 0.0, math.Inf(1)
	heard, full := r.cfg.receiverOf(r.Series, u.Converters.Receiver), u.Converters.Receiver.FullScale
	if heard.bits == 0 {
		full = 0
	}
	devices := r.File.Devices
	for i, d := range devices {
		earliest = min(earliest, d.DelaySamples.Value)
		unit += d.Mu.Value / float64(len(devices))
		noise += withoutRounding(r.Links.Devices[i].Noise, d.Omega.Value, u.Converters.transmitter(i), heard) / float64(len(devices))
	}
	if !u.Relative {
		unit = 1
	}
	b := advice.Bench{
		SampleRateHz: float64(r.cfg.SampleRate),
		OnLattice:    r.cfg.OnLattice, LatticeBits: r.cfg.LatticeBits,
		Noise: modem.Power(noise / (unit * unit)), ReceiverBits: heard.bits, ReceiverFullScale: full / unit,
		Phases: advice.PhasesTrimmed, Compensated: true, FreshOnRetry: u.FreshOnRetry,
	}
	for i, d := range devices {
		b.Devices = append(b.Devices, deviceIn(d, unit, earliest, b.SampleRateHz, u.Converters.transmitter(i)))
		// Gains that are known to change within a round. Otherwise blocks may be far apart,
		// and say nothing of it.
		c := r.Links.Devices[i].Coherence
		if c.LongEnough == moments.No && (b.CoherenceSeconds == 0 || c.High < b.CoherenceSeconds) {
			b.CoherenceSeconds = c.High
		}
	}
	return b, nil
}

// deviceIn returns what is known of a device, with gains in units of unit and delays
// behind the earliest.
func deviceIn(d calibration.Device, unit, earliest, rate float64, sent rounder) advice.Device {
	return advice.Device{
		Gain: Fading(d, unit), MeanStd: halfWidth(d.Mu) / unit, StdStd: halfWidth(d.Sigma) / unit,
		Phase: modem.Radians(d.PhaseRad.Value), PhaseStd: modem.Radians(halfWidth(d.PhaseRad)),
		Delay: modem.Samples(d.DelaySamples.Value - earliest), DelayStd: modem.Samples(halfWidth(d.DelaySamples)),
		CarrierOffset: offsetOf(d) / rate,
		ConverterBits: sent.bits,
	}
}

// offsetOf returns the carrier offset, in Hz, that a device has when it sends, where there
// is one for certain: an interval excludes 0 by chance in one device of twenty. Devices
// turn their carriers back to what they have in common, as far as that was told.
func offsetOf(d calibration.Device) float64 {
	o := d.OffsetHz
	if !(math.Abs(o.Value) > 5*halfWidth(o)) {
		return 0
	}
	if own := d.OffsetFromCommonHz; own != nil && !math.IsNaN(own.Value) {
		return o.Value - own.Value
	}
	return o.Value
}

// withoutRounding takes off the noise of soundings what their converters' rounding adds
// to it, which is simulated by itself.
func withoutRounding(noise, omega float64, sent, heard rounder) float64 {
	return max(noise-omega*sent.rounding()-heard.rounding(), noise/100)
}

// Fading returns the law of a device's gain in units of unit.
func Fading(d calibration.Device, unit float64) channel.Fading {
	mu, sigma := d.Mu.Value/unit, d.Sigma.Value/unit
	if d.Model == calibration.Rician && d.KFactor.Value > 0 && !math.IsInf(d.KFactor.Value, 0) {
		return channel.NewRicianMean(d.KFactor.Value, mu)
	}
	return channel.Gaussian{Mu: mu, Sigma: max(0, sigma)}
}
